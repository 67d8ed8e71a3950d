// What is said about the user's kernels: why one does not fit, which are used nowhere, and what is wrong in their
// files.
#include "codegen/compile.h"
#include "passes/kernel_rules.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "tests/frontend/onnx_text.h"
#include "tests/text/harness.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

struct Said {
  std::string error, notes, claims;  // a line each
};

// Compiles the model with the kernels and schedules.
Said said_of(const std::string& model, const std::string& kernels) {
  Said said;
  try {
    CompileSettings settings;
    std::vector<std::string> unused;
    auto rules = read_kernel_rules(kernels, "k.py", op_table(), &unused);
    said.notes = joined(unused, "\n");
    settings.kernels = std::make_shared<const std::vector<KernelRule>>(std::move(rules));
    settings.schedules = read_schedule_rules(kernels, "k.py");
    settings.report = [&](const std::string& line) { said.notes += line + "\n"; };
    settings.claimed = [&](const Claim& claim) {
      if (!claim.by.empty())
        said.claims += fmt::format("{} {}: {}{}\n", claim.what, claim.by, claim.refused, claim.note);
    };
    ImportOptions options;
    options.kernels = node_kernels(*settings.kernels);
    for (const KernelRule& rule : *settings.kernels) {
      if (rule.pattern && !rule.node.empty()) options.asked_nodes.emplace_back(rule.node, rule.span);
    }
    options.report = settings.report;
    options.claimed = settings.claimed;
    compile(is_onnx_text(model) ? import_onnx_text(model, "model", options) : parse_text(model, "model"), settings);
  } catch (const std::exception& error) {
    said.error = error.what();
  }
  return said;
}

bool says(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text << "\n  lacks\n" << part);
  return text.find(part) != std::string::npos;
}

// Returns the text of a kernel on float32 matrices, with a body that fills the result.
std::string fill_kernel(const std::string& decorator, const std::string& name, const std::string& params) {
  return decorator + "\n@T.prim_func\ndef " + name + "(" + params + R"():
    for i, j in T.grid(n, m):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.float32(1)

)";
}
const std::string kX = R"(x: T.Buffer(("n", "m"), "float32"))", kY = R"(y: T.Buffer(("n", "m"), "float32"))",
                  kUnary = kX + ", " + kY;

constexpr const char* kTwoNodes = R"(<ir_version: 8, opset_import: ["" : 13, "com.me" : 1]>
g (float[n, 4] x, float[n, 4] w) => (float[n, 4] y, float[n, 4] z) {
  y = Softmax <axis = 1> (x)
  z = com.me.Twice <mode = "slow"> (w)
}
)";
constexpr const char* kBranches = R"(<ir_version: 8, opset_import: ["" : 13, "com.me" : 1]>
g (float[n, 4] x) => (float[n, 4] y)
<bool flag = {1}>
{
  y = If (flag) <
    then_branch = a () => (float[n, 4] t) { t = Relu (x) },
    else_branch = b () => (float[n, 4] u) { v = Softmax (x)
      u = com.me.Twice (v) }
  >
}
)";
constexpr const char* kLoop = R"(<ir_version: 8, opset_import: ["" : 13]>
g (float[n, 4] x) => (float[n, 4] y)
<int64 none = {0}, bool go = {1}>
{
  y = Loop (none, go, x) <
    body = b (int64 i, bool c, float[n, 4] s) => (bool d, float[n, 4] t) {
      d = Identity (c)
      t = Softmax (s)
    }
  >
}
)";
const std::string kTwice = fill_kernel("@S.implements('com.me::Twice')", "twice", kUnary);

}  // namespace

