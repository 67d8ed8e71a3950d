// relaxc fmt, check, diff, opt --bisect and compile --emit=trace as a user runs them.
#include <unistd.h>
#include <regex>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "tests/folder.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

namespace {

namespace fs = std::filesystem;
using relaxc::test::Outcome;

const std::string kSource = RELAXC_SOURCE_DIR;
const std::string kProgramFile = kSource + "/tests/modules/matmul_relu.py",
                  kOnnxFile = kSource + "/examples/digits/digits.onnx";

Outcome relaxc_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return relaxc::test::run_program(arguments, 300);
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("fmt prints canonical text, and prints that as itself", "[tools]") {
  test::Folder folder("text");
  Outcome once = relaxc_command({"fmt", kProgramFile});
  REQUIRE(once.exit_code == 0);
  std::string file = folder.write("once.py", once.out);
  CHECK(relaxc_command({"fmt", file}).out == once.out);
  std::string loose = folder.write("loose.py", "# a comment that goes\n" + once.out);
  CHECK(relaxc_command({"fmt", "-i", loose}).exit_code == 0);
  CHECK(folder.read("loose.py") == once.out);
  Outcome later = relaxc_command({"fmt", file, "--dialect", "0.26"});
  CHECK(contains(later.out, "out_ty="));
  CHECK(contains(later.out, "T.sblock("));
  CHECK(relaxc_command({"fmt", "-i", kOnnxFile}).exit_code == 2);
}

TEST_CASE("large constants go to a file beside the text and come back", "[tools]") {
  test::Folder folder("text");
  std::string side = (folder.path / "digits.safetensors").string();
  Outcome printed = relaxc_command({"fmt", kOnnxFile, "--constants", side});
  REQUIRE(printed.exit_code == 0);
  std::string text = folder.write("digits.py", printed.out);
  CHECK(contains(printed.out, "I.load_safetensors(\"digits.safetensors\")"));
  Outcome same = relaxc_command({"diff", text, kOnnxFile});
  CHECK(same.exit_code == 0);
  CHECK(relaxc_command({"run", text, "--test-data", kSource + "/examples/digits/test_data_set_0", "--atol", "1e-4"})
            .exit_code == 0);
  std::string bytes = folder.read("digits.safetensors");
  // In place, with the file that the constants come from: nothing is lost.
  CHECK(relaxc_command({"fmt", "-i", text, "--constants", side}).exit_code == 0);
  CHECK(folder.read("digits.py") == printed.out);
  CHECK(folder.read("digits.safetensors") == bytes);
  CHECK(relaxc_command({"fmt", text, "--constants", "/nowhere/c.safetensors"}).exit_code == 1);
  // All inline, and all beside.
  Outcome whole = relaxc_command({"fmt", text, "--inline", "1000000", "--constants", side});
  CHECK(!contains(whole.out, "metadata"));
  CHECK(relaxc_command({"diff", folder.write("whole.py", whole.out), kOnnxFile}).exit_code == 0);
  std::string all = (folder.path / "all.safetensors").string();
  Outcome none = relaxc_command({"fmt", text, "--inline", "0", "--constants", all});
  CHECK(relaxc_command({"diff", folder.write("none.py", none.out), kOnnxFile}).exit_code == 0);
  CHECK(fs::file_size(all) > bytes.size());
  CHECK(relaxc_command({"fmt", text, "--inline", "4"}).exit_code == 2);
  auto refused = [&](const std::string& contents, const std::string& what) {
    folder.write("digits.safetensors", contents);
    Outcome outcome = relaxc_command({"check", text});
    INFO(outcome.how_it_ended() << ": " << outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, what));
  };
  refused(bytes.substr(0, bytes.size() - 1), "stands at");
  refused(bytes.substr(0, 20), "truncated");
  refused("", "truncated");
  std::string other = bytes;
  other.replace(other.find("F32"), 3, "F99");
  refused(other, "dtype F99");
  folder.write("digits.safetensors", bytes);
  std::string elsewhere = printed.out;
  elsewhere.replace(elsewhere.find("digits.safetensors"), 18, "../../etc/passwd");
  CHECK(contains(relaxc_command({"check", folder.write("elsewhere.py", elsewhere)}).err, "without a path"));
}

