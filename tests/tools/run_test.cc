// relaxc run, compile and bench with functions and inputs that are not the one tensor function of a model.
#include <unistd.h>

#include <complex>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "codegen/compile.h"
#include "tests/folder.h"
#include "tests/frontend/onnx_model.h"
#include "tests/process.h"
#include "tools/values.h"
#include "vm/error.h"
#include "vm/npy.h"

#include "tests/catch.h"  // last

using namespace relaxc;

namespace {

namespace fs = std::filesystem;
using test::Outcome;

Outcome run_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RELAXC_TOOL);
  return test::run_program(arguments, 300);
}
bool run_has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

constexpr const char* kPrograms = R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
        for i in range(3):
            B[i] = A[i] * T.float32(2)

    @T.prim_func(private=True)
    def increment(A: T.Buffer((2,), "int32"), by: T.int32):
        for i in range(2):
            A[i] = A[i] + by

    @T.prim_func
    def pointer(p: T.handle, A: T.Buffer((2,), "float32")):
        for i in range(2):
            A[i] = T.float32(0)
)";

constexpr const char* kValues = R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
        for i in range(3):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n * 3",), "float32"), s: R.Shape(["n", "n + 1"]), t: R.Tuple(R.Tensor(("n",), "int32"), R.Prim("bool"))):
        n = T.int64()
        flag = t[1]
        return (R.shape([n]), t, flag, R.str("text"))

    @R.function(private=True)
    def hidden(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.add(x, x)
        return y
)";

}  // namespace

TEST_CASE("complex numbers are read, printed and compared by their parts", "[tools]") {
  test::Folder folder("run_complex");
  const std::string file = folder.write(
      "m.py",
      "@R.function\ndef main(x: R.Tensor((\"n\",), \"complex64\")):\n    y = R.flip(x, axis=0)\n    return y\n");
  const Tensor expected = Tensor::of<std::complex<float>>({3}, DType::complex(64), {{0, -1}, {3, 0}, {1.5f, -2}});
  write_npy(folder.at("y.npy"), expected);
  write_npy(folder.at("x.npy"), Tensor::of<std::complex<double>>({2}, DType::complex(128), {{1, 2}, {0, 1}}));
  const std::vector<std::string> run = {"run", file, "--input", "x=[1.5-2j, 3, -1j]", "--expect"};
  auto with = [&](std::vector<std::string> arguments, const std::string& last) {
    arguments.push_back(last);
    return run_command(arguments);
  };
  const Outcome right = with(run, folder.at("y.npy"));
  INFO(right.out << right.err);
  CHECK(right.exit_code == 0);
  CHECK(run_has(right.out, "complex64[3]  [0-1j, 3+0j, 1.5-2j]"));
  parts_of(expected).set_double(5, -2.5);
  write_npy(folder.at("y.npy"), expected);
  const Outcome wrong = with(run, folder.at("y.npy"));
  INFO(wrong.out << wrong.err);
  CHECK(wrong.exit_code == 1);
  CHECK(run_has(wrong.out + wrong.err, "1 of 6 elements differ; worst at [2, 1]: got -2, expected -2.5"));
  const Outcome converted = run_command({"run", file, "--input", folder.at("x.npy")});
  INFO(converted.out << converted.err);
  CHECK(run_has(converted.out, "complex64[2]  [0+1j, 1+2j]"));
  CHECK(run_has(converted.err, "input 'x': complex128 is converted to complex64"));
  const Outcome random = run_command({"run", file, "--dim", "n=2"});
  CHECK((random.exit_code == 0 && run_has(random.out, "complex64[2]  [")));
  for (const char* text : {"1+j2", "1+2", "1j2", "1j+j", "+", "(1+2j", "1 2j", "j()", "()", "1e400j"}) {
    const Outcome refused = run_command({"run", file, "--input", std::string("x=[") + text + "]"});
    INFO(text << ": " << refused.out << refused.err);
    CHECK((refused.exit_code == 1 && run_has(refused.err, "error: ")));
  }
}

TEST_CASE("complex numbers are written as Python and NumPy print them", "[tools]") {
  test::Folder folder("run_complex_text");
  const std::string file = folder.write("m.py",
                                        "@R.function\ndef main(x: R.Tensor((\"n\",), \"complex64\"), y: R.Tensor((), "
                                        "\"complex64\")):\n    return (x, y)\n");
  const Outcome run =
      run_command({"run", file, "--input", "x=[(1+2j), 1.J, 1j+2, - j, ( 1 - 2e1J ), infj]", "--input", "y=(3-1j)"});
  INFO(run.out << run.err);
  CHECK(run_has(run.out, "complex64[6]  [1+2j, 0+1j, 2+1j, 0-1j, 1-20j, 0+infj]"));
  CHECK(run_has(run.out, "complex64[]  [3-1j]"));
}

