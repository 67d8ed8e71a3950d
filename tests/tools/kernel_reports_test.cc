// What relaxc says about kernels and rules of a file: why a kernel is not fused, which rules reach it, how to reproduce
// a failure, and what is wrong with object files.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "frontend/onnx/test_data.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::OnnxModel;
using test::Outcome;
namespace fs = std::filesystem;

namespace {

struct Reports : test::Folder {
  Reports() : Folder("kernel_reports") {}
  // Products with constants, the first with a bias behind it.
  std::string products(int64_t columns = 40, int64_t results = 16) const {
    OnnxModel model;
    model.input("x", kFloat32, "n,24").output("y");
    model.constant("w", test::numbers({24, columns})).constant("b", test::numbers({columns}));
    model.constant("v", test::numbers({columns, results}));
    model.node("MatMul", "x w", "first"), model.node("Add", "first b", "bias");
    model.node("MatMul", "bias v", "y");
    return write("products.onnx", model.proto().SerializeAsString());
  }
  // Writes an input of so many rows for products().
  std::string write_x(int64_t rows) const {
    std::string file = at(fmt::format("x{}.npy", rows));
    write_npy(file, test::numbers({rows, 24}));
    return file;
  }
  static Outcome tool(std::vector<std::string> words) {
    words.insert(words.begin(), RELAXC_TOOL);
    return test::run_program(words, 300);
  }
};

// A product; `stored` stands for what its block stores, `behind` for more statements of its loops.
std::string product(const std::string& stored, const std::string& behind = "") {
  return R"(@S.implements("matmul")
@T.prim_func
def mm(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    for i, j, l in T.grid(m, n, k):
        with T.block("mm"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                c[vi, vj] = T.float32(0)
            )" +
         stored + "\n" + behind + "\n";
}
constexpr const char* kProduct = "c[vi, vj] = c[vi, vj] + a[vi, vl] * b[vl, vj]";
constexpr const char* kTile = R"(
def tile(sch):
    i, j, k = sch.get_loops("mm")
    j0, j1 = sch.split(j, [None, 8], disable_predication=True)
    sch.vectorize(j1)
)";

}  // namespace

TEST_CASE("explain says why a kernel is not fused", "[tools]") {
  Reports folder;
  std::string model = folder.products();
  auto explained = [&](const std::string& text) {
    Outcome outcome = Reports::tool({"explain", model, "--kernels", folder.write("k.py", text)});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.out;
  };
  CHECK(!contains(explained(product(kProduct)), "is not fused"));
  CHECK(!contains(explained(product("value = a[vi, vl] * b[vl, vj]\n            c[vi, vj] = c[vi, vj] + value")),
                  "is not fused"));
  CHECK(contains(explained(product(kProduct, "    T.evaluate(0)")),
                 "    kernel 'mm' is not fused with its neighbours: it is not a list of blocks"));
  CHECK(contains(explained(product("c[vi, vj] = c[vi, vj] + a[vi, vl] * b[vl, vj]\n            c[vi, vj] += 0.0")),
                 "is not fused with its neighbours: block 'mm' does more than one store"));
}

TEST_CASE("a rule for an operator reaches a kernel that implements it", "[tools]") {
  Reports folder;
  std::string model = folder.products();
  auto report = [&](const std::string& schedules) {
    std::string file = folder.write("k.py", product(kProduct) + schedules);
    Outcome outcome = Reports::tool({"run", model, "--dim", "n=3", "--kernels", file});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.err;
  };
  // Both products have constant columns, alone and fused, without which the split would be refused.
  std::string of_rule = report(std::string("\n@S.rule(\"matmul\")") + kTile);
  CHECK(contains(of_rule, "schedule rule 'tile' is applied to 'fused_mm_add'"));
  CHECK(contains(of_rule, "schedule rule 'tile' is applied to 'mm"));
  CHECK(!contains(report(std::string("\n@S.rule(\"nn.conv2d\")") + kTile), "is applied"));
  // A schedule for the kernel comes first.
  std::string own = std::string("\n@S.rule(\"matmul\")") + kTile +
                    "\n@S.schedule(\"mm\")\ndef mine(sch):\n    sch.merge_epilogue(\"mm\")\n";
  std::string of_both = report(own);
  CHECK(contains(of_both, "schedule rule 'mine' is applied to 'fused_mm_add'"));
  CHECK(!contains(of_both, "'tile' is applied"));
}