TEST_CASE("kernels, patterns and schedules that are used nowhere say why", "[modules]") {
  auto notes = [&](const std::string& kernels) { return said_of(kTwoNodes, kTwice + kernels).notes; };
  CHECK(notes("").empty());
  CHECK(says(notes(fill_kernel("@S.implements('nn.layer_norm')", "my_ln", kUnary)),
             "note: kernel 'my_ln' is used nowhere: the model has no nn.layer_norm"));
  CHECK(says(notes(fill_kernel("@S.implements('nn.softmax', axis=0)", "my_softmax", kUnary)),
             "kernel 'my_softmax' is used nowhere: at 'y': attribute axis of nn.softmax is 1, expected 0"));
  CHECK(says(notes(fill_kernel("@S.implements('nn.softmax', node='yy')", "my_softmax", kUnary)),
             "kernel 'my_softmax' is used nowhere: the model has no nn.softmax at 'yy'"));
  CHECK(
      says(notes(fill_kernel("@S.implements('ai.onx::Softmax')", "my_softmax", kUnary)),
           "kernel 'my_softmax' is used nowhere: the model has no ai.onx::Softmax; did you mean 'ai.onnx::Softmax'?"));
  CHECK(says(notes("@S.pattern\ndef two(x):\n    return R.nn.relu(R.nn.softmax(x))\n"),
             "pattern 'two' is used nowhere: the model has no nn.relu"));
  CHECK(says(notes(fill_kernel("", "helper", kUnary)), "'helper' is used nowhere: it implements nothing"));
  std::string two = fill_kernel("@S.implements('com.me::Twice')", "second", kUnary);
  CHECK(says(notes(two), "kernel 'second' is used nowhere: at 'z': 'twice' comes first"));
  CHECK(says(notes("@S.rule('nn.conv2d')\ndef r(sch):\n    sch.get_block('x')\n"),
             "rule 'r' is used nowhere: no tensor program holds 'nn.conv2d'"));
}

TEST_CASE("kernels for nodes that the import leaves out say which node that is", "[modules]") {
  auto notes = [&](const std::string& implemented, const char* model = kBranches) {
    Said said = said_of(model, fill_kernel("@S.implements(" + implemented + ")", "mine", kUnary));
    CHECK(said.error.empty());
    return said.notes;
  };
  const std::string branch =
      " was left out of the model: it stands in the else_branch of 'y', whose condition is a "
      "constant that does not take it";
  CHECK(says(notes("node='y/u'"), "kernel 'mine' is used nowhere: node 'y/u' (Twice)" + branch));
  CHECK(says(notes("'com.me::Twice'"), "kernel 'mine' is used nowhere: node 'y/u' (Twice)" + branch));
  CHECK(says(notes("node='y/v'"), "node 'y/v' (Softmax)" + branch));
  CHECK(says(notes("node='y/first'"), "the model has no node 'y/first'"));
  // A kernel for an operator at a node is looked for in the graph, which has nothing of this one.
  const std::string at_operator = notes("'nn.softmax', node='y/v'");
  CHECK(says(at_operator, "node 'y/v' (Softmax)" + branch));
  CHECK(says(at_operator, "kernel 'mine' is used nowhere: the model has no nn.softmax at 'y/v'"));
  CHECK(says(notes("node='y/t'", kLoop), "it stands in the body of 'y', which runs no iteration"));
}

TEST_CASE("a rule or use beside a schedule for the program is used nowhere", "[modules]") {
  const std::string own = "@S.schedule('twice')\ndef own(sch):\n    sch.get_block('y')\n";
  auto notes = [&](const std::string& more) {
    Said said = said_of(kTwoNodes, kTwice + own + more);
    CHECK(said.error.empty());
    return said.notes;
  };
  CHECK(!says(notes(""), "used nowhere"));
  const std::string pattern =
      "@S.pattern\ndef soft(x):\n    return R.nn.softmax(x, axis=1)\n@S.schedule('soft')\ndef mine(sch):\n    pass\n";
  CHECK(says(notes(pattern + "@S.rule('nn.softmax')\ndef r(sch):\n    sch.get_block('x')\n"),
             "rule 'r' is used nowhere: 'mine' of line "));
  CHECK(says(notes(pattern + "S.use('default', function='soft', decisions={'foo.piece': 64})\n"),
             "S.use(\"default\") is used nowhere: 'mine' of line "));
}