TEST_CASE("check reports every error with its place", "[tools]") {
  test::Folder folder("text");
  CHECK(contains(relaxc_command({"check", kProgramFile}).out, "no errors"));
  std::string file = folder.write("wrong.py",
                                  "@R.function\n"
                                  "def main(x: R.Tensor((2, 3), \"float32\")):\n"
                                  "    y = R.nn.rleu(x)\n"
                                  "    z = R.add(x, R.const([1.0, 2.0], \"float32\"))\n"
                                  "    w = R.matmul(x, q)\n"
                                  "    return x\n");
  Outcome outcome = relaxc_command({"check", file});
  CHECK(outcome.exit_code == 1);
  for (const char* part : {"wrong.py:3:9", "R.nn.relu", "wrong.py:4:9", "wrong.py:5:21", "undefined name 'q'", "^"})
    CHECK(contains(outcome.err, part));
}

namespace {

constexpr const char* kTwoFunctions = R"(@I.ir_module
class Module:
    @T.prim_func
    def k(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)

    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            lv0 = R.exp(x)
            lv1 = R.call_tir(cls.k, (lv0,), out_sinfo=R.Tensor((4, 4), "float32"))
            lv2 = R.sum(lv1, axis=[1])
            R.output(lv2)
        return lv2
)";

}  // namespace

TEST_CASE("diff says in words where two modules differ first, and shows both lines", "[tools]") {
  struct Row {
    const char *from, *to;
    std::vector<const char*> parts;
  };
  const std::vector<Row> rows = {
      {"axis=[1]",
       "axis=[-1]",
       {"main: binding lv2, R.sum, attribute axis: [1] and [-1]\n", "left.py:16:19\n", "right.py:16:19\n",
        "lv2 = R.sum(lv1, axis=[1])", "lv2 = R.sum(lv1, axis=[-1])"}},
      {"            lv2 = R.sum(lv1,",
       "            new = R.add(lv1, lv1)\n            lv2 = R.sum(new,",
       {"main: binding new = R.add(lv1, lv1) stands only on the right\n", "right.py:16:13\n"}},
      {"R.exp(x)", "R.sqrt(x)", {"main: binding lv0, operator: R.exp and R.sqrt\n"}},
      {"(lv0,)", "(x,)", {"main: binding lv1, R.call_tir, argument 1, item 0: lv0 and x\n"}},
      {"\"copy\"", "\"other\"", {"k: loop i, loop j, name: \"copy\" and \"other\"\n", "left.py:6:18", "right.py:6:18"}},
      {"T.float32(2)",
       "T.float32(3)",
       {"block \"copy\", store to B, the stored value, left operand, right operand: 2.0 and 3.0\n"}},
      {"T.grid(4, 4)", "T.grid(4, 2)", {"k: loop i, loop j, extent: 4 and 2\n"}},
      {"A: T.Buffer((4, 4)", "A: T.Buffer((4, 8)", {"k: parameter A, dim 1: 4 and 8\n", "left.py:4:27"}},
      {"                B[vi, vj] =",
       "                A[vi, vj] = T.float32(0)\n                B[vi, vj] =",
       {"block \"copy\": A[vi, vj] = T.float32(0.0) stands only on the right\n", "right.py:8:17"}},
      {"def k(", "def l(", {"function 'k' is missing on the right; 'l' there is equal to it\n", "def l("}},
      {"    @T.prim_func",
       "    @T.prim_func\n    def more(A: T.Buffer((1,), \"int8\")):\n        A[0] = T.int8(1)\n    @T.prim_func",
       {"function 'more' is missing on the left\n", "def more("}},
      {"-> R.Tensor((4,), \"float32\")", "-> R.Tensor((4,))", {"main: result type", "float32 and nothing\n"}},
      {"    @T.prim_func",
       "    I.module_attrs({\"version\": 3})\n    @T.prim_func",
       {"module, attribute version: nothing and 3\n"}},
  };
  test::Folder folder("text");
  std::string left = folder.write("left.py", kTwoFunctions);
  for (const Row& row : rows) {
    std::string text = kTwoFunctions;
    size_t at = text.find(row.from);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string(row.from).size(), row.to);
    if (std::string(row.from) == "def k(") text.replace(text.find("cls.k"), 5, "cls.l");
    Outcome outcome = relaxc_command({"diff", left, folder.write("right.py", text)});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 1);
    for (const char* part : row.parts) {
      INFO(part);
      CHECK(contains(outcome.out, part));
    }
  }
  CHECK(relaxc_command({"diff", kProgramFile, kProgramFile}).out == "equal\n");
  CHECK(relaxc_command({"diff", kProgramFile}).exit_code == 2);
}

