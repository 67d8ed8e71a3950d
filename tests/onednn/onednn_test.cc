// examples/onednn/: parts of networks that oneDNN computes have the results of relaxc's kernels.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "passes/tables.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tools/compare.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

namespace {

const std::string kDigits = RELAXC_SOURCE_DIR "/examples/digits/";

Outcome run_tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return test::run_program(arguments, 300);
}

struct ModelFile {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("relaxc_onednn_{}.onnx", getpid())).string();
  explicit ModelFile(test::OnnxModel& model) {
    std::ofstream(path, std::ios::binary) << model.proto().SerializeAsString();
  }
  ~ModelFile() { std::filesystem::remove(path); }
};

}  // namespace

#ifdef RELAXC_ONEDNN_PLUGIN
namespace {

const std::string kOneDnn = RELAXC_ONEDNN_PLUGIN;

// Runs the model in both ways and compares the results. Returns the profile of the run with oneDNN.
std::string profile_of_equal_run(const std::string& model, const std::vector<std::string>& dims) {
  std::string folder = model + ".out", profile;
  std::vector<Tensor> results;
  for (bool external : {false, true}) {
    std::vector<std::string> run = {"run", model, "--output-dir", folder, "--profile"};
    run.insert(run.end(), dims.begin(), dims.end());
    if (external) run.insert(run.end(), {"--backend", kOneDnn});
    Outcome outcome = run_tool(run);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    results.push_back(read_npy(folder + "/output_0.npy"));
    profile = outcome.out;
  }
  CHECK(tools::compare("y", results[1], results[0], 1e-5, 1e-5) == "");
  std::filesystem::remove_all(folder);
  return profile;
}

Tensor small_floats(const std::vector<int64_t>& shape) {
  Tensor result = Tensor::empty(shape, kFloat32);
  for (int64_t i = 0; i < result.size(); ++i) result.set_double(i, static_cast<double>(i * 7 % 19 - 9) / 16);
  return result;
}

}  // namespace

TEST_CASE("oneDNN computes the digits network, from a model and from an artifact", "[onednn]") {
  Outcome run = run_tool({"run", kDigits + "digits.onnx", "--backend", kOneDnn, "--test-data",
                          kDigits + "test_data_set_0", "--atol", "1e-5", "--profile"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "onednn_"));
  std::string artifact =
      (std::filesystem::temp_directory_path() / fmt::format("relaxc_onednn_{}.so", getpid())).string();
  REQUIRE(run_tool({"compile", kDigits + "digits.onnx", "--backend", kOneDnn, "-o", artifact}).exit_code == 0);
  CHECK(run_tool({"run", artifact, "--test-data", kDigits + "test_data_set_0", "--atol", "1e-5"}).exit_code == 0);
  std::filesystem::remove(artifact);
  CHECK(contains(run_tool({"opt", "--list-passes", "--backend", kOneDnn}).out, "claim_onednn"));
}

TEST_CASE("convolutions with groups, strides and sums run in oneDNN", "[onednn]") {
  test::OnnxModel model;
  model.input("x", kFloat32, "n,4,h,9").output("y");
  model.constant("w", small_floats({6, 2, 3, 3}))
      .constant("b", small_floats({6}))
      .constant("v", small_floats({6, 4, 3, 3}));
  onnx::NodeProto& grouped = model.node("Conv", "x w b", "c");
  test::set_int(grouped, "group", 2), test::set_ints(grouped, "pads", {1, 0, 2, 1});
  test::set_ints(grouped, "strides", {2, 1}), test::set_ints(grouped, "dilations", {1, 2});
  onnx::NodeProto& plain = model.node("Conv", "x v", "d");
  test::set_ints(plain, "pads", {1, 0, 2, 1}), test::set_ints(plain, "strides", {2, 1});
  test::set_ints(plain, "dilations", {1, 2});
  model.node("Add", "c d", "e"), model.node("Relu", "e", "f");
  onnx::NodeProto& pool = model.node("MaxPool", "f", "y");
  test::set_ints(pool, "kernel_shape", {2, 2}), test::set_ints(pool, "strides", {2, 1});
  ModelFile file(model);
  for (const char* height : {"h=7", "h=12"})
    CHECK(contains(profile_of_equal_run(file.path, {"--dim", "n=2", "--dim", height}), "onednn_"));
}

TEST_CASE("products with a bias and softmax run in oneDNN for any number of rows", "[onednn]") {
  test::OnnxModel model;
  model.input("x", kFloat32, "m,20").output("y");
  model.constant("w", small_floats({20, 7})).constant("b", small_floats({7}));
  model.node("MatMul", "x w", "p"), model.node("Add", "p b", "q"), model.node("Relu", "q", "r");
  model.node("Softmax", "r", "y");
  ModelFile file(model);
  for (const char* rows : {"m=1", "m=33"}) CHECK(contains(profile_of_equal_run(file.path, {"--dim", rows}), "onednn_"));
}

TEST_CASE("a function with the attribute Codegen is for a backend that is loaded", "[onednn]") {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("relaxc_codegen_{}.py", getpid())).string();
  auto run_for = [&](const std::string& backend) {
    std::ofstream(path)
        << "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2, 3), \"float32\")):\n"
        << "        R.func_attr({\"Codegen\": \"" << backend << "\"})\n"
        << "        y = R.nn.softmax(x)\n        return y\n";
    return run_tool({"run", path, "--backend", kOneDnn, "--profile"});
  };
  Outcome right = run_for("onednn"), wrong = run_for("dnnl");
  CHECK(right.exit_code == 0);
  CHECK(contains(right.out, "onednn_y"));
  CHECK(wrong.exit_code == 3);
  CHECK(contains(wrong.err, "is for the backend 'dnnl', and there are only onednn"));
  std::filesystem::remove(path);
}
#endif

TEST_CASE("a backend that is not one is refused", "[onednn]") {
  Outcome outcome = run_tool({"run", kDigits + "digits.onnx", "--backend", RELAXC_MY_PASS});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "is not a backend: it adds no ExternalCompiler"));
}