TEST_CASE("a schedule of a kernel that fits nothing is no error, one of an unknown name is", "[modules]") {
  std::string text = kTwice + fill_kernel("@S.implements('nn.layer_norm')", "my_ln", kUnary);
  Said said = said_of(kTwoNodes, text + "@S.schedule('my_ln')\ndef s(sch):\n    sch.get_block('y')\n");
  CHECK(said.error.empty());
  CHECK(says(said.notes, "schedule 's' is used nowhere: no program holds 'my_ln'"));
  said = said_of(kTwoNodes, text + "@S.schedule('twise')\ndef s(sch):\n    sch.get_block('y')\n");
  CHECK(says(said.error, "no tensor program 'twise' to schedule; did you mean 'twice'?"));
}

TEST_CASE("a kernel must not write its operands", "[modules]") {
  std::string text = fill_kernel("@S.implements('nn.softmax')", "own", kUnary);
  text.replace(text.find("y[vi, vj]"), 1, "x");
  CHECK(says(said_of(kTwoNodes, kTwice + text).error, "kernel 'own' writes its operand 'x'"));
}

TEST_CASE("a kernel's name is one that a function of a module may have", "[modules]") {
  const std::string text = fill_kernel("@S.implements('nn.softmax')", "\u00fcn\u00ef", kUnary);
  const std::string error = said_of(kTwoNodes, text).error;
  CHECK(says(error,
             "k.py:3:5: error: '\u00fcn\u00ef' is not a name of a kernel or pattern: expected a to z, A to Z, digits "
             "and '_'"));
}

TEST_CASE("the axes of a kernel are checked as those of a module are", "[modules]") {
  const std::string kernel = R"(@S.implements("nn.relu")
@T.prim_func
def mine(x: T.Buffer(("n", 9), "float32"), y: T.Buffer(("n", 9), "float32")):
    for i, j in T.grid(n, 9):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(9, j + 3)
            y[vi, vj] = x[vi, vj]
)";
  Said said = said_of("@R.function\ndef main(x: R.Tensor((2, 9), \"float32\")):\n    return R.nn.relu(x)\n", kernel);
  CHECK(says(said.error, "k.py:7:13: error: block 'y': axis 'vj' is 11 where j = 8 of [0, 9)"));
}

TEST_CASE("a kernel for a node of a known type keeps to its attributes and results", "[modules]") {
  auto claims = [&](const std::string& kernels) { return said_of(kTwoNodes, kTwice + kernels).claims; };
  // Opset 13 takes the last axis by default, and the node's axis 1 is the last.
  CHECK(says(claims(fill_kernel("@S.implements('ai.onnx::Softmax')", "own", kUnary)), "Softmax kernel 'own': \n"));
  std::string model = kTwoNodes;
  model.replace(model.find("axis = 1"), 8, "axis = 0");
  std::string text = fill_kernel("@S.implements('ai.onnx::Softmax')", "own", kUnary);
  CHECK(says(said_of(model, kTwice + text).claims,
             "'own' neither reads nor names axis=0, which is not the default; add it to @S.implements"));
  text = fill_kernel("@S.implements('ai.onnx::Softmax', axis=0)", "own", kUnary);
  CHECK(says(said_of(model, kTwice + text).claims, "Softmax kernel 'own': \n"));
  // Nothing is known of a custom type; whoever names a node knows it.
  CHECK(says(claims(""), "Twice kernel 'twice': it neither reads nor names: mode=\"slow\""));
  text = fill_kernel("@S.implements(node='y')", "own", kUnary);
  CHECK(says(said_of(model, kTwice + text).claims, "Softmax kernel 'own': it neither reads nor names: axis=0"));

  std::string wide = kX + R"(, y: T.Buffer(("n", "m + 1"), "float32"))";
  CHECK(says(claims(fill_kernel("@S.implements(node='y')", "own", wide)),
             "its result 0 is float32(n, 5), and that of ai.onnx::Softmax is float32(n, 4)"));
}

