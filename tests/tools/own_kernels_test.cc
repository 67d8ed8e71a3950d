// docs/own-kernels.md: each of its questions has one short example, which runs on an ONNX model: it is used, and the
// numbers are those without it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tools/compare.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
using test::Outcome;
namespace fs = std::filesystem;

namespace {

const std::string kRoot = RELAXC_SOURCE_DIR, kExamples = kRoot + "/examples/";
const std::string kFancyModel = kExamples + "kernels/fancy_gelu.onnx";
using Words = std::vector<std::string>;

Outcome own_kernels_tool(const Words& words) {
  Words command = {RELAXC_TOOL};
  command.insert(command.end(), words.begin(), words.end());
  return test::run_program(command, 300);
}

struct OwnKernels : test::Folder {
  OwnKernels() : Folder("own_kernels") {}
  using Folder::write;
  std::string write(const std::string& name, OnnxModel& model) const {
    return write(name, model.proto().SerializeAsString());
  }

  // Two products, the first one with a bias and a relu, and a softmax.
  std::string perceptron() const {
    OnnxModel model;
    model.input("x", kFloat32, "n,24").output("y");
    model.constant("w", test::numbers({24, 40})).constant("b", test::numbers({40}));
    model.constant("v", test::numbers({40, 20}));
    model.node("MatMul", "x w", "first"), model.node("Add", "first b", "bias"), model.node("Relu", "bias", "relu");
    model.node("MatMul", "relu v", "second"), model.node("Softmax", "second", "y");
    return write("perceptron.onnx", model);
  }
  // The end of a residual network's block, and the convolution before it.
  std::string residual_block() const {
    OnnxModel model;
    model.input("x", kFloat32, "1,16,9,9").output("y");
    model.constant("w", test::numbers({16, 16, 3, 3})).constant("b", test::numbers({16}));
    auto conv = [&](const char* input, const char* output) {
      test::set_ints(model.node("Conv", std::string(input) + " w b", output), "pads", {1, 1, 1, 1});
    };
    conv("x", "first"), model.node("Relu", "first", "relu");
    conv("relu", "second"), model.node("Add", "second x", "sum"), model.node("Relu", "sum", "y");
    return write("residual.onnx", model);
  }
  std::string gelu() const {
    OnnxModel model(20);
    model.input("x", kFloat32, "n,24").output("y").node("Gelu", "x", "y");
    return write("gelu.onnx", model);
  }