TEST_CASE("printed tensor programs name the nodes that they come from", "[tools]") {
  Reports folder;
  Outcome outcome = Reports::tool({"compile", folder.products(), "--emit", "tir"});
  INFO(outcome.out << outcome.err);
  CHECK(contains(outcome.out, "    # first, bias\n    @T.prim_func(private=True)\n    def fused_matmul_add("));
  CHECK(contains(outcome.out, "    # y\n    @T.prim_func(private=True)\n    def matmul"));
}

TEST_CASE("a command that compiles a model several times tells of its rules once", "[tools]") {
  Reports folder;
  const Outcome outcome = Reports::tool(
      {"run", folder.products(), "--accuracy", "--precision", "bf16", "--schedules",
       folder.write("idle.py", "@S.rule(\"matmul\")\ndef idle(sch):\n    block = sch.get_block(\"matmul\")\n")});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  const auto lines = test::matches(outcome.err, "schedule rule 'idle' [^\n]*\n");
  CHECK(!lines.empty());
  CHECK(std::set(lines.begin(), lines.end()).size() == lines.size());
}

TEST_CASE("a rule that is tried on many programs says in one line why it does not fit", "[tools]") {
  Reports folder;
  std::string rule = "@S.rule(\"matmul\")\ndef narrow(sch):\n    sch.vectorize(sch.get_loops(\"matmul\")[7])\n";
  Outcome outcome = Reports::tool({"run", folder.products(), "--dim", "n=3", "--kernels", folder.write("r.py", rule)});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.err, "schedule rule 'narrow' does not fit 'fused_matmul_add': "));
  CHECK(contains(outcome.err, "r.py:3:"));
  CHECK(contains(outcome.err, "(--emit=loops --stop-after=merge_kernels shows it)\n"));
  CHECK(std::ranges::count(outcome.err, '\n') == 2);
}

TEST_CASE("a reproducer names the files that its pass reads", "[tools]") {
  Reports folder;
  std::string wrong = product("c[vi, vj] = c[vi, vj] - a[vi, vl] * b[vl, vj]");
  fs::create_directories(folder.path / "own kernels");
  std::string file = folder.write("own kernels/k.py", wrong);
  Outcome outcome = Reports::tool({"opt", folder.products(), "--dim", "n=3", "--bisect", "--kernels", file,
                                   "--dump-dir", folder.at("dump"), "--target", "x86-64-v3"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "pass: apply_kernels"));
  std::string reproducer = outcome.out.substr(outcome.out.find("reproducer: ") + 12);
  CHECK(contains(reproducer, "--passes=apply_kernels --kernels '" + file + "' --target x86-64-v3\n"));
  // The same flags as words.
  std::string test = reproducer.substr(11, reproducer.find(" --passes") - 11);
  Outcome again = Reports::tool({"opt", test, "--passes=apply_kernels", "--kernels", file});
  INFO(again.err);
  CHECK(contains(again.out, "def mm("));
}