TEST_CASE("a kernel for a node of a known type knows its attributes' defaults", "[modules]") {
  auto model = [](int opset, const std::string& node) {
    return fmt::format(R"(<ir_version: 8, opset_import: ["" : {}, "com.me" : 1]>
g (float[n, 4] x, float[4] w) => (float[n, 4] y) {{ y = {} }}
)",
                       opset, node);
  };
  auto said = [&](int opset, const std::string& node, const std::string& decorator, const std::string& more = "") {
    const std::string w = node.find(", w") == std::string::npos ? "" : R"(, w: T.Buffer(("m",), "float32"))";
    return said_of(model(opset, node), fill_kernel(decorator, "own", kX + w + ", " + more + kY));
  };
  const std::string fits = "kernel 'own': \n", layer_norm = "LayerNormalization (x, w)";
  CHECK(says(said(13, "Softmax (x)", "@S.implements('ai.onnx::Softmax', axis=-1)").claims, fits));
  CHECK(says(said(11, "Softmax (x)", "@S.implements('ai.onnx::Softmax', axis=1)").claims, fits));
  CHECK(says(said(11, "Softmax (x)", "@S.implements('ai.onnx::Softmax', axis=0)").claims,
             "attribute axis is 1, expected 0"));
  CHECK(says(said(17, layer_norm,
                  "@S.implements('ai.onnx::LayerNormalization', where=lambda axis, epsilon: axis == -1 and epsilon < "
                  "0.001 and epsilon > 0.000001)",
                  "epsilon: T.float32, ")
                 .claims,
             fits));
  CHECK(says(said(17, layer_norm,
                  "@S.implements('ai.onnx::LayerNormalization', defaults={'axis': 0}, where=lambda axis: axis == -1)")
                 .claims,
             "its condition (where=) does not hold for axis = 0"));
  // A custom type has no defaults.
  CHECK(says(said(13, "com.me.Twice (x)", "@S.implements('com.me::Twice', mode='slow')").error,
             "attribute mode is absent, expected \"slow\"; for one that a node may leave out write "
             "defaults={\"mode\": ...} in @S.implements"));
  CHECK(says(said(13, "com.me.Twice (x)", "@S.implements('com.me::Twice')", "factor: T.float32, ").error,
             "write defaults={\"factor\": ...} in @S.implements"));
  const Said undecided = said(13, "Relu (x)", "@S.implements('ai.onnx::Relu', where=lambda axis: axis == -1)");
  CHECK(says(undecided.error, "'axis' is neither a dim of the signature nor an attribute; there are: m, n; for one"));
  CHECK(undecided.notes == "");
}

TEST_CASE("a program may implement several things", "[modules]") {
  const Said said =
      said_of(kTwoNodes,
              fill_kernel("@S.implements('com.me::Twice')\n@S.implements('ai.onnx::Softmax', axis=1)", "own", kUnary));
  CHECK(says(said.claims, "Softmax kernel 'own': \n"));
  CHECK(says(said.claims, "Twice kernel 'own': it neither reads"));
}

TEST_CASE("an error behind a kernel's result names the kernel", "[modules]") {
  constexpr const char* kSum = R"(<ir_version: 8, opset_import: ["" : 13, "com.me" : 1]>
g (float[3, 4] x) => (float[3, 4] y) {
  a = com.me.Widen (x)
  y = Add (a, x)
}
)";
  std::string wide = kX + R"(, y: T.Buffer(("n", "m + 1"), "float32"))";
  std::string error = said_of(kSum, fill_kernel("@S.implements('com.me::Widen')", "widen", wide)).error;
  CHECK(says(error, "5 and 4"));
  CHECK(says(error, "kernel 'widen' makes its input 'a'"));
}

