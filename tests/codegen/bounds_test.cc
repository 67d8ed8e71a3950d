// Errors that --interpret and --check-bounds find; both find nothing in right programs.

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "tests/ops/samples.h"
#include "tests/patterns.h"
#include "vm/error.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

enum class Alarm : uint8_t { kInterpret, kInterpretScheduled, kInterpretLowered, kCheckBounds };
constexpr Alarm kAlarms[] = {Alarm::kInterpret, Alarm::kInterpretScheduled, Alarm::kInterpretLowered,
                             Alarm::kCheckBounds};

CompileSettings settings_for(Alarm alarm) {
  CompileSettings settings;
  settings.jobs = 1;
  settings.opt_level = 1;
  if (alarm == Alarm::kCheckBounds) {
    settings.check_bounds = true;
    return settings;
  }
  settings.interpret.emplace();
  settings.passes = alarm == Alarm::kInterpret            ? "legalize"
                    : alarm == Alarm::kInterpretScheduled ? "kernels"
                                                          : "default";
  return settings;
}

std::vector<Tensor> run(const std::string& text, Alarm alarm, const std::vector<Tensor>& inputs, int threads = 1) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "bounds.py", op_table(), diagnostics);
  diagnostics.throw_if_errors();
  Session session(compile(std::move(module), settings_for(alarm)).load(), {.threads = threads});
  return session.run(inputs);
}

// The error of a run, or "no error".
std::string alarm_of(const std::string& text, Alarm alarm, const std::vector<Tensor>& inputs, int threads = 1) {
  try {
    run(text, alarm, inputs, threads);
    return "no error";
  } catch (const RuntimeError& error) {
    return error.what();
  }
}

std::string replaced(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) {
    for (size_t at; (at = text.find("$" + name)) != std::string::npos;) text.replace(at, name.size() + 1, value);
  }
  return text;
}

// A program on x with the body given, at 12 spaces; its buffers are A, of n, and C, of n.
std::string module_of(const std::string& body, const std::string& dtype, bool symbolic, int64_t n = 12) {
  std::string head = symbolic ? R"(
    @T.prim_func
    def f(a: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "$dtype")
        C = T.match_buffer(c, (n,), "$dtype")
)"
                              : R"(
    @T.prim_func
    def f(A: T.Buffer(($n,), "$dtype"), C: T.Buffer(($n,), "$dtype")):
)";
  std::string main = R"(
    @R.function
    def main(x: R.Tensor(($dim,), "$dtype")):
        $bind
        with R.dataflow():
            y = R.call_tir(Module.f, (x,), out_sinfo=R.Tensor(($dim,), "$dtype"))
            R.output(y)
        return y
)";
  std::string size = symbolic ? "n" : std::to_string(n);
  const std::string used = symbolic ? body : test::with_matches_replaced(body, "\\bn\\b", size);
  return replaced("@I.ir_module\nclass Module:" + head + used + main,
                  {{"dtype", dtype}, {"dim", symbolic ? "\"n\"" : size}, {"n", size}, {"bind", "\"\"\"m\"\"\""}});
}

Tensor counting(int64_t n, DType dtype) {
  Tensor tensor = Tensor::empty({n}, dtype);
  for (int64_t i = 0; i < n; ++i) {
    if (dtype.is_float()) {
      tensor.set_double(i, static_cast<double>(i % 8));
    } else {
      tensor.set_int(i, dtype.is_bool() ? i % 2 : i % 8);
    }
  }
  return tensor;
}

void check_alarm(const std::string& text, const std::vector<Tensor>& inputs, const std::vector<std::string>& expected,
                 int threads = 1) {
  for (Alarm alarm : kAlarms) {
    std::string error = alarm_of(text, alarm, inputs, threads);
    INFO("level " << static_cast<int>(alarm) << "\n" << text << "\n" << error);
    for (const std::string& part : expected) CHECK(error.find(part) != std::string::npos);
  }
}

constexpr const char* kCopy = R"(        for i in $loop(n):
            with T.block("copy"):
                vi = T.axis.spatial(n, i)
                C[$write] = A[$read]
)";

}  // namespace

TEST_CASE("an index out of range is told with buffer, index, range and line, for every dtype", "[bounds]") {
  for (const char* dtype : {"float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
                            "uint16", "uint32", "uint64", "bool"}) {
    std::string body = replaced(kCopy, {{"loop", "T.serial"}, {"write", "vi"}, {"read", "vi + 1"}});
    check_alarm(module_of(body, dtype, false), {counting(12, *parse_dtype(dtype))},
                {"buffer 'A': index 12 of dim 0 is out of range [0, 12)", "bounds.py:8"});
  }
}

