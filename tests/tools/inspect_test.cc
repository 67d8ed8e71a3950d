// relaxc inspect: models that compile and models that do not, texts, artifacts; text and JSON.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
namespace fs = std::filesystem;

namespace {

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
  test::Folder folder("inspect");
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

TEST_CASE("inspect fails for a text with mistakes", "[tools]") {
  test::Folder folder("inspect");
  const test::Outcome outcome = inspected(
      {folder.write("m.py", "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    return R.nothing(x)\n")});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out + outcome.err, "R.nothing"));
}

TEST_CASE("inspect describes a model that cannot be compiled, and what would help", "[tools]") {
  test::Folder folder("inspect");
  test::Outcome outcome = inspected({folder.write("model.onnx", onnx_with("FancyGelu", "com.me"))});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(!test::matches(outcome.out, "com.me::FancyGelu +opset 2 +nodes 1 +unsupported\n").empty());
  CHECK(contains(outcome.out, "problems:\n"));
  CHECK(contains(outcome.out, "--kernels FILE with @S.implements(\"com.me::FancyGelu\")"));
  // The nodes before it become kernels all the same.
  CHECK(!test::matches(outcome.out, "kernels:\n +fused_matmul_relu +calls 1 +a, b\n").empty());
  CHECK(!contains(outcome.out, "runtime_functions"));
}

TEST_CASE("inspect tells refused operators, opsets of functions and reasons of the runtime's functions", "[tools]") {
  test::Folder folder("inspect");
  OnnxModel model(17);
  model.input("s", DType::string(), "n").input("x", kFloat32, "n,3").constant("w", test::numbers({3}));
  model.constant("k", test::int64s({1})).output("y", DType::string()).output("z").output("g");
  model.node("StringNormalizer", "s", "y"), model.node("BeamSearch", "x", "g").set_domain("com.microsoft");
  model.node("total", "x", "z").set_domain("mine"), model.node("NotThere", "w k", "unused");
  for (const char* domain : {"com.microsoft", "mine"}) {
    auto* import = model.proto().add_opset_import();
    import->set_domain(domain), import->set_version(1);
  }
  onnx::FunctionProto& function = *model.proto().add_functions();
  function.set_domain("mine"), function.set_name("total"), function.add_input("a"), function.add_output("b");
  auto* import = function.add_opset_import();
  import->set_domain(""), import->set_version(11);
  onnx::NodeProto& sum = *function.add_node();
  sum.set_op_type("ReduceSum"), sum.add_input("a"), sum.add_output("b");
  test::Outcome outcome = inspected({folder.write("model.onnx", model.proto().SerializeAsString())});
  INFO(outcome.out << outcome.err);
  for (const char* pattern :
       {"com.microsoft::BeamSearch +opset 1 +nodes 1 +refused\n", "ai.onnx::ReduceSum +opset 11 +nodes 1 +built in\n",
        "mine::total +opset 1 +nodes 1 +a function of the model\n",
        "ai.onnx::NotThere +opset 17 +nodes 1 +unsupported\n", "weight_dtypes: 1 float32, 1 int64\n"})
    CHECK(!test::matches(outcome.out, pattern).empty());
  for (const char* type : {"ai.onnx::NotThere", "com.microsoft::BeamSearch"})
    CHECK(contains(outcome.out, fmt::format("@S.implements(\"{}\")", type)));

  OnnxModel strings(17);
  strings.input("s", DType::string(), "n").output("y", DType::string()).node("StringNormalizer", "s", "y");
  test::Outcome runs = inspected({folder.write("strings.onnx", strings.proto().SerializeAsString()), "--json"});
  INFO(runs.out << runs.err);
  CHECK(contains(runs.out, "\"vm.builtin.string_normalize\""));
  CHECK(contains(runs.out, "\"why\": \"a tensor program computes on elements of one size"));
}

