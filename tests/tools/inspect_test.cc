// relaxc inspect: models that compile and models that do not, texts, artifacts; text and JSON.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
namespace fs = std::filesystem;

namespace {

struct InspectFolder {
  fs::path path = fs::temp_directory_path() / fmt::format("relaxc_inspect_{}", getpid());
  InspectFolder() { fs::create_directories(path); }
  ~InspectFolder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

test::Outcome inspected(std::vector<std::string> words) {
  words.insert(words.begin(), {RELAXC_TOOL, "inspect"});
  return test::run_program(words, 120);
}

std::string onnx_with(const char* type, const char* domain) {
  OnnxModel model;
  model.input("x", kFloat32, "n,4").constant("w", test::numbers({4, 3}));
  model.output("y", *domain ? kFloat32 : kInt64);
  model.node("MatMul", "x w", "a"), model.node("Relu", "a", "b");
  model.node(type, "b", "y").set_domain(domain);
  if (*domain) {
    auto* import = model.proto().add_opset_import();
    import->set_domain(domain), import->set_version(2);
  }
  return model.proto().SerializeAsString();
}

}  // namespace

TEST_CASE("inspect says what a model holds and what is fused", "[tools]") {
  InspectFolder folder;
  std::string model = folder.write("model.onnx", onnx_with("NonZero", ""));
  test::Outcome outcome = inspected({model});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  for (const char* part : {"kind: ONNX model", "x float32[n, 4]", "dims: n", "weights: 48 bytes, 1 tensors",
                           "ai.onnx::MatMul", "built in", "kernels:\n", "fused_matmul_relu", "calls 1"})
    CHECK(contains(outcome.out, part));
  CHECK(!contains(outcome.out, "problems"));
  test::Outcome json = inspected({model, "--json"});
  CHECK(contains(json.out, R"({"operator": "ai.onnx::MatMul", "opset": )"));
  CHECK(contains(json.out, R"("problems": [])"));
}

TEST_CASE("inspect describes a model that cannot be compiled, and what would help", "[tools]") {
  InspectFolder folder;
  test::Outcome outcome = inspected({folder.write("model.onnx", onnx_with("FancyGelu", "com.me"))});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(!test::matches(outcome.out, "com.me::FancyGelu +opset 2 +nodes 1 +unsupported\n").empty());
  CHECK(contains(outcome.out, "problems:\n"));
  CHECK(contains(outcome.out, "--kernels FILE with @S.implements(\"com.me::FancyGelu\")"));
  CHECK(!contains(outcome.out, "kernels:\n"));
}

TEST_CASE("inspect describes texts and artifacts", "[tools]") {
  InspectFolder folder;
  std::string text = folder.write("twice.py", R"(
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        y = R.nn.relu(R.add(x, x))
        R.output(y)
    return y
)");
  test::Outcome outcome = inspected({text});
  INFO(outcome.out << outcome.err);
  CHECK(contains(outcome.out, "main (x: R.Tensor((n, 4), dtype=\"float32\")) -> "));
  CHECK(contains(outcome.out, "fused_add_relu calls 1"));
  std::string artifact = (folder.path / "twice.so").string();
  REQUIRE(test::run_program({RELAXC_TOOL, "compile", text, "-o", artifact}, 120).exit_code == 0);
  test::Outcome compiled = inspected({artifact});
  INFO(compiled.out << compiled.err);
  for (const char* part : {"kind: artifact", "x: float32[n, 4]", "fused_add_relu machine code", "architecture"})
    CHECK(contains(compiled.out, part));
  test::Outcome wrong = inspected({folder.write("model.onnx", "no model")});
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "not an ONNX model"));
  CHECK(inspected({(folder.path / "missing.onnx").string()}).exit_code == 1);
}