// Returns the claims of a kernel that reads its weights in panels and declares them as a matrix.
static std::string error_of_layout() {
  const std::string params = R"(x: T.Buffer(("n", "k"), "float32"), w: T.Buffer(("k", "m"), "float32"), )" + kY;
  return said_of(R"(
@R.function
def main(x: R.Tensor((2, 4), "float32")):
    y = R.matmul(x, R.ones((4, 8), "float32"))
    return y
)",
                 fill_kernel("@S.implements('matmul', layout={'w': lambda k, j: (j // 8, k, j % 8)})", "own", params))
      .claims;
}

TEST_CASE("a kernel that does not fit says so in its own terms", "[modules]") {
  auto why = [&](const std::string& decorator, const std::string& params) {
    return said_of(kTwoNodes, kTwice + fill_kernel(decorator, "own", params)).claims;
  };
  CHECK(says(why("@S.implements('nn.softmax')", kX + R"(, y: T.Buffer(("n", "m"), "float16"))"),
             "result 'y' is float32 in the model, and 'own' declares float16"));
  CHECK(says(said_of(kTwoNodes, kTwice + "@S.implements('nn.softmax')\n@S.extern('f')\ndef own(" + kX +
                                    ", y: T.Buffer(('n', 'm', 1), 'float32')): ...\n")
                 .claims,
             "result 'y' has 2 dims in the model, and 'own' declares 3"));
  CHECK(says(why("@S.implements('nn.softmax')", kX + R"(, y: T.Buffer(("n", "(m + 1) // 2"), "float32"))"),
             "dim 1 of result 'y' is 4 in the model, and 'own' declares (m + 1) // 2 = 2"));
  CHECK(says(why("@S.implements('nn.softmax')", R"(x: T.Buffer(("n", 5), "float32"), )" + kY),
             "dim 1 of input 'x' is 4, expected 5"));
  CHECK(says(why("@S.implements('nn.softmax')", kX + R"(, b: T.Buffer(("m",), "float32"), )" + kY),
             "it has 3 buffers (x, b, y), and there are 1 inputs (float32(n, 4)) and 1 results"));
  CHECK(says(error_of_layout(),
             "after layout= 'w' has 3 dims, and 'own' declares 2; declare 'w' in that shape, float32(1, 4, 8)"));
  CHECK(says(said_of(kTwoNodes, fill_kernel("@S.implements('com.me::Twic')", "own", kUnary)).error,
             "@S.implements(\"com.me::Twice\"); kernel 'own' is for \"com.me::Twic\""));
  auto error = [&](const std::string& decorator) {
    return said_of(kTwoNodes, fill_kernel(decorator, "own", kUnary)).error;
  };
  CHECK(says(error("@S.implements('nn.softmax', wher=lambda n: n > 3)"), "no 'wher'; did you mean where=?"));
  CHECK(says(error("@S.implements('com.me::Twice', defaults={'alhpa': 1.0}, where=lambda alpha: alpha > 0)"),
             "defaults has 'alhpa', which 'own' does not read; did you mean 'alpha'?"));
  const std::string schedule = "(sch):\n    pass\n";
  CHECK(says(said_of(kTwoNodes, kTwice + "@S.schedule('twice', where=lambda n: n == 7)\ndef a" + schedule).error,
             "S.schedule takes a name alone, not 'where'; a condition is an `assert` among its steps"));
  CHECK(says(said_of(kTwoNodes, kTwice + "@S.rule('nn.softmax', foo=1)\ndef a" + schedule).error,
             "S.rule takes a name alone, not 'foo'"));
  CHECK(says(error("@S.implements('nn.softmax', absent=[1])"), "absent= is for nodes of the model"));
  CHECK(says(error("@S.implements('com.me::Twice', absent=['w'])"), "absent= lists the positions of inputs"));
}

TEST_CASE("a condition may ask for one of several values, and says why it cannot be decided", "[modules]") {
  auto claims = [](const std::string& condition) {
    std::string decorator = "@S.implements('nn.softmax', where=lambda m: " + condition + ")";
    return said_of(kTwoNodes, kTwice + fill_kernel(decorator, "own", kUnary)).claims;
  };
  CHECK(says(claims("m in [4, 8]"), "kernel 'own': \n"));
  CHECK(says(claims("m not in (8, 16)"), "kernel 'own': \n"));
  CHECK(says(claims("m in [3, 8]"), "its condition (where=) does not hold for m = 4"));
  CHECK(
      says(claims("m in 8"), "its condition (where=) cannot be decided for m = 4: expected a list behind 'in', got 8"));
  CHECK(says(claims("m + 1"), "its condition (where=) gives 5, and not True or False, for m = 4"));
}

TEST_CASE("a pattern that does not fit names the operand and the line", "[modules]") {
  std::string pattern = "@S.pattern\ndef two(x, w):\n    return R.multiply(R.nn.relu(x), w)\n";
  Said said = said_of(R"(
@R.function
def main(x: R.Tensor((2, 2), "float32")):
    a = R.negative(x)
    b = R.multiply(a, a)
    return b
)",
                      pattern);
  CHECK(says(said.claims, "an operand of multiply is negative, expected nn.relu (line 3)"));
  CHECK(says(said.notes, "pattern 'two' is used nowhere: at 'b': an operand of multiply is negative"));
}