TEST_CASE("check reports the errors of reader, types and verifier in one run, in the order of the text", "[tools]") {
  const std::string text = R"(@I.ir_module
class Module:
    @T.prim_func
    def reads_too_little(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes(B[vi])
                B[vi] = A[vi]  # T11
    @T.prim_func
    def unread(A: T.Buffer((4,), "float32")):
        for i in range(4)  # ':' after the head
            A[i] = undefined  # 'undefined'
        A[0] = T.exq(A[1])  # did you mean `T.exp`
    @T.prim_func
    def unbound(A: T.Buffer((4,), "float32")):
        with T.attr(0, "a", 1):
            n = A[0] > T.float32(1)
        A[1] = T.Select(n, A[0], A[2])  # 'n'
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        a = R.add(x, R.const([1.0, 2.0], "float32"))  # 3 and 2
        b = R.nn.rleu(a)  # did you mean `R.nn.relu`
        c = R.matmul(b, q)  # 'q'
        d: R.Tensor((2, 3), "float32" = R.exp(x)  # '(' was never closed
        return R.add(c, d)
    @R.function
    def wrong_result(x: R.Tensor((2, 3), "float32")):
        y: R.Tensor((2, 4), "float32") = R.exp(x)  # G11
        return y
    @R.function
    def impure(x: R.Tensor((2, 3), "float32")):
        y = R.call_packed("f", x, sinfo_args=R.Tensor((2, 3), "float32"))  # G6
        return y
    @R.function
    def depends(x: R.Tensor((2, 3), "float32")):
        cls = Module
        y: R.Tensor((2, 4), "float32") = cls.main(x)
        return y
)";
  test::Folder folder("text");
  Outcome outcome = relaxc_command({"check", folder.write("many.py", text)});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  // Each comment of the text is an error of its line; there are no others, and they come in this order.
  std::vector<std::pair<size_t, std::string>> expected;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (size_t mark = line.find("  # "); mark != std::string::npos)
      expected.emplace_back(number, line.substr(mark + 4));
  }
  REQUIRE(expected.size() >= 10);
  size_t at = 0, reported = 0;
  for (const std::string severity : {"error: ", "warning: "}) {
    for (size_t i = outcome.err.find(severity); i != std::string::npos; i = outcome.err.find(severity, i + 1))
      ++reported;
  }
  CHECK(reported == expected.size());
  for (const auto& [line, part] : expected) {
    INFO(line << ": " << part);
    size_t place = outcome.err.find("many.py:" + std::to_string(line) + ":", at);
    REQUIRE(place != std::string::npos);
    CHECK(outcome.err.find(part, place) < outcome.err.find("many.py:", place + 1));
    at = place + 1;
  }
}