TEST_CASE("object files that cannot be linked get advice", "[tools]") {
  Reports folder;
  std::string source = folder.write("k.c",
                                    "#include <relaxc/kernel_abi.h>\nstatic volatile int32_t places[64];\n"
                                    "int32_t c_mm(const relaxc_kernel_args* a) { return places[a->scalars[0]]; }\n");
  std::string kernels = folder.write("k.py", R"(@S.implements("matmul")
@S.extern("c_mm")
def mm(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")): ...
)");
  std::string model = folder.products();
  auto error = [&](const char* command, const char* compiler, std::vector<std::string> flags) {
    std::vector<std::string> words = {
        compiler,         "-O1", "-c", source, "-o", folder.at("k.o"), "-I", RELAXC_BINARY_DIR "/public", "-I",
        RELAXC_SOURCE_DIR};
    words.insert(words.end(), flags.begin(), flags.end());
    Outcome built = test::run_program(words, 60);
    INFO(built.err);
    REQUIRE(built.exit_code == 0);
    words = {command, model, "--kernels", kernels, "--link", folder.at("k.o")};
    if (std::string(command) == "compile") words.insert(words.end(), {"-o", folder.at("k.so")});
    Outcome outcome = Reports::tool(words);
    CHECK(outcome.exit_code == 1);
    return outcome.err;
  };
  // Nobody has the function: the place that declares it is named.
  const Outcome missing = Reports::tool({"run", model, "--kernels", kernels, "--no-cache"});
  CHECK(missing.exit_code == 1);
  CHECK(contains(missing.err, "k.py:3:5: error: kernel 'c_mm' is missing; give the library that has it (--kernels "));
  for (const char* command : {"run", "compile"}) {
    CHECK(contains(error(command, "/usr/bin/gcc", {"-fno-pic", "-mcmodel=small"}), "recompile"));
    CHECK(contains(error(command, "/usr/bin/gcc", {"-fno-pic"}), "with -fPIC"));
    CHECK(contains(error(command, "/usr/bin/gcc", {"-fPIC", "-flto", "-fno-fat-lto-objects"}),
                   "compile it without -flto"));
    if (fs::exists("/usr/bin/clang"))
      CHECK(contains(error(command, "/usr/bin/clang", {"-fPIC", "-flto"}), "compile it without -flto"));
  }
}

TEST_CASE("names of fused programs keep the digits of the user's names", "[tools]") {
  Reports folder;
  std::string kernels = product(kProduct);
  kernels.replace(kernels.find("def mm("), 7, "def mm16(");
  Outcome outcome = Reports::tool(
      {"run", folder.products(), "--dim", "n=3", "--kernels", folder.write("k.py", kernels), "--profile"});
  INFO(outcome.out << outcome.err);
  CHECK(contains(outcome.out, "fused_mm16_add / "));
}

TEST_CASE("inputs and dims that are given twice, or that are not there, are errors", "[tools]") {
  Reports folder;
  std::string model = folder.products();
  auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 1, model);
    Outcome outcome = Reports::tool(words);
    CHECK(outcome.exit_code != 0);
    return outcome.err;
  };
  CHECK(contains(error({"run", "--dim", "n=3", "--input", "x=_", "--input", "x=_"}), "input 'x' is given twice"));
  CHECK(contains(error({"run", "--dim", "n=3", "--dim", "n=4"}), "'n=4': the dim is 3 already"));
  CHECK(contains(error({"compile", "--dim", "typo=3", "-o", folder.at("m.so")}),
                 "the model has no symbolic dim 'typo'; it has: n"));
}

TEST_CASE("a parallel loop whose iterations overwrite each other gets a warning", "[tools]") {
  Reports folder;
  std::string sums = R"(@S.implements("matmul")
@T.prim_func
def mm(a: T.Buffer(("m", "k"), "float32"), b: T.Buffer(("k", "n"), "float32"), c: T.Buffer(("m", "n"), "float32")):
    for i, j in T.grid(m, n):
        c[i, j] = T.float32(0)
    for l in T.parallel(k):
        for i, j in T.grid(m, n):
            c[i, j] = c[i, j] + a[i, l] * b[l, j]
)";
  const char* expected = "k.py:8:13: warning: several iterations of T.parallel loop 'l' write c[i, j]: ";
  std::string file = folder.write("k.py", sums), model = folder.products();
  CHECK(contains(Reports::tool({"check", file}).err, expected));
  CHECK(contains(Reports::tool({"compile", model, "--kernels", file, "-o", folder.at("m.so")}).err, expected));
  CHECK(contains(Reports::tool({"run", model, "--dim", "n=3", "--kernels", file, "--threads", "1"}).err, expected));
}