TEST_CASE("every kind of loop, static and symbolic dims, below and above, read and written", "[bounds]") {
  for (bool symbolic : {false, true}) {
    for (const char* loop : {"T.serial", "T.parallel", "T.vectorized", "T.unroll"}) {
      if (symbolic && (loop == std::string("T.unroll") || loop == std::string("T.vectorized"))) continue;
      for (bool writes : {false, true}) {
        for (int offset : {1, -1, 5}) {
          std::string moved = offset < 0 ? "vi - 1" : fmt::format("vi + {}", offset);
          std::string body =
              replaced(kCopy, {{"loop", loop}, {"write", writes ? moved : "vi"}, {"read", writes ? "vi" : moved}});
          std::string index = offset < 0 ? "-1" : loop == std::string("T.parallel") ? "" : "12";
          check_alarm(module_of(body, "float32", symbolic), {counting(12, kFloat32)},
                      {fmt::format("buffer '{}': index {}", writes ? "C" : "A", index),
                       "of dim 0 is out of range [0, 12)", symbolic ? "bounds.py:11" : "bounds.py:8"},
                      2);
        }
      }
    }
  }
}

TEST_CASE("indices that data decides, behind a condition, and in vectors as written", "[bounds]") {
  Tensor indices = Tensor::of<int64_t>({4}, kInt64, {3, 1, 7, 0});
  std::string head =
      "        for i in range(n):\n            with T.block(\"b\"):\n                vi = T.axis.spatial(n, i)\n";
  check_alarm(module_of(head + "                C[vi] = A[A[vi]]\n", "int64", true), {indices},
              {"buffer 'A': index 7 of dim 0 is out of range [0, 4)", "bounds.py:11"});
  std::string guarded = "                C[vi] = T.if_then_else(A[vi] < n, A[A[vi]], T.int64(-1))\n";
  for (Alarm alarm : kAlarms)
    CHECK(same_contents(run(module_of(head + guarded, "int64", true), alarm, {indices})[0],
                        Tensor::of<int64_t>({4}, kInt64, {0, 1, -1, 3})));
  std::string wrong = "                C[vi] = T.if_then_else(A[vi] < n + 5, A[A[vi]], T.int64(-1))\n";
  check_alarm(module_of(head + wrong, "int64", true), {indices},
              {"buffer 'A': index 7 of dim 0 is out of range [0, 4)"});
  std::string vectors =
      "        for i in range(3):\n            with T.block(\"b\"):\n                vi = T.axis.spatial(3, i)\n"
      "                C[T.Ramp(vi * 4, 1, 4)] = A[T.Ramp(vi * 4 + $offset, 1, 4)]\n";
  check_alarm(module_of(replaced(vectors, {{"offset", "2"}}), "float32", false), {counting(12, kFloat32)},
              {"buffer 'A': index 1", "of dim 0 is out of range [0, 12)", "bounds.py:8"});
  for (Alarm alarm : kAlarms) {
    Tensor x = counting(12, kFloat32);
    CHECK(same_contents(run(module_of(replaced(vectors, {{"offset", "0"}}), "float32", false), alarm, {x})[0], x));
  }
  std::string loop =
      "        i = T.alloc_buffer((1,), \"int64\")\n        with T.block(\"b\"):\n            i[0] = T.int64(0)\n"
      "            while A[i[0]] != T.int64(99):\n                C[i[0]] = A[i[0]]\n                i[0] = i[0] + "
      "T.int64(1)\n";
  check_alarm(module_of(loop, "int64", true), {indices}, {"buffer 'A': index 4 of dim 0 is out of range [0, 4)"});
}