TEST_CASE("carets stand below what is meant", "[tools]") {
  test::Folder folder("text");
  Outcome outcome = relaxc_command({"check", folder.write("carets.py", R"(@R.function
def f(x: R.Tensr((4,), "float32")):
    return x
@T.prim_func
def g(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    n = T.int32()
    A[n] = B[0]
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            T.reads()
            T.writes(A[vi])
            A[vi] = A[vi] + B[vi]
)")});
  INFO(outcome.err);
  for (const char* part :
       {"  def f(x: R.Tensr((4,), \"float32\")):\n           ^^^^^^^\n", "      A[n] = B[0]\n        ^\n",
        "              A[vi] = A[vi] + B[vi]\n                      ^^^^^\n",
        "              A[vi] = A[vi] + B[vi]\n                              ^^^^^\n"})
    CHECK(contains(outcome.err, part));
}

TEST_CASE("the list of operators is named only where an operator is not supported", "[tools]") {
  test::Folder folder("text");
  Outcome other = relaxc_command({"check", folder.write("other.py",
                                                        "@T.prim_func\n"
                                                        "def f(A: T.Buffer((4,), \"float32\")):\n"
                                                        "    T.prefetch(A, 0)\n")});
  CHECK(other.exit_code == 3);
  CHECK(!contains(other.err, "--list-"));
}

TEST_CASE("bisecting by a folder that does not exist is wrong usage", "[tools]") {
  Outcome outcome = relaxc_command({"opt", kProgramFile, "--bisect", "--reference", kSource + "/no_such_folder"});
  CHECK(outcome.exit_code == 2);
  CHECK(contains(outcome.err, "--reference: Directory does not exist: " + kSource + "/no_such_folder"));
}

TEST_CASE("what a file of schedules did is printed as one that does it again", "[tools]") {
  test::Folder folder("text");
  const std::string examples = kSource + "/examples/schedules/";
  const std::string product = folder.write("product.py", R"(@R.function
def main(x: R.Tensor((6, 10), "float32"), w: R.Tensor((10, 16), "float32"), b: R.Tensor((16,), "float32")):
    with R.dataflow():
        y = R.nn.relu(R.add(R.matmul(x, w), b))
        R.output(y)
    return y
)");
  // A program of the module's is scheduled where it stands alone and where something is fused to it.
  const std::string own = folder.write("own.py", R"(@I.ir_module
class Module:
    @T.prim_func(private=True)
    def own(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
        for i, j in T.grid(8, 64):
            with T.block("T_add"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)
    @R.function
    def main(x: R.Tensor((8, 64), "float32"), b: R.Tensor((64,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            c = R.call_tir(Module.own, (a,), out_sinfo=R.Tensor((8, 64), "float32"))
            d = R.tanh(R.add(c, b))
            e = R.call_tir(Module.own, (d,), out_sinfo=R.Tensor((8, 64), "float32"))
            R.output(e)
        return e
)");
  const std::string own_schedule = folder.write("own_schedule.py", R"(@S.schedule("own")
def rows(sch):
    sch.work_on("own")
    behind = sch.merge_epilogue("T_add")
    i, j = sch.get_loops("own")
    sch.parallel(i)
)");
  struct Row {
    std::string program, schedules;
    std::vector<const char*> parts;
  };
  const Row kRows[] = {
      {own,
       own_schedule,
       {"@S.schedule(\"own\")\ndef rows(sch):\n", "@S.schedule(\"fused_own_add_tanh\")\n@S.rule(\"own\")\ndef rows("}},
      {own,
       folder.write("own_use.py", "S.use(\"default\", function=\"own\")\n"),
       {"S.use(\"default\", function=\"own\", ", "S.use(\"default\", function=\"fused_own_add_tanh\", op=\"own\", "}},
      {examples + "matmul.py",
       examples + "step5.py",
       {"@S.schedule(\"matmul\")\ndef blocked(sch):\n    block = sch.get_block(\"C\")\n"}},
      // A rule for convolutions makes those direct that it fits, and no others.
      {kOnnxFile, examples + "conv2d.py", {"S.use(\"convolution_algorithm\", at=", "def tile_conv2d(sch):\n"}},
      {kOnnxFile, folder.write("use.py", "S.use(\"default\")\n"), {"S.use(\"default\", function=\"fused_"}},
      {kOnnxFile,
       folder.write("never.py", "@S.rule(\"relax.nn.conv2d\")\ndef never(sch):\n    assert False\n"),
       {"S.use(\"convolution\", function=\"fused_conv2d_add_relu\", decisions={"}},
      // A schedule that is refused after all of its steps leaves no trace; the built-in rule's stands there instead.
      {kOnnxFile,
       folder.write("refused.py",
                    "@S.rule(\"nn.conv2d\")\ndef refused(sch):\n    sch.transform_layout(\"nn.conv2d\", (\"read\", 1), "
                    "lambda *i: (i[-1], *i[:-1]))\n"),
       {"S.use(\"convolution\", function=\"fused_conv2d_add_relu\", decisions={"}},
      {product,
       examples + "own_instruction.py",
       {"def fma_4x2_description(",
        "S.intrin(\"fma_4x2\", fma_4x2_description, fma_4x2_implementation)\n\n@S.schedule("}},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.program, row.schedules);
    auto emit = [&](const std::string& schedules, const std::string& level) {
      return relaxc_command(
          {"compile", row.program, "--schedules", schedules, "--target", "x86-64-v3", "--emit=" + level});
    };
    Outcome trace = emit(row.schedules, "trace");
    INFO(trace.out);
    REQUIRE(trace.exit_code == 0);
    for (const char* part : row.parts) CHECK(contains(trace.out, part));
    CHECK(!contains(trace.out, "def never"));
    CHECK(!contains(trace.out, "def refused"));
    std::string again = folder.write("again.py", trace.out);
    CHECK(emit(again, "trace").out == trace.out);
    CHECK(emit(again, "tir").out == emit(row.schedules, "tir").out);
  }
  auto uses_winograd = [](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"compile", kOnnxFile, "--target", "x86-64-v3", "--emit=tir"};
    words.insert(words.end(), flags.begin(), flags.end());
    return contains(relaxc_command(words).out, "winograd");
  };
  CHECK(uses_winograd({}));
  CHECK(uses_winograd({"--winograd-error", "0.8"}));
  CHECK(!uses_winograd({"--winograd-error", "0"}));
  CHECK(relaxc_command({"compile", kOnnxFile, "--winograd-error", "-1"}).exit_code != 0);
}

TEST_CASE("what passes make of a model can be read back with its constants", "[tools]") {
  test::Folder folder("text");
  const std::string side = folder.at("side.safetensors");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"opt", kOnnxFile, "--passes=simplify,kernels", "--constants", side},
        {"compile", kOnnxFile, "--emit=graph", "--constants", side},
        {"compile", kOnnxFile, "--emit=tir", "--inline", "1000000"}}) {
    CAPTURE(words);
    const std::string text = folder.write("model.py", relaxc_command(words).out);
    CHECK(relaxc_command({"run", text, "--test-data", kSource + "/examples/digits/test_data_set_0", "--atol", "1e-4"})
              .exit_code == 0);
  }
  const std::string without = folder.write("without.py", relaxc_command({"opt", kOnnxFile, "--passes=simplify"}).out);
  CHECK(contains(relaxc_command({"check", without}).err, "print the module with its constants: --constants FILE"));
  const Outcome two = relaxc_command({"compile", kOnnxFile, "--emit", "tir=" + folder.at("t.py"), "--emit",
                                      "graph=" + folder.at("g.py"), "--constants", side});
  CHECK(two.exit_code == 2);
  CHECK(contains(two.err, "--constants is one file, for the constants of one module"));
}

TEST_CASE("the traces of built-in rules are printed without a file of schedules", "[tools]") {
  test::Folder folder("text");
  auto emit = [&](const std::string& level, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"compile", kOnnxFile, "--target", "x86-64-v3", "--emit=" + level};
    words.insert(words.end(), more.begin(), more.end());
    return relaxc_command(words).out;
  };
  std::string trace = emit("trace");
  INFO(trace);
  for (const char* part : {"S.use(\"convolution\", function=\"fused_conv2d_add_relu\", decisions={",
                           "S.use(\"winograd\", function=\"fused_conv2d_winograd_add_relu\", decisions={",
                           "S.use(\"default\", function=\"softmax\", decisions={",
                           "\n# @S.schedule(\"softmax\")\n# def default(sch):\n#     "})
    CHECK(contains(trace, part));
  std::string again = folder.write("again.py", trace);
  CHECK(emit("trace", {"--schedules", again}) == trace);
  CHECK(emit("tir", {"--schedules", again}) == emit("tir"));
  // The steps do the same: without the decisions and the comment signs they are a file of schedules.
  std::string steps;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) steps += line.substr(2) + "\n";
  }
  // Only the name of the rule, which is noted for profiles, is another one.
  auto without_rules = [](const std::string& text) {
    return std::regex_replace(text, std::regex("\"rule\": \"[^\"]*\""), "\"rule\"");
  };
  CHECK(without_rules(emit("tir", {"--schedules", folder.write("steps.py", steps)})) == without_rules(emit("tir")));
}