TEST_CASE("a dim that only the run decides is named where it is wrong", "[modules]") {
  CompileSettings settings;
  std::string bad = R"(<ir_version: 8, opset_import: ["com.me" : 1]>
g (float[n, 4] x, float[k] w) => (float[n, 4] y) {
  y = com.me.Rows (x, w)
}
)";
  auto rules = read_kernel_rules(
      fill_kernel("@S.implements('com.me::Rows')", "my_rows", kX + R"(, w: T.Buffer(("n",), "float32"), )" + kY),
      "k.py", op_table());
  ImportOptions options;
  options.kernels = node_kernels(rules);
  Program program = compile(import_onnx_text(bad, "model", options), settings).load();
  try {
    Session(program).run({Tensor::empty({2, 4}, kFloat32), Tensor::empty({3}, kFloat32)});
    FAIL("expected an error");
  } catch (const std::exception& error) {
    CHECK(says(error.what(), "dim 0 of w and n of kernel my_rows: 3 and 2"));
  }
}

namespace {

// Returns the text of a rewriter of sigmoid.
std::string rewriter(const std::string& params, const std::string& replacement,
                     const std::string& pattern = "R.sigmoid(x)") {
  return "@R.rewriter\nclass Mine:\n    @R.function\n    def pattern(" + params + "):\n        return " + pattern +
         "\n    @R.function\n    def replacement(" + params + "):\n        " + replacement + "\n";
}

constexpr const char* kSigmoid = R"(
@R.function
def main(x: R.Tensor(("n", 8), "float32")):
    with R.dataflow():
        v = R.sigmoid(x)
        w = R.multiply(v, x)
        R.output(w)
    return w
)";

}  // namespace

TEST_CASE("a rewriter whose replacement is of another type does not fit", "[modules]") {
  auto why = [&](const std::string& params, const std::string& replacement) {
    Said said = said_of(kSigmoid, rewriter(params, replacement));
    return said.error + said.claims;
  };
  const std::string typed = "x: R.Tensor(('n', 8), 'float32')", open = "x: R.Tensor";
  CHECK(says(why(typed, "return R.sum(x, axis=[1])"),
             "rewriter 'Mine': the replacement gives R.Tensor((n,), dtype=\"float32\"), and the pattern "
             "R.Tensor((n, 8), dtype=\"float32\")"));
  CHECK(says(why(open, "return R.astype(x, 'float16')"), "the replacement gives R.Tensor((n, 8), dtype=\"float16\")"));
  CHECK(says(why(open, "return R.reshape(x, R.shape([3, 3, 3]))"), "the replacement gives R.Tensor((3, 3, 3)"));
  CHECK(says(why(open, "return R.split(x, 2)[0]"), "which are not known to be the same"));
  CHECK(says(why(open, "return R.matmul(x, R.const([1, 2, 3], 'float32'))"), "the replacement cannot be used: "));
  CHECK(says(why(open, "return R.call_packed('f', x, sinfo_args=(R.Tensor,))"),
             "k.py:8:16: error: the replacement of a rewriter must not have side effects"));
  // What is not known of the replacement's type is tested when the model runs.
  CHECK(says(why(open, "return R.call_pure_packed('f', x, sinfo_args=(R.Tensor,))"), "rewriter 'Mine': \n"));
  CHECK(says(said_of(kSigmoid, rewriter("x: R.Tensor(('n', 9), 'float32')", "return x")).claims,
             "dim 1 of 'x' is 8, expected 9"));
}

