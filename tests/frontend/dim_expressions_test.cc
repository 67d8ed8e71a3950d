// Dims of ONNX models whose names are expressions of other dims.
#include "codegen/compile.h"
#include "support/joined.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
using test::run_relaxc;

namespace {

// A cache, new rows, and a mask over both whose first dim has this name.
std::string masked(const std::string& dim) {
  OnnxModel model;
  model.input("mask", kFloat32, dim + ",2").input("cache", kFloat32, "past,2").input("x", kFloat32, "length,2");
  model.output("y");
  test::set_int(model.node("Concat", "cache x", "all"), "axis", 0);
  model.node("Add", "all mask", "y");
  return model.proto().SerializeAsString();
}

// Returns the type of the mask.
std::string mask_of(const test::Folder& folder, const std::string& dim, const CompileSettings& settings = {}) {
  const std::string file = folder.write("model.onnx", masked(dim));
  return vm::to_string(compile(read_module(file, settings), settings).load().function().inputs.at(0));
}

}  // namespace

TEST_CASE("a dim that is named by an expression of other dims has its value", "[frontend]") {
  const test::Folder folder("dim_expressions");
  CHECK(mask_of(folder, "past + length") == "mask: float32[length + past, 2]");
  CHECK(mask_of(folder, "length+past") == "mask: float32[length + past, 2]");
  CHECK(mask_of(folder, "(past + 1) * 2 - length") == mask_of(folder, "past*2 + 2 - length"));
  const std::string model = folder.write("model.onnx", masked("past + length"));
  auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"run", model});
    return run_relaxc(flags);
  };
  CHECK(contains(run({"--dim", "past=3", "--dim", "length=2"}).out, "y: float32[5, 2]"));
  // 1 does not stretch.
  const std::string artifact = folder.at("all.so");
  CHECK(run_relaxc({"compile", model, "-o", artifact}).exit_code == 0);
  const test::Outcome wrong = run_relaxc({"run", artifact, "--dim", "past=3", "--dim", "length=2", "--input",
                                          "mask=[[1, 2]]", "--input", "x=[[1, 2], [3, 4]]"});
  INFO(wrong.out << wrong.err);
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "dim 0 (length + past) of input 'mask' is 1, expected 5"));
  CHECK(contains(run_relaxc({"compile", model, "--dim", "past=3", "-o", folder.at("m.so")}).out, "m.so: "));
}

TEST_CASE("a dim whose name is not an expression of known dims is one of its own", "[frontend]") {
  const test::Folder folder("dim_names");
  for (const char* name : {"batch-size", "past + other", "past +", "(past", "past / length"}) {
    CAPTURE(name);
    const std::string file = folder.write("model.onnx", masked(name));
    CompileSettings settings;
    settings.dims[name] = 5;  // is known by this name
    CHECK_NOTHROW(read_module(file, settings));
  }
}