TEST_CASE("complex inputs take real files, and refuse numbers beyond their range", "[tools]") {
  test::Folder folder("run_complex_files");
  const std::string file =
      folder.write("m.py", "@R.function\ndef main(x: R.Tensor((\"n\",), \"complex64\")):\n    return x\n");
  write_npy(folder.at("real.npy"), Tensor::of<double>({2}, kFloat64, {1.5, -2}));
  const Outcome real = run_command({"run", file, "--input", folder.at("real.npy")});
  INFO(real.out << real.err);
  CHECK(run_has(real.out, "complex64[2]  [1.5+0j, -2+0j]"));
  CHECK(run_has(real.err, "input 'x': float64 is converted to complex64"));
  write_npy(folder.at("large.npy"), Tensor::of<std::complex<double>>({2}, DType::complex(128), {{1, 2}, {3, 1e300}}));
  const Outcome large = run_command({"run", file, "--input", folder.at("large.npy")});
  CHECK(run_has(large.err, "input 'x': element 1 is 3+1e+300j, which is beyond the range of complex64"));
  const Outcome written = run_command({"run", file, "--input", "x=[1, 2-1e40j]"});
  CHECK((written.exit_code == 1 && run_has(written.err, "input 'x': 2-1e40j is beyond the range of complex64")));
  for (const std::string text : {"1e400j", "[1, 2-1e400j]", "[1e400]", "[(-1e999+2j)]"}) {
    const Outcome beyond = run_command({"run", file, "--input", "x=" + text});
    INFO(beyond.err);
    CHECK((beyond.exit_code == 1 && run_has(beyond.err, "is beyond the range of float64")));
  }
  const Outcome top = run_command({"run", file, "--input", "x=[1]", "--top", "2"});
  CHECK(run_has(top.err, "result 'output_0' (complex64[1]) has no largest elements"));
  const Outcome accuracy = run_command({"run", file, "--input", "x=[1, 2j]", "--accuracy", "--precision", "bf16"});
  CHECK(run_has(accuracy.out, "'output_0' in 1 run: relative RMS error 0; largest difference 0"));
}

TEST_CASE("numbers of a list beyond the range of floats are refused", "[tools]") {
  test::Folder folder("run_range");
  const std::string file = folder.write(
      "m.py", "@R.function\ndef main(x: R.Tensor((1,), \"float16\"), y: R.Prim(\"float32\")):\n    return x\n");
  const Outcome list = run_command({"run", file, "--input", "x=[1e6]"});
  CHECK(run_has(list.err, "input 'x': 1e6 is beyond the range of float16"));
  CHECK(run_has(run_command({"run", file, "--input", "x=[1e400]"}).err,
                "input 'x': 1e400 is beyond the range of float64"));
  const Outcome scalar = run_command({"run", file, "--input", "y=-1e40"});
  CHECK(run_has(scalar.err, "input 'y': -1e40 is beyond the range of float32"));
}

TEST_CASE("sizes that int64 does not hold are refused", "[tools]") {
  test::Folder folder("run_wide");
  const std::string file = folder.write("m.py", R"(@R.function
def main(x: R.Tensor(("n * m",), "int8"), b: R.Tensor(("n",), "int8"), c: R.Tensor(("m",), "int8")):
    n = T.int64()
    m = T.int64()
    return x
)");
  const Outcome wide = run_command({"run", file, "--dim", "n=4294967297", "--dim", "m=4294967297"});
  CHECK((wide.exit_code == 1 && run_has(wide.err, "the dim 'n * m' has no value that int64 holds")));
}