TEST_CASE("a rewriter takes where= and node= as a pattern does, and nothing else", "[modules]") {
  auto with = [&](const std::string& arguments) {
    std::string result = rewriter("x: R.Tensor(('n', 'm'), 'float32')", "return R.exp(x)");
    return said_of(kSigmoid, result.replace(result.find("rewriter") + 8, 0, arguments));
  };
  CHECK(says(with("()").claims, "rewriter 'Mine': \n"));
  CHECK(says(with("(where=lambda m: m == 8)").claims, "rewriter 'Mine': \n"));
  CHECK(says(with("(\n    where=lambda m:\n        m == 9)").claims,
             "rewriter 'Mine': its condition (where=) does not hold for m = 8"));
  CHECK(says(with("(where=lambda n: n % 2 == 0)").claims, "its condition (where=) is not known to hold for n = n"));
  CHECK(says(with("(node='v')").claims, "rewriter 'Mine': \n"));
  CHECK(says(with("(node='vv')").notes, "the model has no sigmoid at 'vv'"));
  CHECK(says(with("(wher=lambda m: m == 8)").error, "k.py:1:13: error: R.rewriter takes where= and node=, not 'wher'"));
  CHECK(
      says(with("('abc')").error, "k.py:1:13: error: R.rewriter takes where=lambda ...: ... and node=\"name\" alone"));
}

TEST_CASE("a condition is a conjunction of what is known and what is not", "[modules]") {
  auto claims = [](const std::string& condition) {
    std::string text = rewriter("x: R.Tensor(('n', 'm'), 'float32')", "return R.exp(x)");
    return said_of(kSigmoid, text.insert(text.find("rewriter") + 8, "(where=lambda n, m: " + condition + ")")).claims;
  };
  const std::string holds = "rewriter 'Mine': \n",
                    open = "its condition (where=) is not known to hold for m = 8, n = n";
  for (const char* condition : {"n == 5 or m == 8", "m == 8 or n == 5", "not (n == 5 and m == 9)"})
    CHECK(says(claims(condition), holds));
  for (const char* condition : {"n == 5 and m == 8", "m == 8 and not n == 5", "n == 5 or m == 9", "n == 5 or n == 6"})
    CHECK(says(claims(condition), open));
  CHECK(says(claims("n == 5 and m == 9"), "its condition (where=) does not hold for m = 8, n = n"));
  CHECK(
      says(claims("m if n == 5 else 0"), "cannot be decided for m = 8, n = n: 'n == 5' is not known while compiling"));
}

TEST_CASE("a replacement that calls a function outside of its class, or takes an unused param, is told", "[modules]") {
  const std::string program = fill_kernel("", "filled", kUnary),
                    text =
                        rewriter("x: R.Tensor(('n', 8), 'float32')",
                                 "n = T.int64()\n        return R.call_tir(filled, (x,), R.Tensor((n, 8), 'float32'))");
  CHECK(says(said_of(kSigmoid, program + text).error,
             "move 'filled' into class Mine and call it cls.filled, where cls = Mine"));
  CHECK(says(said_of(kSigmoid, rewriter("x, y", "return R.exp(x)")).claims,
             "rewriter 'Mine': 'y' is not part of the pattern, so that it matches nothing"));
}

