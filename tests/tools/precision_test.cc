// relaxc compile --check-inputs and run --accuracy: the error of --precision against float32.
#include "passes/precision.h"
#include "codegen/compile.h"
#include "support/joined.h"
#include "tests/documents.h"
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::run_relaxc;

namespace {

const std::string kModels = RELAXC_SOURCE_DIR "/examples/digits";

}  // namespace

TEST_CASE("compile and run tell the error of a precision", "[tools]") {
  const test::Folder folder("precision");
  const std::string model = kModels + "/digits.onnx", artifact = folder.at("digits.so");
  const test::Outcome compiled = run_relaxc({"compile", model, "-o", artifact, "--precision", "bf16", "--target",
                                             "x86-64-v3", "--check-inputs", kModels + "/samples.npy"});
  INFO(compiled.out << compiled.err);
  REQUIRE(compiled.exit_code == 0);
  CHECK(contains(compiled.out, "error of --precision bf16 against fp32"));
  CHECK(contains(compiled.out, "the largest element of 3"));
  CHECK(contains(compiled.out, "largest difference "));
  CHECK(contains(compiled.out, "layers with the largest relative RMS errors: '"));
  const test::Outcome run = run_relaxc({"run", model, "--precision", "fp16", "--accuracy", "--dim", "batch=2"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "error of --precision fp16 against fp32"));
}

TEST_CASE("an accuracy report says what it lacks", "[tools]") {
  const std::string model = kModels + "/digits.onnx";
  CHECK(contains(run_relaxc({"run", model, "--accuracy"}).err, "that of another --precision: fp32, bf16, fp16, mixed"));
  CHECK(contains(run_relaxc({"compile", model, "--precision", "bf16", "--check-inputs", "none.npy"}).err,
                 "--check-inputs 'none.npy': there is no such file"));
  CHECK(contains(run_relaxc({"run", model, "--precision", "half"}).err, "half"));
}

TEST_CASE("docs/precision.md has the table of what stays in float32", "[tools]") {
  std::string table = "| operators | when | reason |\n|---|---|---|\n";
  for (const KeptInFloat32& row : kept_in_float32())
    table += fmt::format("| {} | {} | {} |\n", row.operators, *row.when ? row.when : "always", row.reason);
  INFO(table);
  CHECK(contains(test::read_document(RELAXC_SOURCE_DIR "/docs/precision.md"), table));
}

TEST_CASE("the operators of that table exist", "[tools]") {
  for (const KeptInFloat32& row : kept_in_float32()) {
    for (const std::string_view name : parts_of(row.operators, ' ')) {
      CAPTURE(name);
      CHECK(op_table().find("relax." + std::string(name)));
    }
  }
}
