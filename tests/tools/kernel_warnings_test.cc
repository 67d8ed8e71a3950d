// What commands say of kernels and tensor programs that run, and do not do what their author means.
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/process.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;

namespace {

Outcome command(std::vector<std::string> words) {
  words.insert(words.begin(), RELAXC_TOOL);
  return test::run_program(words, 300);
}

// A kernel for relu that stores so many of the columns.
std::string relu_of(const std::string& columns) {
  return R"(@S.implements("nn.relu")
@T.prim_func
def mine(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, )" +
         columns + R"():
        with T.block("one"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.max(x[vi, vj], T.float32(0))
)";
}
constexpr const char* kReluModule = R"(@R.function
def main(x: R.Tensor(("n", 8), "float32")):
    return R.nn.relu(x)
)";

}  // namespace

TEST_CASE("results of which elements are left out are warned of at their params", "[tools]") {
  test::Folder folder("kernel_warnings");
  const std::string model = folder.write("m.py", kReluModule);
  const std::string missing =
      "k.py:3:46: warning: the program stores to [0, m - 1) of [0, m) of dim 1 of its result 'y'";
  const std::string kernels = folder.write("k.py", relu_of("m - 1"));
  CHECK(contains(command({"check", kernels}).err, missing));
  CHECK(contains(command({"compile", model, "--kernels", kernels, "-o", folder.at("m.so")}).err, missing));
  CHECK_FALSE(contains(command({"check", folder.write("k.py", relu_of("m"))}).err, "warning"));
  // What only the dims of a call prove.
  const std::string four = folder.write("four.py", relu_of("4"));
  CHECK_FALSE(contains(command({"check", four}).err, "warning"));
  CHECK(contains(command({"compile", model, "--kernels", four, "-o", folder.at("m.so")}).err,
                 "four.py:3:46: warning: the program stores to [0, 4) of [0, 8) of dim 1 of its result 'y'"));
  const std::string half = folder.write("half.py", R"(@T.prim_func
def f(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(4):
        y[i] = x[i]
)");
  CHECK(contains(command({"check", half}).err, "half.py:2:37: warning: the program stores to [0, 4) of [0, 8)"));
  CHECK(contains(command({"run", half}).err, "half.py:2:37: warning: "));
}

TEST_CASE("indices that the dims of a call prove to be out of range are warned of", "[tools]") {
  test::Folder folder("kernel_warnings");
  const std::string text = R"(@R.function
def main(x: R.Tensor(("n", 2), "float32")):
    return R.matmul(x, R.const([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32"))
)";
  const std::string panels = folder.write("panels.py", R"(
@S.implements("matmul", layout={"w": lambda k, j: (j // 2, k, j % 2)})
@T.prim_func
def panels(x: T.Buffer(("n", "k"), "float32"), w: T.Buffer(("p", "k", 2), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i, q, r, l in T.grid(n, p, k, 2):
        with T.block("p"):
            vi, vq, vr, vl = T.axis.remap("SSRS", [i, q, r, l])
            with T.init():
                y[vi, vq * 2 + vl] = T.float32(0)
            y[vi, vq * 2 + vl] = y[vi, vq * 2 + vl] + x[vi, vr] * w[vq, vr, vl]
)");
  const Outcome made = command({"compile", folder.write("m.py", text), "--kernels", panels, "-o", folder.at("m.so")});
  INFO(made.err);
  CHECK(made.exit_code == 0);
  CHECK(contains(made.err, "panels.py:9:17: warning: buffer 'y': index vq * 2 + vl of dim 1 is 3 where "));
  // The commands that run a module say the same as check.
  const std::string far = folder.write("far.py", R"(@T.prim_func
def bad(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i + 1]
)");
  for (const char* verb : {"check", "compile"}) {
    std::vector<std::string> words{verb, far};
    if (words[0] == "compile") words.insert(words.end(), {"-o", folder.at("far.so")});
    const std::string found = command(words).err;
    INFO(found);
    CHECK(contains(found, "far.py:4:16: warning: buffer 'A': index i + 1 of dim 0 is 64 where i = 63"));
    CHECK(test::matches(found, "far.py:4:16").size() == 1);
  }
}

TEST_CASE("an attribute that an operator may leave out has its default in a condition", "[tools]") {
  test::Folder folder("kernel_warnings");
  const std::string kernels = folder.write("pool.py", R"(
@S.implements("nn.max_pool2d", ceil_mode=False, where=lambda partial_window: partial_window in [True, False])
@T.prim_func
def pool(x: T.Buffer(("n", "c", "h", "w"), "float32"), pool_size_0: T.int64, pool_size_1: T.int64, strides_0: T.int64, strides_1: T.int64, y: T.Buffer(("n", "c", "oh", "ow"), "float32")):
    for a, b, i, j, di, dj in T.grid(n, c, oh, ow, pool_size_0, pool_size_1):
        with T.block("p"):
            va, vb, vi, vj, vdi, vdj = T.axis.remap("SSSSRR", [a, b, i, j, di, dj])
            with T.init():
                y[va, vb, vi, vj] = T.min_value("float32")
            y[va, vb, vi, vj] = T.max(y[va, vb, vi, vj], x[va, vb, vi * strides_0 + vdi, vj * strides_1 + vdj])
)");
  for (const char* attribute : {"", ", partial_window=True"}) {
    const std::string model =
        folder.write("m.py", fmt::format("@R.function\ndef main(x: R.Tensor((1, 2, 4, 4), \"float32\")):\n    return "
                                         "R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2]{})\n",
                                         attribute));
    const Outcome made = command({"compile", model, "--kernels", kernels, "-o", folder.at("m.so")});
    INFO(made.err);
    CHECK(made.exit_code == 0);
    CHECK_FALSE(contains(made.err, "used nowhere"));
  }
}

TEST_CASE("a byte order mark before a text is skipped", "[tools]") {
  test::Folder folder("kernel_warnings");
  const std::string mark = "\xef\xbb\xbf";
  const std::string kernels = folder.write("k.py", mark + relu_of("m")),
                    model = folder.write("m.py", mark + kReluModule);
  CHECK(contains(command({"check", kernels}).out, "0 functions, 1 kernel or pattern, no errors"));
  const Outcome made = command({"compile", model, "--kernels", kernels, "-o", folder.at("m.so")});
  INFO(made.err);
  CHECK(made.exit_code == 0);
  CHECK_FALSE(contains(made.err, "used nowhere"));
}

TEST_CASE("errors of texts with kernels say how to mend them", "[tools]") {
  test::Folder folder("kernel_warnings");
  auto error_of = [&](const std::string& text) { return command({"check", folder.write("k.py", text)}).err; };
  std::string bare = relu_of("m");
  bare.replace(bare.find("\"n\", \"m\""), 8, "n, m");
  CHECK(contains(error_of(bare), "a dim that the caller decides stands in quotes: T.Buffer((\"n\",), ...)"));
  CHECK(contains(error_of("@R.function\ndef main(s: R.Sequence(R.Tensor((\"k\",), \"float32\"))):\n    return s\n"),
                 "state their rank there, R.Tensor(ndim=1)"));
  CHECK(contains(error_of("# nothing\n"), "k.py' has no function: expected @R.function, @T.prim_func"));
  const std::string pattern = "@S.pattern\ndef rectified(x):\n    return R.nn.relu(x)\n\n", kernel = relu_of("m");
  const std::string kernels =
      folder.write("p.py", pattern + "@S.implements(rectified)" + kernel.substr(kernel.find('\n')));
  CHECK(contains(command({"opt", folder.write("m.py", kReluModule), "--kernels", kernels, "--passes=rectified"}).err,
                 "'rectified' is a pattern, and no pass: the pass that applies it has the name of its kernel, 'mine'"));
  // A name that a schedule annotates, and nothing reads, is told of at the schedule.
  const std::string noting = folder.write("s.py", kernel +
                                                      "\n@S.schedule(\"mine\")\ndef noting(sch):\n"
                                                      "    sch.annotate(\"one\", \"nonsense\", 1)\n");
  CHECK(contains(command({"compile", folder.at("m.py"), "--kernels", noting, "-o", folder.at("m.so")}).err,
                 "s.py:10:5: warning: 'nonsense' of block 'one' has no effect here"));
}