TEST_CASE("a flag is True or true", "[tools]") {
  test::Folder folder("run_flag");
  const std::string file = folder.write(
      "m.py", "@R.function\ndef main(c: R.Tensor((), \"bool\"), t: R.Tensor((2,), \"bool\")):\n    return (c, t)\n");
  const Outcome run = run_command({"run", file, "--input", "c=true", "--input", "t=[false, True]"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(run_has(run.out, "output_1: bool[2]  min 0  max 1  mean 0.5  [0, 1]"));
}

TEST_CASE("a dim of a model may have a name that texts reserve", "[tools]") {
  test::Folder folder("run");
  test::OnnxModel model;
  model.input("x", kFloat32, "T,2").output("y");
  model.node("Neg", "x", "y");
  std::string file = folder.write("model.onnx", model.proto().SerializeAsString());
  std::string artifact = folder.at("model.so");
  REQUIRE(run_command({"compile", file, "-o", artifact}).exit_code == 0);
  for (const std::string& path : {file, artifact})
    CHECK(run_has(run_command({"run", path, "--dim", "T=4"}).out, "y: float32[4, 2]"));
}

TEST_CASE("run takes a tensor program by name", "[tools]") {
  test::Folder folder("run");
  std::string file = folder.write("programs.py", kPrograms);
  Outcome twice = run_command({"run", file, "--function", "twice", "--input", "A=[1, 2, -3]"});
  CHECK(twice.exit_code == 0);
  CHECK(run_has(twice.out, "B: float32[3]"));
  CHECK(run_has(twice.out, "[2, 4, -6]"));
  write_npy(folder.at("a.npy"), Tensor::of<int32_t>({2}, kInt32, {5, 6}));
  Outcome increment = run_command({"run", file, "--function", "increment", "--input", "A=" + folder.at("a.npy"),
                                   "--input", "by=-6", "--output-dir", folder.at("out")});
  CHECK(run_has(increment.out, "[-1, 0]"));
  CHECK(read_npy(folder.at("out/output_0.npy")).as_int(0) == -1);
  CHECK(read_npy(folder.at("a.npy")).as_int(0) == 5);

  Outcome none = run_command({"run", file});
  CHECK(none.exit_code == 2);
  CHECK(run_has(none.err, "name the function to run"));
  CHECK(run_has(none.err, "'increment' 'twice'"));
  CHECK(run_has(none.err, "'pointer' cannot be run: its param 'p' is a pointer"));
  Outcome pointer = run_command({"run", file, "--function", "pointer"});
  CHECK(pointer.exit_code == 3);
  CHECK(run_has(pointer.err, "its param 'p' is a pointer"));
  CHECK(run_has(run_command({"run", file, "--function", "other"}).err, "other"));
}

TEST_CASE("an input of a tensor program goes by the name of its buffer or of its handle", "[tools]") {
  test::Folder folder("run");
  std::string file = folder.write("handles.py",
                                  "@T.prim_func\n"
                                  "def add(first: T.handle, p_b: T.handle, out: T.handle):\n"
                                  "    A = T.match_buffer(first, (2,), \"float32\")\n"
                                  "    B = T.match_buffer(p_b, (2,), \"float32\")\n"
                                  "    C = T.match_buffer(out, (2,), \"float32\")\n"
                                  "    for i in range(2):\n"
                                  "        C[i] = A[i] - B[i]\n");
  auto run = [&](const char* a, const char* b) { return run_command({"run", file, "--input", a, "--input", b}); };
  CHECK(run_has(run("A=[5, 7]", "B=[1, 2]").out, "[4, 5]"));
  CHECK(run_has(run("first=[5, 7]", "p_b=[1, 2]").out, "[4, 5]"));
  CHECK(run_has(run("B=[1, 2]", "first=[5, 7]").out, "[4, 5]"));
  CHECK(run_has(run("a=[5, 7]", "B=[1, 2]").err, "no input is called 'a'; there are 'A', 'B'"));
  CHECK(run_has(run("A=[5, 7]", "var_B=[1, 2]").err, "no input is called 'var_B'"));
  CHECK(run_has(run("A=[5, 7]", "first=[1, 2]").err, "input 'A' is given twice"));
}

TEST_CASE("an artifact has the tensor programs as functions, or the one that is asked for", "[tools]") {
  test::Folder folder("run");
  std::string file = folder.write("programs.py", kPrograms), all = folder.at("all.so"), one = folder.at("one.so");
  REQUIRE(run_command({"compile", file, "-o", all}).exit_code == 0);
  CHECK(run_command({"run", all, "--function", "twice"}).exit_code == 0);
  REQUIRE(run_command({"compile", file, "--function", "increment", "-o", one}).exit_code == 0);
  CHECK(run_has(run_command({"run", one, "--input", "A=[1, 2]", "--input", "by=1"}).out, "[2, 3]"));
  CHECK(run_command({"bench", file, "--function", "twice", "--runs", "3"}).exit_code == 0);
  Program program = Program::load(all);
  CHECK(program.inputs("increment").size() == 2);
  CHECK_THROWS_AS(program.function(), RuntimeError);
}

TEST_CASE("inputs of all kinds are written as their types say", "[tools]") {
  test::Folder folder("run");
  std::string file = folder.write("values.py", kValues), out = folder.at("out");
  // The dims of x and s follow from the tuple, whose flag is random.
  Outcome solved = run_command({"run", file, "--input", "t=([7, 8], _)", "--output-dir", out});
  CHECK(solved.exit_code == 0);
  CHECK(run_has(solved.out, "shape[2]"));
  CHECK(run_has(solved.out, "'text'"));
  CHECK(read_npy(out + "/output_0.npy").as_int(0) == 2);
  CHECK(read_npy(out + "/output_2.npy").dtype() == kBool);
  CHECK(fs::exists(out + "/output_4.txt"));
  CHECK(run_has(run_command({"run", file, "--input", "x=[1, 2, 3, 4, 5, 6, 7, 8, 9]"}).out, "shape[3]"));
  CHECK(run_has(run_command({"run", file, "--dim", "n=4", "--input", "s=[n, n + 1]"}).out, "shape[4]"));
  CHECK(run_has(run_command({"run", file, "--dim", "n=2", "--input", "s=[n, n]"}).err, "n + 1"));
  CHECK(run_has(run_command({"run", file, "--input", "t=(1, 2, 3)"}).err, "expected a tuple of 2 items"));
  CHECK(run_has(run_command({"run", file, "--input", "t=([7, 8], maybe)"}).err, "expected an integer"));
  CHECK(run_has(run_command({"run", file, "--input", "s=3"}).err, "expected a shape such as [1, n]"));
  CHECK(run_has(run_command({"run", file, "--input", "x=[[1], 2]"}).err, "differ in length"));
  CHECK(
      run_has(run_command({"run", file, "--input", "x=word"}).err, "expected a file (.npy, .pb or an image; .npz for"));
  CHECK(
      run_has(run_command({"run", file, "--input", "t=([3000000000], _)"}).err, "3000000000 is not a value of int32"));
  CHECK(run_has(run_command({"run", file, "--dim", "k=2"}).err, "no input has a dim 'k'"));
  const std::string nameless =
      folder.write("one.py", "@R.function\ndef main(x: R.Tensor((\"n\", 2), \"float32\")):\n    return R.add(x, x)\n");
  CHECK(run_has(run_command({"run", nameless, "--input", "[[1, 2], [3, 4]]"}).out, "[2, 4, 6, 8]"));
  CHECK(run_has(run_command({"run", nameless, "--input", "[[1, 2]]"}).out, "[2, 4]"));
  CHECK(run_has(run_command({"run", nameless, "--input=[[1, 2]]"}).out, "[2, 4]"));
  const Outcome piped = run_command({"run", nameless, "--input", "[[1, 2]]", "--profile", "--output-dir", "-"});
  CHECK(piped.out.starts_with("\x93NUMPY"));
  CHECK(piped.out.size() == 128 + 2 * sizeof(float));
  CHECK(run_has(piped.err, "[2, 4]"));
  CHECK(run_has(run_command({"run", file, "--function", "hidden", "--input", "x=[1, 2]"}).out, "[2, 4]"));
  CHECK(run_has(run_command({"run", file, "--function", "twice", "--input", "A=[1, 2, 3]"}).out, "[2, 4, 6]"));
}

TEST_CASE("a random input of known rank has dims of 1", "[tools]") {
  test::Folder folder("run");
  std::string file = folder.write("rank.py", R"(
@R.function
def main(x: R.Tensor(ndim=2, dtype="float32"), s: R.Shape(ndim=1)):
    return (x, s)
)");
  Outcome outcome = run_command({"run", file});
  CHECK(run_has(outcome.out, "float32[1, 1]"));
  CHECK(run_has(outcome.out, "shape[1]"));
  CHECK(run_has(run_command({"run", file, "--input", "x=[1, 2]"}).err, "expected 2"));
}

TEST_CASE("a function for a backend outside of the compiler is refused, but printed", "[tools]") {
  test::Folder folder("run");
  std::string file = folder.write("codegen.py", R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = Module.part(x)
        return y

    @R.function
    def part(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"Codegen": "dnnl"})
        @R.function
        def body(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            R.func_attr({"Composite": "dnnl.relu"})
            w = R.nn.relu(z)
            return w
        y = body(x)
        return y
)");
  for (const char* command : {"run", "bench"}) {
    Outcome refused = run_command({command, file});
    CHECK(refused.exit_code == 3);
    CHECK(run_has(refused.err, "'part' is for the backend 'dnnl', and there are no backends"));
  }
  CHECK(run_command({"compile", file, "-o", folder.at("a.so")}).exit_code == 3);
  CHECK(run_command({"fmt", file}).exit_code == 0);
  CHECK(run_command({"opt", file}).exit_code == 0);
}

TEST_CASE("expressions over dims are evaluated and solved", "[tools]") {
  using tools::evaluate_dim;
  CHECK(evaluate_dim("(n + 1) // 2 * 3 - m % 4", {{"n", 5}, {"m", 6}}) == 7);
  CHECK(evaluate_dim("T.max(n, 2) + T.int64(1) - -1", {{"n", 1}}) == 4);
  for (const char* wrong : {"n", "1 +", "(1", "1 // 0", "T.exp(1)", "9223372036854775807 + 1", ""})
    CHECK(evaluate_dim(wrong, {}) == std::nullopt);
  CHECK(evaluate_dim(std::string(100000, '('), {}) == std::nullopt);

  tools::DimSolver solver({{"known", 3}});
  solver.learn({-1, "n * 3 + known"}, 15);
  solver.learn({-1, "n * m"}, 20);
  solver.learn({-1, "(k + 1) // 2"}, 4);
  solver.need({-1, "free - 4"});
  solver.solve();
  CHECK(solver.known().at("n") == 4);
  CHECK(solver.known().at("m") == 5);
  CHECK(solver.known().at("k") == 7);
  CHECK(solver.value({-1, "free - 4"}) == 4);
  CHECK_THROWS_AS(solver.value({-1, "unheard_of"}), CompileError);
}

TEST_CASE("a closure belongs to its program", "[tools]") {
  const char* text = R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def scaled(x: R.Tensor((2,), "float32"), by: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.multiply(x, by)
        return y

    @R.function
    def make(by: R.Tensor((2,), "float32")) -> R.Object:
        f = R.make_closure(Module.scaled, (by,))
        return f

    @R.function
    def use(f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32")), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = f(x)
        return y
)";
  test::Folder folder("run");
  std::string file = folder.write("closure.py", text);
  vm::Value closure;
  Tensor two = Tensor::of<float>({2}, kFloat32, {2, 3});
  {
    Program program = compile_file(file).load();
    Session session(program, {.threads = 1});
    closure = session.run_values(std::vector<vm::Value>{two}, "make");
    CHECK(session.run_values(std::vector<vm::Value>{closure, two}, "use").tensor().as_double(1) == 9);
    CHECK_THROWS_AS(session.run_values(std::vector<vm::Value>{two, two}, "use"), RuntimeError);
  }
  // The closure keeps its program alive; another one refuses it.
  Session other(compile_file(file).load(), {.threads = 1});
  try {
    other.run_values(std::vector<vm::Value>{closure, two}, "use");
    FAIL("expected an error");
  } catch (const RuntimeError& error) {
    CHECK(run_has(error.what(), "of another program"));
  }
  CHECK(run_has(run_command({"run", file, "--function", "use"}).err, "cannot be random"));
}

TEST_CASE("the values of maps and sequences are shown, the first ones of many", "[tools]") {
  const std::vector<std::string_view> names = {"a", "b"};
  const Tensor keys = Tensor::strings({2}, names);
  const vm::Value map = vm::Map::of(keys, Tensor::of<float>({2}, kFloat32, {0.5, 1}));
  CHECK(tools::summary({"m", map}) == "m: map from string[2] to float32[2]  {'a': 0.5, 'b': 1}");
  const Tensor ids = Tensor::of<int64_t>({2}, kInt64, {12345678, -1});
  const Tensor rows = Tensor::of<float>({2, 2}, kFloat32, {1, 2, 3, 4});
  CHECK(tools::summary({"m", vm::Map::of(ids, rows)}) ==
        "m: map from int64[2] to float32[2, 2]  {12345678: [1, 2], -1: [3, 4]}");
  CHECK(tools::summary({"s", vm::Sequence{vm::Tuple({map, map})}}) ==
        "s: sequence of 2\n  [0] map from string[2] to float32[2]  {'a': 0.5, 'b': 1}\n"
        "  [1] map from string[2] to float32[2]  {'a': 0.5, 'b': 1}");
  const std::string many = tools::summary({"s", vm::Sequence{vm::Tuple(std::vector<vm::Value>(9, ids))}});
  CHECK(run_has(many, "s: sequence of 9\n  [0] int64[2]"));
  CHECK(run_has(many, "[12345678, -1]\n  ... 3 more"));
  CHECK(tools::summary({"s", vm::Sequence{vm::Tuple({})}}) == "s: sequence of 0");
}