TEST_CASE("a kernel that leaves its buffers or does not sum is told of before it runs", "[tools]") {
  Reports folder;
  auto with_kernel = [&](const std::string& text) {
    return Reports::tool(
        {"compile", folder.products(), "--kernels", folder.write("k.py", text), "-o", folder.at("m.so")});
  };
  const std::string far = R"(@S.implements("nn.relu")
@T.prim_func
def mine(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("one"):
            v = T.axis.spatial(8, i)
            y[v] = x[v + 8]
)";
  const Outcome outside = with_kernel(far);
  CHECK(outside.exit_code == 0);
  CHECK(contains(outside.err, "k.py:7:20: warning: buffer 'x': index v + 8 of dim 0 is 15 where i = 7 of [0, 8)"));
  std::string spatial = product("c[vi, vj] = c[vi, vj] + a[vi, vl] * b[vl, vj]"), bare = spatial;
  spatial.replace(spatial.find("SSR"), 3, "SSS");
  const Outcome restarted = with_kernel(spatial);
  CHECK(restarted.exit_code == 1);
  CHECK(contains(restarted.err, "axis 'vl', which is spatial and does not choose the element"));
  CHECK(contains(Reports::tool({"check", folder.at("k.py")}).err, "declare 'vl' a reduce axis"));
  const size_t init = bare.find("            with T.init()"), sum = bare.find("            c[vi, vj] = c[");
  const Outcome unset = with_kernel(bare.erase(init, sum - init));
  CHECK(unset.exit_code == 0);
  CHECK(contains(unset.err, "c[vi, vj] is read before the program stores anything to 'c'"));
  CHECK(contains(Reports::tool({"check", folder.at("k.py")}).err, "c[vi, vj] is read before the program"));
}

TEST_CASE("check looks into the files of --kernels", "[tools]") {
  Reports folder;
  const std::string head =
      "@S.implements(\"nn.relu\")\n@T.prim_func\n"
      "def mine(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n"
      "    for i in range(8):\n        with T.block(\"one\"):\n            v = T.axis.spatial(8, i)\n";
  const std::string model = folder.write("m.py", R"(
@R.function
def main(x: R.Tensor((8,), "float32")):
    return R.nn.relu(x)
)");
  auto checked = [&](const std::string& kernels) { return Reports::tool({"check", model, "--kernels", kernels}); };
  const Outcome right = checked(folder.write("right.py", head + "            y[v] = x[v]\n"));
  INFO(right.out << right.err);
  CHECK(right.exit_code == 0);
  CHECK(contains(right.out, "m.py: 1 function, 1 kernel or pattern, no errors"));
  const Outcome wrong = checked(folder.write("wrong.py", head + "            y[v] = x[v + z]\n"));
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "wrong.py:7:"));
  CHECK(contains(checked(folder.write("far.py", head + "            y[v] = x[v + 8]\n")).err, "far.py:7:"));
  const Outcome other = checked(folder.write("model.onnx", "\x08\x07\x12\x07pytorch"));
  CHECK(other.exit_code == 1);
  CHECK(contains(
      other.err,
      "model.onnx: error: expected kernels or schedules as text, or a library of C kernels; it is an ONNX model\n"));
  CHECK(contains(checked(folder.write("none.py", "# none\n")).err, "neither a kernel nor a schedule stands in it"));
}

TEST_CASE("flags that reference data or a compiled file leave no room for are errors", "[tools]") {
  Reports folder;
  std::string module = folder.write("m.py", R"(
@R.function
def main(x: R.Tensor(("n",), "float32")):
    y = R.negative(x)
    return y
)"),
              artifact = folder.at("m.so"), data = folder.at("data");
  fs::create_directories(data);
  Tensor x = Tensor::of<float>({2}, kFloat32, {1, -2}), y = Tensor::of<float>({2}, kFloat32, {-1, 2});
  write_tensor_pb(data + "/input_0.pb", x, "x"), write_tensor_pb(data + "/output_0.pb", y, "y");
  auto says = [&](std::vector<std::string> words, int exit_code, const std::string& part) {
    words.insert(words.begin(), {"run", module, "--test-data", data});
    Outcome outcome = Reports::tool(words);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK(contains(outcome.out + outcome.err, part));
  };
  says({"--dim", "n=2"}, 0, "1 of 1 outputs agree");
  says({"--dim", "nope=2"}, 2, "no input has a dim 'nope'");
  says({"--dim", "n=3"}, 1, "--dim n=3 contradicts the reference data: dim 0 of input 'x' is 2");
  says({"--input", "x=[1,2]"}, 2, "the folder of reference data has the inputs");
  REQUIRE(Reports::tool({"compile", module, "-o", artifact}).exit_code == 0);
  Outcome late = Reports::tool({"run", artifact, "--passes=simplify"});
  CHECK(contains(late.err, "is compiled already; give --passes when it is compiled"));
}