  struct Run {
    Tensor y;
    std::string out, err;
  };
  Run run(const std::string& model, Words flags) const {
    flags.insert(flags.begin(), {"run", model, "--output-dir", at("out"), "--profile"});
    Outcome outcome = own_kernels_tool(flags);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return {read_npy(at("out/output_0.npy")), outcome.out, outcome.err};
  }
  // Compiles a C file of the examples.
  std::string compiled(const std::string& source, const std::string& name, Words flags) const {
    flags.insert(flags.begin(), "/usr/bin/cc");
    Words rest = {"-O2", "-fPIC",  "-I", RELAXC_BINARY_DIR "/public", "-I", kRoot, kExamples + source,
                  "-o",  at(name), "-lm"};
    flags.insert(flags.end(), rest.begin(), rest.end());
    Outcome built = test::run_program(flags, 60);
    INFO(built.err);
    REQUIRE(built.exit_code == 0);
    return at(name);
  }
};

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("each question has its section, in order, and an example of under 40 lines", "[tools]") {
  const std::pair<const char*, const char*> kQuestions[] = {
      {"My TensorIR for an ONNX operator", "kernels/softmax.py"},
      {"My schedule for it after fusion", "kernels/matmul.py"},
      {"My C function", "kernels/gelu.c"},
      {"My custom operator", "kernels/fancy_gelu.py"},
      {"My pass", "plugin/pass.cc"},
      {"My backend", "plugin/backend.cc"},
      {"My instruction", "schedules/own_instruction.py"},
  };
  const std::string document = text_of_file(kRoot + "/docs/own-kernels.md");
  const std::string table = text_of_file(kExamples + "README.md");
  size_t at = 0;
  for (const auto& [question, example] : kQuestions) {
    INFO(question);
    size_t heading = document.find(fmt::format("\n## {}\n", question), at);
    REQUIRE(heading != std::string::npos);
    at = heading + 1;
    std::string section = document.substr(at, document.find("\n## ", at) - at);
    CHECK(contains(section, fmt::format("`examples/{}`", example)));
    CHECK(contains(table, fmt::format("`{}`", example)));
    std::string text = text_of_file(kExamples + example);
    auto lines = std::ranges::count(text, '\n');
    CHECK(lines > 5);
    CHECK(lines < 40);
  }
}

TEST_CASE("each example that the document names has under 40 lines", "[tools]") {
  const std::string document = text_of_file(kRoot + "/docs/own-kernels.md");
  const std::regex name("`examples/([a-z_/]+\\.(py|c|cc))`");
  int count = 0;
  for (std::sregex_iterator found(document.begin(), document.end(), name), end; found != end; ++found, ++count) {
    const std::string text = text_of_file(kExamples + (*found)[1].str());
    INFO((*found)[0]);
    CHECK(!text.empty());
    CHECK(std::ranges::count(text, '\n') < 40);
  }
  CHECK(count > 10);
}

TEST_CASE("the script that exports the operator from torch makes a model that the kernel runs", "[tools]") {
  OwnKernels folder;
  const std::string script = folder.write("export.py", text_of_file(kExamples + "kernels/export_fancy_gelu.py"));
  Outcome exported = test::run_program({"/usr/bin/python3", script}, 300);
  if (contains(exported.err, "ModuleNotFoundError")) {
    WARN("torch or onnx is not installed");
    return;
  }
  INFO(exported.out << exported.err);
  REQUIRE(exported.exit_code == 0);
  Outcome run = own_kernels_tool({"run", folder.at("fancy_gelu.onnx"), "--kernels", kExamples + "kernels/fancy_gelu.py",
                                  "--test-data", folder.at("fancy_gelu_data"), "--rtol", "1e-5", "--atol", "1e-6"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
}

TEST_CASE("examples are used by an imported model, and its results stay", "[tools]") {
  OwnKernels folder;
  struct Row {
    std::string model;
    Words flags;
    Words used;  // in the profile, or in the report of schedules or passes
    double tolerance = 1e-5;
  };
  auto kernels = [](const char* file) { return Words{"--kernels", kExamples + file}; };
  const Row kRows[] = {
      {folder.perceptron(), kernels("kernels/softmax.py"), {"my_softmax / y"}},
      {folder.perceptron(),
       kernels("kernels/matmul.py"),
       {"schedule rule 'tile' is applied to 'fused_my_matmul_add_relu'",
        "schedule rule 'tile' is applied to 'my_matmul'", "fused_my_matmul_add_relu / first", "my_matmul / second"}},
      {folder.perceptron(),
       kernels("schedules/own_instruction.py"),
       {"schedule rule 'with_fma' is applied to 'fused_matmul_add_relu'"}},
      {folder.perceptron(),
       {"--kernels", kExamples + "schedules/own_unit.py", "--link",
        folder.compiled("schedules/own_unit.c", "own_unit.o", {"-c"})},
       {"schedule rule 'on_unit' is applied to 'fused_matmul_add_relu'",
        "schedule rule 'on_unit' is applied to 'matmul"}},
      {folder.residual_block(),
       kernels("kernels/residual.py"),
       {"schedule rule 'tile_residual' is applied to 'fused_conv2d_add_add_relu'",
        "does not fit 'fused_conv2d_add_relu'"},
       1e-4},
      {folder.gelu(), {"--plugin", RELAXC_MY_PASS, "--time-passes"}, {"ms  fast_gelu"}, 5e-4},
  };
  for (const Row& row : kRows) {
    Words flags = {"--winograd-error", "0"};
    if (!contains(row.model, "residual")) flags.insert(flags.end(), {"--dim", "n=15"});
    OwnKernels::Run without = folder.run(row.model, flags);
    flags.insert(flags.end(), row.flags.begin(), row.flags.end());
    OwnKernels::Run with = folder.run(row.model, flags);
    for (const std::string& used : row.used) {
      INFO(used << "\n" << with.out << with.err);
      CHECK(contains(with.out + with.err, used));
      CHECK(!contains(without.out + without.err, used));
    }
    CHECK(tools::compare("y", with.y, without.y, row.tolerance, row.tolerance) == "");
    bool is_approximate = row.tolerance > 1e-4;
    if (is_approximate) CHECK(tools::compare("y", with.y, without.y, 0, 1e-6) != "");
  }
}

TEST_CASE("an operator that torch exported is a text kernel, a C function or a backend", "[tools]") {
  OwnKernels folder;
  std::string library = folder.compiled("kernels/gelu.c", "libgelu.so", {"-shared"}),
              object = folder.compiled("kernels/gelu.c", "gelu.o", {"-c"});
  std::string declaration = folder.write("declaration.py", R"(@S.implements("com.me::FancyGelu")
@S.extern("c_gelu")
def linked(x: T.Buffer(("n", "m"), "float32"), alpha: T.float32, y: T.Buffer(("n", "m"), "float32")): ...
)");
  struct Row {
    Words flags;
    std::string used, claim;
  };
  const Row kRows[] = {
      {{"--kernels", kExamples + "kernels/fancy_gelu.py"}, "fused_matmul_add_fancy_gelu", "kernel 'fancy_gelu'"},
      {{"--kernels", library}, "c_gelu / ", "kernel 'c_gelu'"},
      {{"--kernels", library, "--kernels", folder.at("./libgelu.so")}, "c_gelu / ", "kernel 'c_gelu'"},
      {{"--kernels", declaration, "--link", object}, "c_gelu / ", "kernel 'linked'"},
      {{"--kernels", library, "--link", object}, "c_gelu / ", "kernel 'c_gelu'"},
      {{"--plugin", RELAXC_MY_OPERATOR}, "fused_matmul_add_fancy_gelu", "as me.fancy_gelu"},
      {{"--plugin", RELAXC_MY_OPERATOR, "--backend", RELAXC_MY_BACKEND}, "me_fancy_gelu / ", "backend 'me'"},
  };
  const std::string data = kExamples + "kernels/fancy_gelu_data";
  std::optional<Tensor> first;
  for (const Row& row : kRows) {
    INFO(row.used);
    Words flags = {"--test-data", data, "--rtol", "1e-5", "--atol", "1e-6"};
    flags.insert(flags.end(), row.flags.begin(), row.flags.end());
    OwnKernels::Run run = folder.run(kFancyModel, flags);  // compares with torch
    CHECK(contains(run.out, row.used));
    if (!first) first = run.y;
    CHECK(tools::compare("y", run.y, *first, 1e-6, 1e-6) == "");
    Words explain = {"explain", kFancyModel};
    explain.insert(explain.end(), row.flags.begin(), row.flags.end());
    CHECK(contains(own_kernels_tool(explain).out, row.claim));
    Words compile = {"compile", kFancyModel, "-o", folder.at("model.so")};
    compile.insert(compile.end(), row.flags.begin(), row.flags.end());
    REQUIRE(own_kernels_tool(compile).exit_code == 0);
    bool is_linked = std::ranges::count(row.flags, "--link") > 0;
    if (is_linked) fs::rename(library, library + ".away");
    CHECK(own_kernels_tool({"run", folder.at("model.so"), "--test-data", data, "--rtol", "1e-5", "--atol", "1e-6"})
              .exit_code == 0);
    if (is_linked) fs::rename(library + ".away", library);
  }
  Outcome without = own_kernels_tool({"run", kFancyModel});
  CHECK(without.exit_code == 3);
  CHECK(contains(without.err, "--kernels FILE with @S.implements(\"com.me::FancyGelu\")"));
}

TEST_CASE("a kernel that breaks the rules of programs is the user's error", "[tools]") {
  OwnKernels own;
  std::ofstream(own.at("wrong.py")) << R"(@S.implements("nn.gelu")
@T.prim_func
def mine(x: T.Buffer(("n", 24), "float32"), y: T.Buffer(("n", 24), "float32")):
    for i, j in T.grid(n, 24):
        with T.block("y"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + x[vi, vj]
)";
  const Outcome outcome = own_kernels_tool({"run", own.gelu(), "--kernels", own.at("wrong.py"), "--dim", "n=2"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "wrong.py:5:14: error: the init of block 'y' mentions the reduce axis 'vj'"));
  CHECK_FALSE(contains(outcome.err, "internal error"));
}

TEST_CASE("a rule does not fit where a list has fewer items than it takes", "[tools]") {
  OwnKernels folder;
  std::string rule = folder.write("rule.py",
                                  "@S.rule(\"matmul\")\ndef first_behind(sch):\n"
                                  "    behind = sch.get_consumers(sch.get_block(\"matmul\"))[0]\n");
  std::string report = folder.run(folder.perceptron(), {"--kernels", rule, "--dim", "n=3"}).err;
  INFO(report);
  CHECK(contains(report, "schedule rule 'first_behind' is applied to 'fused_matmul_add_relu'"));
  CHECK(contains(report, "schedule rule 'first_behind' does not fit 'matmul"));
  CHECK(contains(report, "the list has 0 items"));
}

TEST_CASE("bench says which kernels a file changes, and whether that is faster", "[tools]") {
  OwnKernels folder;
  auto bench = [&](Words words) {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--runs", "5", "--warmup", "1"});
    Outcome outcome = own_kernels_tool(words);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
  };
  std::string file = kExamples + "kernels/matmul.py", model = folder.perceptron();
  std::string compared = bench({model, "--kernels", file, "--dim", "n=15"});
  INFO(compared);
  CHECK(contains(compared, "with and without --kernels " + file));
  CHECK(contains(compared, "first, bias, relu: fused_matmul_add_relu -> fused_my_matmul_add_relu\n"));
  CHECK(!test::matches(compared, "second: matmul\\w* -> my_matmul\n").empty());
  CHECK(!test::matches(compared,
                       "2 kernels that differ: (faster|slower|no clear difference, as half of the ratios of "
                       "neighbouring runs are [0-9.]+ to [0-9.]+)\n")
             .empty());
  CHECK(contains(compared, "1 kernel with the same code\n"));
  CHECK(
      contains(compared, "whole run (5 of each): no clear difference, as there are only 5 pairs of runs; --runs and"));
  CHECK(contains(bench({model, "--kernels", file, "--json", "-"}), "\"kernels_differ\": true"));
  // A file that changes nothing is not judged by the noise of the machine.
  std::string idle = folder.write("idle.py", "@S.pattern\ndef roots(x):\n    return R.sqrt(R.sqrt(x))\n");
  compared = bench({model, "--kernels", idle, "--dim", "n=15"});
  CHECK(!test::matches(compared,
                       "whole run \\(5 of each\\): no kernel differs, so that a difference of the times is "
                       "chance\n")
             .empty());
  CHECK(!contains(compared, "faster"));
  CHECK(contains(bench({model, "--kernels", idle, "--json", "-"}), "\"kernels_differ\": false"));
  // Two programs with the same code, of which a trace of the model names one, are no difference.
  const std::string twice = folder.write("twice.py", R"(
@R.function
def main(x: R.Tensor((16, 16), "float32"), w: R.Tensor((16, 16), "float32")):
    y = R.matmul(R.nn.softmax(R.matmul(x, w)), w)
    return y
)");
  const std::string trace = folder.write("trace.py", own_kernels_tool({"compile", twice, "--emit=trace"}).out);
  CHECK(contains(bench({twice, "--schedules", trace, "--json", "-"}), "\"kernels_differ\": false"));
  CHECK(!contains(bench({model}), "with and without"));
  std::string alone = bench({kFancyModel, "--kernels", kExamples + "kernels/fancy_gelu.py"});
  CHECK(contains(alone, "nothing to compare with: without --kernels "));
  CHECK(contains(alone, "FancyGelu of opset 1 is not supported"));
}

namespace {

constexpr const char* kRules = R"(
@S.pattern
def product_bias(x, w: S.constant, b: S.constant):
    return R.matmul(x, w) + b

@S.schedule("product_bias")
def nothing(sch):
    sch.get_block("matmul")

@R.rewriter
class RootOfSquare:
    @R.function
    def pattern(x: R.Tensor(("n", 40), "float32")):
        y = R.nn.relu(x)
        return y

    @R.function
    def replacement(x: R.Tensor(("n", 40), "float32")):
        n = T.int64()
        y: R.Tensor((n, 40), "float32") = R.maximum(x, R.const(0, "float32"))
        return y

@S.implements("nn.softmax")
@T.prim_func
def first_softmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj]

@S.implements("nn.softmax", axis=-1)
@T.prim_func
def second_softmax(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj]
)";

}  // namespace

TEST_CASE("explain names the patterns, rewriters and kernels that hold a node, and who else could", "[tools]") {
  OwnKernels folder;
  std::string rules = folder.write("rules.py", kRules), model = folder.perceptron();
  std::string claims = own_kernels_tool({"explain", model, "--kernels", rules}).out;
  INFO(claims);
  CHECK(contains(claims,
                 "first (MatMul): part of pattern 'product_bias' (at bias)\nbias (Add): pattern 'product_bias'\n"));
  CHECK(contains(claims, "relu (Relu): rewriter 'RootOfSquare'; built in, as maximum\n"));
  CHECK(contains(claims, "second (MatMul): built in, as matmul\n"));
  CHECK(contains(claims,
                 "y (Softmax): kernel 'first_softmax'\n"
                 "    kernel 'second_softmax' does not: it could, and 'first_softmax' comes first\n"));
  // Profiles and drawings name all nodes of the composed kernel, and of what is fused with it.
  CHECK(contains(folder.run(model, {"--kernels", rules}).out, "fused_product_bias_maximum / bias, first, relu\n"));
  for (const char* level : {"loops", "trace"}) {
    Outcome emitted = own_kernels_tool({"compile", model, "--kernels", rules, "--emit", level});
    CHECK(contains(emitted.out, "# bias, first, relu\n"));
  }
}

TEST_CASE("bench compares kernels that share nodes in one row", "[tools]") {
  OwnKernels folder;
  const std::string relu = R"(
@S.implements(node="relu")
@S.extern("c_relu")
def c_relu(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")): ...
)";
  std::string file = folder.write("relu.py", relu), code = folder.write("relu.c", R"(
#include <relaxc/kernel_abi.h>
int32_t c_relu(const relaxc_kernel_args* args) {
  const float* x = args->data[0];
  float* y = args->data[1];
  for (int64_t i = 0; i < args->scalars[0] * args->scalars[1]; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
)");
  Outcome built = test::run_program({"/usr/bin/cc", "-O2", "-fPIC", "-c", "-I", RELAXC_BINARY_DIR "/public", "-I",
                                     RELAXC_SOURCE_DIR, code, "-o", code + ".o"},
                                    60);
  INFO(built.err);
  REQUIRE(built.exit_code == 0);
  Outcome bench = own_kernels_tool({"bench", folder.perceptron(), "--kernels", file, "--link", code + ".o", "--dim",
                                    "n=3", "--runs", "3", "--warmup", "1"});
  INFO(bench.out << bench.err);
  CHECK(!test::matches(bench.out,
                       "first, bias, relu: fused_matmul_add_relu -> (fused_matmul_add, c_relu|c_relu, "
                       "fused_matmul_add)\n")
             .empty());
}

TEST_CASE("check reads the arguments of a rewriter as --kernels does", "[tools]") {
  OwnKernels folder;
  auto checked = [&](const std::string& arguments) {
    return own_kernels_tool({"check", folder.write("r.py", "@R.rewriter" + arguments + R"(
class Mine:
    @R.function
    def pattern(x: R.Tensor(("n", 4), "float32")):
        return R.sigmoid(x)
    @R.function
    def replacement(x):
        return R.exp(x)
)")});
  };
  for (const char* arguments : {"", "()", "(where=lambda n: n == 4)", "(\n    node=\"y\",\n)"}) {
    const Outcome outcome = checked(arguments);
    INFO(outcome.err);
    CHECK(contains(outcome.out, "1 kernel or pattern, no errors"));
  }
  CHECK(contains(checked("(foo=1)").err, "r.py:1:13: error: R.rewriter takes where= and node=, not 'foo'"));
  CHECK(checked("(\"abc\")").exit_code == 1);
}

TEST_CASE("check looks at the indices of kernels", "[tools]") {
  OwnKernels folder;
  auto checked = [&](const std::string& row) {
    return own_kernels_tool({"check", folder.write("k.py", R"(@S.implements("nn.relu")
@T.prim_func
def mine(x: T.Buffer(("n", 8), "float32"), y: T.Buffer(("n", 8), "float32")):
    for i, j in T.grid(n, 8):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, )" + row + R"(], T.float32(0))
)")});
  };
  Outcome wrong = checked("vj + 1");
  INFO(wrong.out << wrong.err);
  CHECK(contains(wrong.err, "k.py:7:31: warning: buffer 'x': index vj + 1 of dim 1 is 8 where j = 7 of [0, 8)"));
  CHECK(contains(wrong.out, "1 kernel or pattern, no errors, 1 warning\n"));
  CHECK(checked("vj").err.empty());
}

TEST_CASE("rules of a file are passes by name", "[tools]") {
  OwnKernels folder;
  std::string rules = folder.write("rules.py", kRules), model = folder.perceptron();
  auto opt = [&](const std::string& passes) {
    return own_kernels_tool({"opt", model, "--kernels", rules, "--passes=" + passes});
  };
  std::string rewritten = opt("RootOfSquare").out, composed = opt("product_bias,RootOfSquare").out;
  CHECK(contains(rewritten, "R.maximum("));
  CHECK(!contains(rewritten, "R.nn.relu("));
  CHECK(contains(rewritten, "R.nn.softmax("));
  CHECK(!contains(rewritten, "product_bias"));
  CHECK(contains(composed, "cls.product_bias("));
  CHECK(contains(composed, "R.maximum("));
  CHECK(contains(opt("second_softmax").out, "R.call_tir(cls.second_softmax"));
  CHECK(contains(opt("RootOfSquares").err, "unknown pass 'RootOfSquares'; did you mean 'RootOfSquare'?"));
  Words printing = {"run", model, "--kernels", rules, "--passes=RootOfSquare,default", "--print-after=RootOfSquare"};
  CHECK(contains(own_kernels_tool(printing).err, "# after RootOfSquare\n"));
  CHECK(!test::matches(own_kernels_tool({"opt", "--list-passes", "--kernels", rules}).out,
                       "rules of --kernels:\nproduct_bias .*\nRootOfSquare ")
             .empty());
  std::string fuse = folder.write("fuse.py", "@S.pattern\ndef fuse(x):\n    return R.exp(R.exp(x))\n");
  CHECK(contains(own_kernels_tool({"opt", model, "--kernels", fuse, "--passes=fuse"}).err,
                 "'fuse' is a rule of --kernels and a pass; give the rule another name"));
}

namespace {

// A product that reads its right operand in panels of 8 columns, or the padding of the last panel.
std::string panels(const std::string& layout, const std::string& element, const std::string& more = "") {
  return "@S.implements(\"matmul\", node=\"second\", layout={" + layout + "}" + more + R"()
@T.prim_func
def panels(x: T.Buffer(("n", "k"), "float32"), w: T.Buffer(("p", "k", 8), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j, r in T.grid(n, m, k):
        with T.block("y"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + )" +
         element + "\n";
}

}  // namespace

TEST_CASE("an index out of range names the line of the kernel, whatever was fused with it", "[tools]") {
  OwnKernels folder;
  OnnxModel model;
  model.input("x", kFloat32, "n,4").output("z");
  model.node("Exp", "x", "e"), model.node("Softmax", "e", "y"), model.node("Relu", "y", "z");
  const std::string file = folder.write("fused.onnx", model), kernels = folder.write("kernels.py", R"(
@S.implements("nn.softmax")
@T.prim_func
def next_one(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj + T.if_then_else(vi < 0, 0, 1)]
)");
  for (const char* how : {"--check-bounds", "--interpret"}) {
    const Outcome outcome = own_kernels_tool({"run", file, "--kernels", kernels, how});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, "index 4 of dim 1 is out of range [0, 4) (" + kernels + ":8:25)"));
  }
}

TEST_CASE("a kernel reads a constant operand in its own layout, padded with zeros", "[tools]") {
  OwnKernels folder;
  const std::string model = folder.perceptron(), layout = "\"w\": lambda k, j: (j // 8, k, j % 8)";
  std::string in_panels = folder.write("panels.py", panels(layout, "x[vi, vr] * w[vj // 8, vr, vj % 8]"));
  OwnKernels::Run with = folder.run(model, {"--dim", "n=5", "--kernels", in_panels});
  CHECK(contains(with.out, "panels / second"));
  CHECK(tools::compare("y", with.y, folder.run(model, {"--dim", "n=5"}).y, 1e-5, 1e-6) == "");
  // 20 columns are two panels and a half: the rest of the third one is 0, so that all products are equal.
  std::string padding = folder.write("padding.py", panels(layout, "x[vi, vr] * w[2, vr, 4 + vj % 4]"));
  Tensor equal = folder.run(model, {"--dim", "n=5", "--kernels", padding}).y;
  for (int64_t i = 0; i < equal.size(); ++i) CHECK(equal.as_double(i) == Approx(0.05));

  auto refusal = [&](const std::string& maps) {
    std::string file = folder.write("refused.py", panels(maps, "w[0, 0, 0]"));
    Outcome outcome = own_kernels_tool({"explain", model, "--kernels", file});
    CHECK(own_kernels_tool({"run", model, "--kernels", file}).exit_code == outcome.exit_code);
    return outcome.out + outcome.err;
  };
  CHECK(contains(refusal("\"x\": lambda i, k: (k, i)"), "operand 'x' is not constant"));
  CHECK(contains(refusal("\"y\": lambda i, k: (k, i)"), "'y' is a result, and layout= is for operands"));
  CHECK(contains(refusal("\"w\": lambda k, j: (j % 8, k, 0)"),
                 "the layout of operand 'w' is not known to be one to one: iterations of"));
  CHECK(contains(refusal("\"w\": lambda k, j: (j - 30, k, 0)"), "gives positions of which the range is not known"));
  CHECK(contains(refusal("\"w\": lambda k: (k, 0, 0)"), "takes 1 positions, and the tensor has rank 2"));
  CHECK(contains(refusal("\"w\": lambda k, j: (j // 4, k, j % 4)"), "is 4, expected 8"));
  CHECK(contains(refusal("\"v\": lambda k, j: (k, j)"), "'panels' has no buffer 'v'; it has: x, w, y"));
  CHECK(contains(refusal("\"w\": lambda k, j: (k * 10000000000, j * 10000000000, 0)"), "spreads the elements over"));
}