TEST_CASE("each lane of a vector stays in its row, unless it covers whole rows", "[bounds]") {
  // A buffer of 4 rows of 8 beside the 32 elements of A and C.
  auto text = [](const std::string& access) {
    return module_of(
        "        B = T.alloc_buffer((4, 8), \"float32\")\n"
        "        for i, j in T.grid(4, 8):\n            B[i, j] = A[i * 8 + j]\n"
        "        for i in range(32):\n            C[i] = T.float32(0)\n"
        "        for r in range(1):\n            " +
            access + "\n",
        "float32", false, 32);
  };
  std::vector<Tensor> inputs = {counting(32, kFloat32)};
  for (const char* access : {"C[0:6] = B[r, 3:9]", "B[r, 3:9] = C[0:6]", "C[0:4] = B[r, T.Ramp(2, 2, 4)]",
                             "C[0:8] = B[r + 1, T.Ramp(1, 1, 8)]"})
    for (Alarm alarm : {Alarm::kInterpret, Alarm::kCheckBounds}) {
      std::string error = alarm_of(text(access), alarm, inputs);
      INFO(access << "\n" << error);
      CHECK(error.find("buffer 'B': index 8 of dim 1 is out of range [0, 8) (bounds.py:11") != std::string::npos);
    }
  for (const char* access : {"C[0:16] = B[r, 0:16]", "C[0:8] = B[r + 3, 0:8]", "C[0:4] = B[r, T.Ramp(1, 2, 4)]"})
    for (Alarm alarm : kAlarms) CHECK(alarm_of(text(access), alarm, inputs) == "no error");
  check_alarm(text("C[0:16] = B[r + 3, 0:16]"), inputs, {"B", "out"});
}

TEST_CASE("lanes that a mask leaves out touch nothing", "[bounds]") {
  // Four at a time, the last of them masked; from `first` on, which may be too far.
  auto text = [](const std::string& dim) {
    std::string mask = "T.get_active_lane_mask(\"boolx4\", i * 4, T.int64(" + dim + "))";
    return module_of(
        "        for i in T.serial((n + 3) // 4):\n"
        "            v = A.vload([T.Ramp(i * 4, 1, 4)], predicate=" +
            mask +
            ")\n"
            "            C.vstore([T.Ramp(i * 4, 1, 4)], v, predicate=" +
            mask + ")\n",
        "float32", true);
  };
  for (int64_t n : {1, 4, 6}) {
    Tensor x = counting(n, kFloat32);
    for (Alarm alarm : kAlarms) CHECK(same_contents(run(text(std::to_string(n)), alarm, {x})[0], x));
    if (n % 4 != 0) check_alarm(text(std::to_string(n + 1)), {x}, {fmt::format("index {} of dim 0 is out of", n)});
  }
}

TEST_CASE("what the interpreter does not know is refused before anything runs", "[bounds]") {
  std::string body = replaced(kCopy, {{"loop", "T.serial"}, {"write", "vi"}, {"read", "vi"}});
  std::string text =
      module_of(test::with_matches_replaced(body, "A\\[vi\\]",
                                            R"(T.call_llvm_pure_intrin("float32", "llvm.x86.sse.rcp.ps", A[vi]))"),
                "float32", true);
  try {
    run(text, Alarm::kInterpret, {counting(12, kFloat32)});
    FAIL("no error");
  } catch (const CompileError& error) {
    CHECK(error.kind() == ErrorKind::kUnsupported);
  }
}

// Operators of tuples get them as one value in both.
TEST_CASE("the interpreter takes tuple values", "[bounds]") {
  std::string text = R"(
@R.function
def main(x: R.Tensor((4, 6), "float32")):
    t = ((x, x), x)
    u = t[0]
    r = R.concat(u, axis=-1)
    return r
)";
  Tensor x = Tensor::empty({4, 6}, kFloat32);
  for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i));
  for (Alarm alarm : kAlarms) CHECK(run(text, alarm, {x})[0].shape() == std::vector<int64_t>{4, 12});
}

TEST_CASE("an axis outside of its domain, alone and in nested blocks", "[bounds]") {
  // The value comes from data: nothing is provable.
  std::string body = R"(        for i in range(n):
            with T.block("outer"):
                vi = T.axis.spatial(n, i)
                for j in range(2):
                    with T.block("inner"):
                        vj = T.axis.spatial(n, vi * 2 + j)
                        C[vj] = A[vj]
)";
  for (bool symbolic : {false, true}) {
    std::string text = module_of(replaced(body, {}), "float32", symbolic);
    std::string error = "no error";
    try {
      run(text, Alarm::kCheckBounds, {counting(12, kFloat32)});
    } catch (const CompileError& found) {
      error = found.what();
    }
    INFO(error);
    CHECK(error.find(symbolic ? "axis 'vj' is n * 2 - 1 where i = n - 1 of [0, n), j = 1 of [0, 2)"
                              : "axis 'vj' is 23 where i = 11 of [0, 12), j = 1 of [0, 2)") != std::string::npos);
    CHECK(error.find("[T20]") != std::string::npos);
  }
  std::string open = R"(        for i in range(n):
            with T.block("b"):
                vi = T.axis.spatial(n, A[i])
                C[vi] = A[vi]
)";
  for (Alarm alarm : kAlarms) {
    std::string error =
        alarm_of(module_of(open, "int64", true), alarm, {Tensor::of<int64_t>({4}, kInt64, {3, 1, 7, 0})});
    INFO("level " << static_cast<int>(alarm) << "\n" << error);
    // Lowering without checks leaves no blocks, and so no axes, only the access.
    bool has_axes = alarm != Alarm::kInterpretLowered;
    CHECK(error.find(has_axes ? "block 'b': axis 'vi' is 7, outside of its domain [0, 4)"
                              : "buffer 'A': index 7 of dim 0 is out of range [0, 4)") != std::string::npos);
    CHECK(error.find(has_axes ? "bounds.py:9" : "bounds.py:11") != std::string::npos);
  }
}