TEST_CASE("a long line of a file is quoted around the error, and a library may have any name", "[tools]") {
  Reports folder;
  std::string text = "@T.prim_func\ndef main(x: T.Buffer((4,), \"float32\")):\n    x[0] = ";
  for (int i = 0; i < 400; ++i) text += "x[0] + ";
  text += "missing + ";
  for (int i = 0; i < 400; ++i) text += "x[0] + ";
  std::string error = Reports::tool({"run", folder.write("long.py", text + "x[0]\n")}).err;
  INFO(error);
  CHECK(contains(error, "... "));
  CHECK(contains(error, " + missing + "));
  CHECK(error.size() < 1000);
  std::string module = folder.write("m.py", "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    return x\n");
  fs::copy_file(RELAXC_MY_PASS, folder.at("lib.so.6"));
  error = Reports::tool({"run", module, "--kernels", folder.at("lib.so.6")}).err;
  CHECK(error.size() < 1000);
  CHECK(contains(error, "librar"));
}

TEST_CASE("a kernel that does not fit says so even where another comes first", "[tools]") {
  Reports folder;
  std::string second = product(kProduct);
  second.replace(second.find("def mm"), 6, "def wide").replace(second.find("\"k\")"), 4, "25)");
  std::string error = Reports::tool({"run", folder.products(), "--dim", "n=2", "--kernels",
                                     folder.write("k.py", product(kProduct) + second)})
                          .err;
  INFO(error);
  CHECK(contains(error, "kernel 'wide' is used nowhere: at 'y': dim 1 of input 'a' is 40, expected 25"));
  CHECK(contains(Reports::tool({"run", folder.products(), "--kernels",
                                folder.write("p.py", "@S.pattern\ndef two(x, w):\n    return R.nn.relu(x)\n")})
                     .err,
                 "p.py:2:5: warning: param 'w' of the pattern is not used, so that 'two' matches nothing"));
}

TEST_CASE("decisions for an operator reach a kernel that implements it, weights in panels included", "[tools]") {
  Reports folder;
  std::string model = folder.products(64, 64);  // whole panels on any machine
  auto outcome = [&](const std::string& command, const std::string& uses, std::vector<std::string> more) {
    std::vector<std::string> words = {command, model, "--kernels",
                                      folder.write("k.py", product(kProduct) + "\n" + uses)};
    words.insert(words.end(), more.begin(), more.end());
    Outcome result = Reports::tool(words);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result;
  };
  const std::string tile = "S.use(\"contraction\", op=\"matmul\", rows=4, copy_operand=True, specialize=[])\n";
  Outcome run = outcome("run", tile, {"--dim", "n=9", "--input", "x=" + folder.write_x(9)});
  CHECK(contains(run.err, "schedule rule 'contraction' is applied to 'fused_mm_add'"));
  Outcome plain = Reports::tool({"run", model, "--dim", "n=9", "--input", "x=" + folder.at("x9.npy")});
  CHECK(run.out == plain.out);
  // The constant operand is stored in panels of the rule's columns, not copied in each run.
  std::string loops = outcome("compile", tile, {"--emit", "loops"}).out;
  INFO(loops);
  CHECK(!test::matches(loops, "fused_mm_add\\w*\\(a float32\\[n, 24\\], \\w+ float32\\[\\d+, 24, \\d+\\]").empty());
  // Without S.use the built-in rule does that by itself, as the operand is constant.
  loops = outcome("compile", "", {"--emit", "loops"}).out;
  INFO(loops);
  CHECK(!test::matches(loops, "fused_mm_add\\w*\\(a float32\\[n, 24\\], \\w+ float32\\[\\d+, 24, \\d+\\]").empty());
  // A single row, and numbers just above a tile, have code of their own, which reads the same panels.
  CHECK(contains(loops, "if n == 1\n"));
  CHECK_FALSE(contains(loops, "w_global_1"));
  for (int rows : {1, 7, 8, 9}) {
    const std::vector<std::string> input = {"--dim", fmt::format("n={}", rows), "--input", "x=" + folder.write_x(rows)};
    std::vector<std::string> words = {"run", model};
    words.insert(words.end(), input.begin(), input.end());
    CHECK(outcome("run", "", input).out == Reports::tool(words).out);
  }
  // Without op= the rule's operator counts.
  CHECK(contains(outcome("run", "S.use(\"contraction\", rows=4, copy_operand=True)\n", {"--dim", "n=3"}).err,
                 "schedule rule 'contraction' is applied to 'mm'"));
}

