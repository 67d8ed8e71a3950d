// relaxc compile --check-inputs and run --accuracy: the error of --precision against float32.
#include "passes/precision.h"
#include "codegen/compile.h"
#include "support/joined.h"
#include "tests/documents.h"
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tools/result_error.h"

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

TEST_CASE("an accuracy report counts what is not finite", "[tools]") {
  using tools::ResultError;
  auto text_of = [](const std::vector<float>& exact, const std::vector<float>& actual) {
    ResultError error;
    const std::vector<int64_t> shape = {static_cast<int64_t>(exact.size()) / 2, 2};
    error.add("y", Tensor::of<float>(shape, kFloat32, exact), Tensor::of<float>(shape, kFloat32, actual));
    return error.text();
  };
  CHECK(text_of({NAN, NAN}, {NAN, INFINITY}) ==
        "no element is finite in both models, so there is no error; not finite: 2 NaN in the original model, 1 NaN and "
        "1 infinite in this one, of 2 elements; 1 of them differ");
  CHECK(text_of({1, 2, 3, 4}, {1, NAN, 3, 4}) ==
        "relative RMS error 0 of the 3 elements that are finite in both, the largest element of 1 of 2 rows is the "
        "same; largest difference 0, cosine 1.000000; not finite: none in the original model, 1 NaN in this one, of 4 "
        "elements; 1 of them differ");
  CHECK(text_of({-INFINITY, 2}, {-INFINITY, 2}) ==
        "relative RMS error 0 of the 1 elements that are finite in both, the largest element of 1 of 1 rows is the "
        "same; largest difference 0, cosine 1.000000; not finite: 1 infinite in the original model, 1 infinite in this "
        "one, of 2 elements");
  // Of the whole command: 1000 * 1000 is more than float16 holds.
  const test::Folder folder("precision_overflow");
  const std::string module = folder.write("module.py", R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.multiply(x, x)
        return y
)");
  const test::Outcome nan = run_relaxc({"run", module, "--precision", "fp16", "--accuracy", "--input", "x=[nan, nan]"});
  CHECK(contains(nan.out, "no element is finite in both models"));
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