TEST_CASE("elements that nobody has written are told when they are read", "[bounds]") {
  for (const char* dtype : {"float32", "float16", "int8", "uint8", "int64", "bool"}) {
    std::string body = R"(        B = T.alloc_buffer((n,), "$dtype")
        for i in range(n):
            with T.block("half"):
                vi = T.axis.spatial(n, i)
                T.where(i % 2 == 0)
                B[vi] = A[vi]
        for i in range(n):
            with T.block("all"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[vi]
)";
    std::string error = alarm_of(module_of(body, dtype, true), Alarm::kInterpret, {counting(6, *parse_dtype(dtype))});
    INFO(error);
    CHECK(error.find("buffer 'B': element [1] is read but was never written") != std::string::npos);
    CHECK(error.find("bounds.py:17") != std::string::npos);
  }
  // Made by one kernel, read by the next; and returned.
  std::string half =
      "        for i in range(n):\n            with T.block(\"b\"):\n                vi = T.axis.spatial(n, i)\n"
      "                T.where(i < 3)\n                C[vi] = A[vi]\n";
  std::string text = module_of(half, "int32", true);
  std::string error = alarm_of(text, Alarm::kInterpret, {counting(6, kInt32)});
  INFO(error);
  CHECK(error.find("element 3 was never written; it comes from buffer 'C' of 'f'") != std::string::npos);
  size_t call = text.find("            R.output(y)");
  text.insert(call, "            z = R.add(y, y)\n");
  text.replace(text.find("R.output(y)"), 11, "R.output(z)");
  text.replace(text.find("return y"), 8, "return z");
  error = alarm_of(text, Alarm::kInterpret, {counting(6, kInt32)});
  INFO(error);
  CHECK(error.find("element [3] is read but was never written") != std::string::npos);
}

TEST_CASE("a graph means the same in the interpreter at every level and with checks", "[bounds]") {
  std::string text = R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 24), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.softmax(R.nn.relu(y), axis=-1)
            R.output(z)
        return z
)";
  for (int64_t n : {0, 1, 7}) {
    std::vector<Tensor> inputs = {Tensor::empty({n, 16}, kFloat32), Tensor::empty({16, 24}, kFloat32)};
    for (Tensor& input : inputs) {
      for (int64_t i = 0; i < input.size(); ++i) input.set_double(i, static_cast<double>(i * 7 % 13) / 8 - 0.5);
    }
    Tensor expected = run(text, Alarm::kInterpret, inputs)[0];
    for (Alarm alarm : kAlarms) {
      Tensor got = run(text, alarm, inputs)[0];
      REQUIRE(got.shape() == expected.shape());
      for (int64_t i = 0; i < got.size(); ++i) CHECK(std::abs(got.as_double(i) - expected.as_double(i)) < 1e-6);
    }
  }
}

TEST_CASE("an offset of 0 says nothing about a tensor", "[bounds]") {
  std::string text = module_of(replaced(kCopy, {{"loop", "T.serial"}, {"write", "vi"}, {"read", "vi"}}), "int32", true);
  text = test::with_matches_replaced(text, "\"int32\"\\)\n", "\"int32\", elem_offset=0, align=128, offset_factor=1)\n");
  REQUIRE(text.find("elem_offset=0") != std::string::npos);
  Tensor x = counting(12, kInt32);
  for (Alarm alarm : kAlarms) CHECK(same_contents(run(text, alarm, {x})[0], x));
}

TEST_CASE("an interpreted module has no artifact", "[bounds]") {
  Diagnostics diagnostics;
  IRModule module =
      parse_module(module_of(replaced(kCopy, {{"loop", "T.serial"}, {"write", "vi"}, {"read", "vi"}}), "int32", true),
                   "bounds.py", op_table(), diagnostics);
  CHECK_THROWS_AS(compile(module, settings_for(Alarm::kInterpret)).write("/dev/null"), CompileError);
}

}  // namespace relaxc::test