TEST_CASE("a use of a rule that comes too late gets a warning", "[tools]") {
  Reports folder;
  auto warned = [&](const std::string& uses) {
    Outcome outcome =
        Reports::tool({"run", folder.products(), "--dim", "n=3", "--kernels", folder.write("u.py", uses)});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.err;
  };
  const std::string late = "warning: S.use(\"contraction\") of line 1 comes first wherever this one could be used";
  const std::string all = "S.use(\"contraction\", op=\"matmul\", rows=4)\n";
  const std::string one = "S.use(\"contraction\", function=\"fused_matmul_add\", rows=3)\n";
  CHECK(contains(warned(all + "S.use(\"contraction\", op=\"matmul\", step=2)\n"), "u.py:2:1: " + late));
  CHECK(contains(warned(all + one), "u.py:2:1: " + late));
  CHECK(!contains(warned(one + all), "comes first"));
  const std::string layout = "S.use(\"constant_operand\", panel=0)\n";
  CHECK(contains(warned(layout + layout), "S.use(\"constant_operand\") of line 1 comes first"));
  CHECK(!contains(warned("S.use(\"constant_operand\", at=\"y\", panel=16)\n" + layout), "comes first"));
}

TEST_CASE("a schedule behind a rule that fits its program is told of", "[tools]") {
  Reports folder;
  const std::string model = folder.products();
  const std::string pattern =
      "@S.pattern\ndef biased(x, w: S.constant, b: S.constant):\n    return R.add(R.matmul(x, w), b)\n\n";
  const std::string rule =
      "@S.rule(\"matmul\")\ndef any_product(sch):\n    sch.parallel(sch.get_loops(sch.get_block(\"matmul\"))[0])\n\n";
  const std::string schedule =
      "@S.schedule(\"biased\")\ndef by_hand(sch):\n    sch.parallel(sch.get_loops(\"matmul\")[0])\n\n";
  auto reported = [&](const std::string& command, const std::string& text) {
    Outcome outcome = Reports::tool({command, model, "--kernels", folder.write("k.py", text)});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome.err;
  };
  const char* late =
      "schedule rule 'by_hand' is not used for 'biased': 'any_product' of line 6 comes first and fits; put a schedule "
      "for one program before rules for operators";
  for (const char* command : {"explain", "run"}) {
    const std::string behind = reported(command, pattern + rule + schedule);
    INFO(behind);
    CHECK(contains(behind, late));
    const std::string before = reported(command, pattern + schedule + rule);
    INFO(before);
    CHECK(contains(before, "schedule rule 'by_hand' is applied to 'biased'"));
    CHECK(!contains(before, "is not used"));
  }
  Outcome wrong = Reports::tool({"explain", model, "--kernels",
                                 folder.write("k.py", pattern + "@S.schedule(\"biased\")\ndef by_hand(sch):\n"
                                                                "    sch.parallel(sch.get_loops(\"matmul\")[2])\n")});
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.out, "bias (Add): pattern 'biased'\n"));
  CHECK(contains(wrong.err, "error: parallel: "));
}

TEST_CASE("kernels of two files have names of their own", "[tools]") {
  Reports folder;
  std::string second = folder.write("b.py", product(kProduct));
  Outcome outcome = Reports::tool({"run", folder.products(), "--dim", "n=3", "--kernels",
                                   folder.write("a.py", product(kProduct)), "--kernels", second});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.err, "b.py:1:2: error: 'mm' is defined in " + folder.at("a.py") +
                                  ":1:2, too; give one of the two another name"));
}

TEST_CASE("a pattern that matches nowhere names the place where most of it does", "[tools]") {
  Reports folder;
  // The first product's result is used by the sum, and the second one has no sum behind it.
  const std::string pattern =
      "@S.pattern\ndef two(x, w: S.constant, b):\n    return R.matmul(x, w) + R.tanh(b)\n"
      "\n@S.pattern\ndef sums(x, w: S.constant, v: S.constant):\n"
      "    return R.matmul(R.nn.relu(R.matmul(x, w)), v)\n";
  std::string error =
      Reports::tool({"run", folder.products(), "--dim", "n=2", "--kernels", folder.write("p.py", pattern)}).err;
  INFO(error);
  CHECK(contains(error, "pattern 'sums' is used nowhere: at 'y': operand 0 of matmul is add, expected nn.relu"));
}