TEST_CASE("inspect describes texts and artifacts", "[tools]") {
  test::Folder folder("inspect");
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
  CHECK(!test::matches(outcome.out, "R.nn.relu +nodes 1 +a tensor program\n").empty());
  std::string artifact = (folder.path / "twice.so").string();
  REQUIRE(test::run_program({RELAXC_TOOL, "compile", text, "-o", artifact}, 120).exit_code == 0);
  test::Outcome compiled = inspected({artifact});
  INFO(compiled.out << compiled.err);
  for (const char* part : {"kind: artifact", "x: float32[n, 4]", "fused_add_relu machine code", "architecture"})
    CHECK(contains(compiled.out, part));
  CHECK(!contains(compiled.out, "libraries:"));
  for (const char* row : {"from +twice.py\n", "from_hash +[0-9a-f]{32}\n", "by +relaxc [0-9.]+", "target +host\n",
                          "precision +fp32\n", "passes +default\n", "opt_level +2\n"})
    CHECK(!test::matches(compiled.out, std::string("\nmade:\n(?: .*\n)*? +") + row).empty());
  int64_t bytes = 0;
  for (const auto& match :
       test::matches(inspected({artifact, "--json"}).out, "\"section\": \"[a-z ]+\", \"bytes\": ([0-9]+)"))
    bytes += std::stoll(match[1]);
  CHECK(bytes == static_cast<int64_t>(fs::file_size(artifact)));
  CHECK(!contains(folder.read("twice.so"), folder.path.string()));
  std::string printing = folder.write("printing.py", R"(
@R.function(pure=False)
def main(x: R.Tensor((4,), "float32")):
    _ = R.print(x, format="x is {}")
    return x
)");
  REQUIRE(test::run_program({RELAXC_TOOL, "compile", printing, "-o", artifact}, 120).exit_code == 0);
  for (const char* tool : {RELAXC_TOOL, RELAXC_RUN}) {
    test::Outcome needs = test::run_program({tool, "inspect", artifact}, 120);
    INFO(needs.out << needs.err);
    CHECK(!test::matches(needs.out, "libraries:\n +librelaxc_builtins.so +vm.builtin.print").empty());
  }
  REQUIRE(test::run_program({RELAXC_TOOL, "compile", text, "--dim-range", "n=1:64", "-o", artifact}, 120).exit_code ==
          0);
  CHECK(contains(inspected({artifact}).out, "n: 1 to 64"));
  REQUIRE(test::run_program(
              {RELAXC_TOOL, "compile", text, "--dim", "n=3", "--precision", "bf16", "-O", "1", "-o", artifact}, 120)
              .exit_code == 0);
  for (const char* row : {"dims +n=3\n", "precision +bf16\n", "opt_level +1\n"})
    CHECK(!test::matches(inspected({artifact}).out, row).empty());
  for (const char* range : {"n=64:1", "n=a:2", "n=5", "z=1:2"})
    CHECK(test::run_program({RELAXC_TOOL, "compile", text, "--dim-range", range, "-o", artifact}, 120).exit_code != 0);
  test::Outcome wrong = inspected({folder.write("model.onnx", "no model")});
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "not an ONNX model"));
  CHECK(inspected({(folder.path / "missing.onnx").string()}).exit_code == 1);
}

TEST_CASE("inspect names the kernels that a compilation makes", "[tools]") {
  test::Folder folder("inspect");
  OnnxModel model;
  for (const char* name : {"q", "k", "v"}) model.input(name, kFloat32, "2,64,32");
  model.output("y", kFloat32);
  test::set_ints(model.node("Transpose", "k", "t"), "perm", {0, 2, 1});
  model.node("MatMul", "q t", "s"), model.node("Softmax", "s", "p"), model.node("MatMul", "p v", "y");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString()), artifact = folder.at("m.so");
  CHECK(test::run_program({RELAXC_TOOL, "compile", file, "-o", artifact}, 120).exit_code == 0);
  for (const std::string& each : {file, artifact}) {
    const test::Outcome outcome = inspected({each});
    INFO(outcome.out << outcome.err);
    CHECK(contains(outcome.out, "  attention "));
    CHECK(!contains(outcome.out, "  softmax "));
  }
}

TEST_CASE("an artifact for another architecture is described", "[tools]") {
  test::Folder folder("inspect");
  OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y", kFloat32).node("Relu", "x", "y");
  const std::string file = folder.write("model.onnx", model.proto().SerializeAsString()), artifact = folder.at("m.so");
  CHECK(test::run_program({RELAXC_TOOL, "compile", file, "-o", artifact, "--target", "triple=riscv64-linux-gnu"}, 120)
            .exit_code == 0);
  const test::Outcome outcome = inspected({artifact});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "triple=riscv64-linux-gnu"));
  CHECK(contains(outcome.out, "peak_bytes"));
  const test::Outcome with_dim = inspected({artifact, "--dim", "n=3"});
  CHECK(with_dim.exit_code == 1);
  CHECK(contains(with_dim.err, "--dim is for models"));
}