TEST_CASE("a pattern must not read what it computes, and its ways are numbered", "[modules]") {
  const std::string own_result =
      "@S.pattern\ndef own(a, b, c):\n    t = R.sigmoid(a)\n    return R.multiply(b, c), t\n";
  CHECK(says(said_of(kSigmoid, own_result).claims, "operand 'b' is computed by the pattern itself"));
  std::string chain = "@S.pattern\ndef chain(x, y):\n    v0 = R.nn.relu(x)\n", model = kSigmoid;
  std::string lines = "        u0 = R.tan(v)\n";
  for (int i = 1; i <= 24; ++i) {
    chain += fmt::format("    v{} = R.add(v{}, R.add(v{}, y))\n", i, i - 1, i - 1);
    lines += fmt::format("        t{0} = R.add(u{1}, x)\n        u{0} = R.add(u{1}, t{0})\n", i, i - 1);
  }
  model.replace(model.find("        w = "), 0, lines);
  model.replace(model.find("multiply(v, x)"), 14, "multiply(u24, x)");
  CHECK(says(said_of(model, chain + "    return v24\n").claims, "there are too many ways to try"));
  CHECK(says(said_of(kSigmoid, "@S.pattern\ndef two(x):\n    y = R.sigmoid(x)\n    return y, y\n").error,
             "pattern 'two' returns 'y' twice"));
}

TEST_CASE("attributes that are defaults need no reader, and others are named with their operator", "[modules]") {
  const std::string model = R"(
@R.function
def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((6, 8), "float32")):
    with R.dataflow():
        t = R.permute_dims(w, axes=[1, 0])
        y = R.matmul(x, t, out_dtype="float32")
        z = R.nn.relu(y)
        R.output(z)
    return z
)";
  const std::string params = kX + R"(, w: T.Buffer(("k", "m"), "float32"), y: T.Buffer(("n", "k"), "float32"))";
  auto claims = [&](const std::string& transposed) {
    std::string pattern = "@S.pattern\ndef product(x, w):\n    return R.nn.relu(R.matmul(x, " + transposed + "))\n";
    std::string kernel = fill_kernel("@S.implements(product)", "own", params);
    kernel.replace(kernel.find("T.grid(n, m)"), 12, "T.grid(n, k)");
    Said said = said_of(model, pattern + kernel);
    return said.error + said.claims;
  };
  CHECK(says(claims("R.permute_dims(w, axes=[1, 0])"), "nn.relu kernel 'own': \n"));
  CHECK(says(claims("R.permute_dims(w)"),
             "'own' neither reads nor names axes=[1, 0] of permute_dims, which is not the "
             "default; write it in the pattern if it is right for that"));
}

TEST_CASE("a kernel for one node that ignores attributes gets a note", "[modules]") {
  const std::string model = R"(
@R.function
def main(x: R.Tensor((4, 8), "float32")):
    with R.dataflow():
        y = R.nn.leakyrelu(x, alpha=0.5)
        R.output(y)
    return y
)";
  Said said = said_of(model, fill_kernel("@S.implements('nn.leakyrelu', node='y')", "own", kUnary));
  CHECK(says(said.claims, "nn.leakyrelu kernel 'own': \n"));
  CHECK(says(said.notes, "kernel 'own' takes node 'y', although it neither reads nor names: alpha=0.5\n"));
}

TEST_CASE("a dim of a kernel that occurs in expressions alone is refused", "[modules]") {
  const std::string params = R"(x: T.Buffer(("n + 1", "m"), "float32"), y: T.Buffer(("n + 1", "m"), "float32"))";
  CHECK(says(said_of(kTwoNodes, fill_kernel("@S.implements('nn.softmax')", "own", params)).error,
             "'own' uses 'n', and no buffer has it as a dim by itself"));
}

}  // namespace relaxc::test