TEST_CASE("explain calls what a node holds by its name", "[tools]") {
  Reports folder;
  OnnxModel model;
  model.input("x", kFloat32, "n,4").output("y");
  model.constant("w", test::numbers({4, 4})).constant("b", test::numbers({4}));
  model.node("Gemm", "x w b", "y");
  const std::string pattern = "@S.pattern\ndef both(x, w: S.constant, b: S.constant):\n    return R.matmul(x, w) + b\n";
  Outcome outcome = Reports::tool({"explain", folder.write("gemm.onnx", model.proto().SerializeAsString()), "--kernels",
                                   folder.write("both.py", pattern)});
  CHECK(outcome.out == "y (Gemm): pattern 'both'\n");
}

TEST_CASE("names of a file of kernels that are near a right one say so", "[tools]") {
  Reports folder;
  auto error_of = [&](const std::string& text) { return Reports::tool({"check", folder.write("k.py", text)}).err; };
  const std::string pattern = "@S.pattern\ndef two(x, w: S.constant):\n    return R.nn.relu(R.matmul(x, w))\n\n",
                    kernel = product("c[vi, vj] = c[vi, vj] + a[vi, vl] * b[vl, vj]");
  auto implementing = [&](const std::string& what) {
    return "@S.implements(" + what + kernel.substr(kernel.find(")\n@T.prim_func"));
  };
  CHECK(contains(error_of(pattern + implementing("\"two\"")),
                 "there is no operator 'two', but a pattern: its name stands without quotes, S.implements(two)"));
  CHECK(contains(error_of(implementing("\"her.Swirl\"")), "a type of ONNX nodes is written \"her::Swirl\""));
  // Of S.extern: one name, and the broken line alone where a line is broken.
  const std::string declared = "def f(x: T.Buffer((4,), 'float32'), y: T.Buffer((4,), 'float32')): ...\n";
  CHECK(contains(error_of("@S.implements('exp')\n@S.extern('f', 'g')\n" + declared),
                 "k.py:2:16: error: S.extern takes one name, the symbol of a C function, found 2"));
  const std::string broken = error_of("@S.extern('f'\n");
  CHECK(contains(broken, "k.py:1:10: error: '(' was never closed"));
  CHECK_FALSE(contains(broken, "a file of schedules"));
  // A pattern that cannot be read is one error.
  std::string wrong = pattern + implementing("two");
  wrong.replace(wrong.find("nn.relu"), 7, "nn.relo");
  const std::string found = error_of(wrong);
  CHECK(contains(found, "there is no operator 'R.nn.relo'"));
  CHECK_FALSE(contains(found, "there is no pattern"));
  auto scheduled = [&](const std::string& line) {
    return Reports::tool({"compile", folder.products(), "-o", folder.at("m.so"), "--kernels",
                          folder.write("k.py", kernel + "\n@S.schedule(\"mm\")\ndef steps(sch):\n    " + line + "\n")})
        .err;
  };
  CHECK(contains(scheduled("print(sch)"),
                 "'sch' is the schedule, not a value; relaxc compile --emit=loops prints the loops"));
  CHECK(contains(scheduled("x = sch"),
                 "'sch' is the schedule, not a value; relaxc compile --emit=loops prints the loops"));
  CHECK(contains(scheduled("sch.show()"), ":5: error: a schedule is not shown while it runs; relaxc compile --emit="));
  // What a rule adds to a program without places of its own is told of at the rule.
  const std::string text = folder.write(
      "m.py", "@R.function\ndef main(x: R.Tensor((8, 8), \"float32\")):\n    y = R.nn.relu(x)\n    return y\n");
  const std::string annotated =
      Reports::tool({"compile", text, "-o", folder.at("m.so"), "--schedules",
                     folder.write("s.py",
                                  "@S.rule(\"nn.relu\")\ndef noting(sch):\n    block = sch.get_block(\"T_relu\")\n"
                                  "    sch.annotate(block, \"nonsense\", 1)\n")})
          .err;
  CHECK(contains(annotated, "s.py:2:5: warning: 'nonsense' of block 'T_relu' has no effect here: it is not known"));
  CHECK_FALSE(contains(annotated, "\n\n"));
}
