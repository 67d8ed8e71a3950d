// Texts that leave types open, and texts with several modules, on the command line.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/process.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

namespace fs = std::filesystem;

// Runs relaxc on a text; FILE stands for its name.
test::Outcome relaxc_on(const std::string& text, std::vector<std::string> arguments) {
  fs::path path = fs::temp_directory_path() / ("relaxc_open_" + std::to_string(getpid()) + ".py");
  std::ofstream(path, std::ios::binary) << text;
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  for (std::string& argument : arguments) {
    if (argument.starts_with("FILE")) argument.replace(0, 4, path.string());
  }
  test::Outcome result = test::run_program(arguments, 300);
  fs::remove(path);
  return result;
}
bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr const char* kOpen = R"(
@R.function
def main(x: R.Tensor(ndim=2), y: R.Tensor):
    t = (R.add(x, x), y)
    z: R.Tensor = R.multiply(t[0], t[1])
    return z
)";

constexpr const char* kTwo = R"(
@I.ir_module
class First:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return R.add(x, x)

@I.ir_module
class Second:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return R.multiply(x, x)
)";

}  // namespace

TEST_CASE("params of open types are compiled for a type that a warning names, or for the given one", "[tools]") {
  test::Outcome assumed = relaxc_on(kOpen, {"compile", "FILE", "--emit=graph"});
  CHECK(assumed.exit_code == 0);
  CHECK(
      holds(assumed.err, "'x' of 'main' is R.Tensor(ndim=2); it is compiled as R.Tensor((x0, x1), dtype=\"float32\")"));
  CHECK(holds(assumed.err, "--type 'y=float32[n, 4]' gives another type"));
  test::Outcome given =
      relaxc_on(kOpen, {"compile", "FILE", "--emit=graph", "--type", "x=int32[n, 4]", "--type", "y=int32[n, 4]"});
  CHECK(given.err.empty());
  CHECK(holds(given.out, "y: R.Tensor((\"n\", 4), dtype=\"int32\")"));
  CHECK(holds(given.out, ") -> R.Tensor((\"n\", 4), dtype=\"int32\")"));
  test::Outcome wrong = relaxc_on(kOpen, {"compile", "FILE", "--emit=graph", "--type", "z=int32[4]"});
  CHECK(wrong.exit_code == 2);
  CHECK(holds(wrong.err, "no function has a param 'z'; there are x, y"));
  wrong = relaxc_on(kOpen, {"compile", "FILE", "--emit=graph", "--type", "x=int32"});
  CHECK(holds(wrong.err, "'int32': expected a type such as float32[n, 4]"));
  test::Outcome impossible = relaxc_on(
      "@R.function\ndef main(x: R.Tensor, w: R.Tensor((3, 4), \"int8\")):\n    y = R.nn.conv2d(x, w)\n    return y\n",
      {"compile", "FILE", "--emit=graph"});
  CHECK(impossible.exit_code == 1);
}

TEST_CASE("types that are given reach tuples that are written in calls", "[tools]") {
  const std::string concat =
      "@R.function\ndef main(x: R.Tensor(dtype='float32'), y: R.Tensor(dtype='float32')):\n"
      "    return R.concat((x, y), axis=1)\n";
  const test::Outcome given =
      relaxc_on(concat, {"compile", "FILE", "--emit=graph", "--type", "x=float32[n, 3]", "--type", "y=float32[n, 4]"});
  INFO(given.err);
  CHECK(given.exit_code == 0);
  CHECK(holds(given.out, "-> R.Tensor((\"n\", 7), dtype=\"float32\")"));
}

TEST_CASE("run takes open types from the files of inputs", "[tools]") {
  std::string file = (fs::temp_directory_path() / ("relaxc_open_" + std::to_string(getpid()) + ".npy")).string();
  write_npy(file, Tensor::of<int32_t>({3}, parse_dtype("int32").value(), {1, 2, 3}));
  test::Outcome outcome = relaxc_on("@R.function\ndef main(x: R.Tensor):\n    y = R.add(x, x)\n    return y\n",
                                    {"run", "FILE", "--input", "x=" + file});
  fs::remove(file);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(holds(outcome.out, "int32[3]"));
  CHECK(holds(outcome.out, "[2, 4, 6]"));
}

TEST_CASE("of several modules the last is compiled, or the one that the text builds", "[tools]") {
  test::Outcome last = relaxc_on(kTwo, {"run", "FILE", "--input", "x=[3, 5]"});
  CHECK(holds(last.err, "the text has the modules First, Second; 'Second' is compiled"));
  CHECK(holds(last.out, "[9, 25]"));
  test::Outcome built =
      relaxc_on(std::string(kTwo) + "\nex = relax.build(First, \"llvm\")\n", {"run", "FILE", "--input", "x=[3, 5]"});
  CHECK(holds(built.out, "[6, 10]"));
  test::Outcome named = relaxc_on(kTwo, {"run", "FILE::First", "--input", "x=[3, 5]"});
  CHECK(named.err.empty());
  CHECK(holds(named.out, "[6, 10]"));
}

TEST_CASE("a text without a module says what it has instead", "[tools]") {
  auto note_of = [](const char* text) { return relaxc_on(text, {"compile", "FILE", "-o", "/dev/null"}).err; };
  CHECK(holds(note_of("class Net(nn.Module):\n    pass\n"), "export_tvm"));
  CHECK(holds(note_of("@R.rewriter\nclass Rewrite:\n    @R.function\n    def pattern(x: R.Tensor):\n        return "
                      "R.nn.relu(R.nn.relu(x))\n    @R.function\n    def replacement(x: R.Tensor):\n        return "
                      "R.nn.relu(x)\nRewrite(mod)\n"),
              "--kernels FILE"));
  CHECK(holds(note_of("lv0 = R.add(x, y)\n"), "operators of a graph stand in a function"));
  CHECK(holds(note_of("def f(n):\n    A = te.placeholder((n,))\n    return te.compute((n,), lambda i: A[i])\n"),
              "call it below"));
}

TEST_CASE("where no types fit, the error says why", "[tools]") {
  const test::Outcome outcome = relaxc_on(R"(
@R.function
def main(x: R.Tensor(dtype="float32"), w: R.Tensor((3, 2, 5, 5), "float32")):
    return R.nn.conv2d(x, w), R.nn.max_pool1d(x, pool_size=[2])
)",
                                          {"compile", "FILE", "--emit=graph"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(holds(outcome.err, "the shape or dtype of 'x' is not known"));
  CHECK(holds(outcome.err, "note: the types that were tried do not fit: "));
}