TEST_CASE("schedules after the class of a module's file are read, rules and built-in ones alike", "[tools]") {
  test::Folder folder("text");
  std::ostringstream program;
  program << std::ifstream(kSource + "/examples/schedules/matmul.py").rdbuf();
  for (const char* schedules : {"S.use(\"no_such_rule\")\n", "@S.rule(\"no_such_op\")\ndef f(sch):\n    pass\n"}) {
    Outcome outcome =
        relaxc_command({"compile", folder.write("both.py", program.str() + "\n" + schedules), "--emit=loops"});
    INFO(outcome.err);
    CHECK(contains(outcome.err, "no_such_"));
  }
}

TEST_CASE("a list of passes that stops before kernels are lowered is told of", "[tools]") {
  for (const auto& [passes, error] : {std::pair("simplify", "or the list of passes stops before 'legalize'"),
                                      std::pair("simplify,kernels", "end it with 'lower'")}) {
    Outcome outcome = relaxc_command({"compile", kOnnxFile, "--emit=bytecode", std::string("--passes=") + passes});
    INFO(outcome.err);
    CHECK(outcome.exit_code != 0);
    CHECK(contains(outcome.err, error));
  }
}

TEST_CASE("schedules that nothing would use are told of", "[tools]") {
  test::Folder folder("text");
  auto check = [&](const std::string& text, const std::string& model = kSource + "/examples/schedules/matmul.py") {
    return relaxc_command({"compile", model, "--schedules", folder.write("schedules.py", text), "--emit=loops"});
  };
  Outcome unknown = check("@S.rule(\"nn.conv7d\")\ndef tile(sch):\n    pass\n");
  CHECK(unknown.exit_code == 1);
  CHECK(test::matches(
            unknown.err,
            "schedules.py:2:5: error: there is no operator 'nn.conv7d'; did you mean 'nn.conv[123]d'\\?; relaxc "
            "opt --list-ops lists them")
            .size() == 1);
  CHECK(contains(check("S.use(\"contraction\", op=\"matmull\")\n").err,
                 "schedules.py:1:1: error: there is no operator 'matmull'; did you mean 'matmul'?"));
  // Operators of the table, held by a program or not, and one that only passes make.
  for (const char* op : {"nn.conv2d", "relax.nn.conv2d", "nn.conv3d", "nn.conv2d_winograd"}) {
    CAPTURE(op);
    Outcome known = check(fmt::format("@S.rule(\"{}\")\ndef tile(sch):\n    pass\n", op), kOnnxFile);
    CHECK(known.exit_code == 0);
    CHECK(!contains(known.err, "warning"));
    CHECK(contains(known.err, "rule 'tile' is applied to 'fused_conv2d") == !contains(std::string(op), "3d"));
  }
  // S.use names a rule for the model at hand.
  struct Row {
    const char *use, *warning;
  };
  const Row kRows[] = {
      {"S.use(\"convolution\", rows=2)",
       "no tensor program holds an operator 'nn.conv2d'; rule 'convolution' is not used"},
      {"S.use(\"winograd\")", "holds an operator 'nn.conv2d_winograd'; rule 'winograd' is not used"},
      {"S.use(\"contraction\", op=\"nn.conv3d\")", "an operator 'nn.conv3d'; rule 'contraction' is not used"},
      {"S.use(\"image_layout\", block=0)", "the graph holds no operator 'nn.conv2d'; rule 'image_layout' is not used"}};
  for (const Row& row : kRows) {
    CAPTURE(row.use);
    Outcome unused = check(row.use);
    CHECK(unused.exit_code == 0);
    CHECK(contains(unused.err, "schedules.py:1:1: warning: "));
    CHECK(contains(unused.err, row.warning));
  }
  CHECK(!contains(check("S.use(\"convolution\")\nS.use(\"image_layout\", block=0)\n", kOnnxFile).err, "warning"));
  Outcome twice =
      check("@S.schedule(\"matmul\")\ndef a(sch):\n    pass\n\n@S.schedule(\"matmul\")\ndef b(sch):\n    pass\n");
  CHECK(twice.exit_code == 1);
  CHECK(contains(twice.err, "schedules.py:6:5: error: function 'matmul' has a schedule already, 'a' in line 2"));
  Outcome two_names = check("@S.schedule(\"matmul\")\n@S.schedule(\"other\")\ndef a(sch):\n    pass\n");
  CHECK(contains(two_names.err, "schedules.py:2:2: error: 'a' has @S.schedule(\"matmul\") already"));
  // A definition of a file works on one program.
  for (const char* step : {"sch.work_on(\"g\")", "sch.get_block(\"C\", func_name=\"g\")"}) {
    Outcome other = check(fmt::format("@S.schedule(\"matmul\")\ndef a(sch):\n    {}\n", step));
    CHECK(contains(other.err, "schedules.py:3:5: error: this schedule sees tensor program 'matmul' alone"));
  }
}

TEST_CASE("schedules beside the programs of a module", "[tools]") {
  test::Folder folder("text");
  auto read = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string schedules = kSource + "/examples/schedules/", module = schedules + "matmul.py";
  const std::string text = read(module) + "\n" + read(schedules + "step2.py");
  std::string file = folder.write("both.py", text);
  Outcome own = relaxc_command({"compile", file, "--emit=loops"});
  CHECK(own.exit_code == 0);
  CHECK(own.out == relaxc_command({"compile", module, "--schedules", schedules + "step2.py", "--emit=loops"}).out);
  CHECK(own.out != relaxc_command({"compile", module, "--emit=loops"}).out);
  CHECK(contains(own.err, "'vectors' is applied to 'matmul'"));
  CHECK(relaxc_command({"check", file}).exit_code == 0);
  CHECK(contains(relaxc_command({"fmt", file}).err, "are not printed"));
  CHECK(relaxc_command({"fmt", "-i", file}).exit_code != 0);
  CHECK(read(file) == text);
  // A mistake stands at its line of the module's file.
  std::string wrong = text;
  size_t at = wrong.find("get_block(\"C\")");
  wrong.replace(at, 14, "get_block(\"D\")");
  Outcome error = relaxc_command({"compile", folder.write("wrong.py", wrong), "--emit=loops"});
  CHECK(error.exit_code == 1);
  CHECK(contains(
      error.err,
      "wrong.py:" + std::to_string(1 + std::count(wrong.begin(), wrong.begin() + static_cast<long>(at), '\n')) + ":"));
}
