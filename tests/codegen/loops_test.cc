// Statements: loops of each kind, branches, allocation, assertions, scalars and the calling convention.
#include <cmath>
#include <numeric>

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "support/diagnostic.h"
#include "tests/kernel_harness.h"
#include "tir/analysis/annotations.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

std::vector<float> iota(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

}  // namespace

TEST_CASE("a serial loop over a symbolic size", "[codegen]") {
  VarRef n = make_dim("n"), i = make_dim("i");
  Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n);
  CompiledKernel kernel(prim_func({a, b}, {loop(i, n, store(b, load(a, {i}) * f32(2) + f32(1), {i}))}));
  for (int64_t size : {0, 1, 7, 100}) {
    std::vector<float> x = iota(size), y(x.size() + 1, -1.0f);
    REQUIRE(kernel.run({x.data(), y.data()}, {size}).status == 0);
    for (size_t k = 0; k < x.size(); ++k) CHECK(y[k] == x[k] * 2 + 1);
    CHECK(y.back() == -1);
  }
}

TEST_CASE("loop variables of 32 bits and loops that do not start at 0", "[codegen]") {
  VarRef i = make_var("i", prim_type(kInt32));
  Buffer b = flat_buffer("B", kInt32, 10);
  Stmt body = make(For{i, int_imm(3, kInt32), int_imm(4, kInt32), ForKind::kSerial, {}, {}, store(b, i * i, {i})});
  std::vector<int32_t> y(10, -1);
  REQUIRE(CompiledKernel(prim_func({b}, {body})).run({y.data()}).status == 0);
  CHECK(y == std::vector<int32_t>{-1, -1, -1, 9, 16, 25, 36, -1, -1, -1});
}

TEST_CASE("several dims are row-major", "[codegen]") {
  VarRef m = make_dim("m"), n = make_dim("n"), i = make_dim("i"), j = make_dim("j");
  Buffer a = make_buffer("A", kFloat32, {m, n}), b = make_buffer("B", kFloat32, {n, m});
  Stmt body = loop(i, m, loop(j, n, store(b, load(a, {i, j}), {j, i})), ForKind::kParallel);
  CompiledKernel kernel(prim_func({a, b}, {body}));
  std::vector<float> x = iota(15), y(15);
  REQUIRE(kernel.run({x.data(), y.data()}, {3, 5}, 2).status == 0);
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 5; ++c) CHECK(y[c * 3 + r] == x[r * 5 + c]);
  }
}

TEST_CASE("a loop over a tile that fills half of 16 registers is not unrolled", "[codegen]") {
  constexpr int kLanes = 8, kTaps = 3;
  auto multiply_adds = [&](int64_t tile, const char* target) {
    VarRef tap = make_dim("tap"), p = make_dim("p");
    Buffer x = flat_buffer("x", kFloat32, tile + kTaps), w = flat_buffer("w", kFloat32, kTaps * kLanes),
           y = flat_buffer("y", kFloat32, tile * kLanes),
           sums = make_buffer("sums", kFloat32, {imm(tile * kLanes)}, "local");
    auto vector = [&](const Expr& first) { return ramp(first * imm(kLanes), imm(1), kLanes); };
    auto for_pixels = [&](const Stmt& body) { return loop(p, imm(tile), body, ForKind::kUnrolled); };
    const Expr pixel = broadcast(load(x, {p + tap}), kLanes), sum = load(sums, {vector(p)});
    const Stmt body =
        seq({alloc(sums), for_pixels(store(sums, broadcast(f32(0), kLanes), {vector(p)})),
             loop(tap, imm(kTaps), for_pixels(store(sums, sum + pixel * load(w, {vector(tap)}), {vector(p)}))),
             for_pixels(store(y, sum, {vector(p)}))});
    const std::string text = to_assembly({{"k", prim_func({x, w, y}, {body})}}, parse_target(target));
    int64_t count = 0;
    for (size_t at = 0; (at = text.find("vfmadd", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  CHECK(multiply_adds(4, "x86-64-v3") == 4 * kTaps);
  CHECK(multiply_adds(10, "x86-64-v3") == 10);
  CHECK(multiply_adds(10, "x86-64-v4") == 10 * kTaps);
}

TEST_CASE("a parallel loop that turns back", "[codegen]") {
  VarRef i = make_dim("i"), j = make_dim("j");
  Buffer order = flat_buffer("order", kInt64, 9), count = flat_buffer("count", kInt64, 1);
  Expr at = load(count, {imm(0)});
  Stmt note = seq({store(order, j, {at}), store(count, at + imm(1), {imm(0)})});  // in order, on a single thread
  Stmt inner = make(For{j, imm(2), imm(3), ForKind::kParallel, {}, {{annotation<"turns_back">(), true}}, note});
  CompiledKernel kernel(prim_func({order, count}, {loop(i, imm(3), inner)}));
  std::vector<int64_t> orders(9), counts(1);
  REQUIRE(kernel.run({orders.data(), counts.data()}, {}, 1).status == 0);
  CHECK(orders == std::vector<int64_t>{2, 3, 4, 4, 3, 2, 2, 3, 4});
}

TEST_CASE("a parallel matmul gives the same bits for any number of threads", "[codegen]") {
  constexpr int64_t kSize = 37;
  VarRef i = make_dim("i"), j = make_dim("j"), k = make_dim("k");
  Buffer a = make_buffer("A", kFloat32, {imm(kSize), imm(kSize)}),
         b = make_buffer("B", kFloat32, {imm(kSize), imm(kSize)}),
         c = make_buffer("C", kFloat32, {imm(kSize), imm(kSize)}),
         sum = make_buffer("sum", kFloat32, {imm(1)}, "local");
  Stmt inner = seq({store(sum, f32(0), {imm(0)}),
                    loop(k, imm(kSize), store(sum, load(sum, {imm(0)}) + load(a, {i, k}) * load(b, {k, j}), {imm(0)})),
                    store(c, load(sum, {imm(0)}), {i, j})});
  Stmt body =
      loop(i, imm(kSize), seq({alloc(sum), loop(j, imm(kSize), inner, ForKind::kParallel)}), ForKind::kParallel);
  CompiledKernel kernel(prim_func({a, b, c}, {body}));
  std::vector<float> x(kSize * kSize), y(x.size()), one(x.size()), two(x.size()), four(x.size());
  for (size_t p = 0; p < x.size(); ++p) {
    x[p] = std::sin(static_cast<float>(p));
    y[p] = std::cos(static_cast<float>(p));
  }
  REQUIRE(kernel.run({x.data(), y.data(), one.data()}, {}, 1).status == 0);
  REQUIRE(kernel.run({x.data(), y.data(), two.data()}, {}, 2).status == 0);
  REQUIRE(kernel.run({x.data(), y.data(), four.data()}, {}, 4).status == 0);
  CHECK(one == two);
  CHECK(one == four);
  for (size_t r = 0; r < kSize; ++r) {
    for (size_t s = 0; s < kSize; ++s) {
      double expected = 0;
      for (size_t q = 0; q < kSize; ++q) expected += static_cast<double>(x[r * kSize + q]) * y[q * kSize + s];
      CHECK(std::fabs(one[r * kSize + s] - expected) < 1e-5);
    }
  }
}

TEST_CASE("a parallel loop captures scalars, bools, local buffers and bound values", "[codegen]") {
  VarRef n = make_dim("n"), i = make_dim("i"), flag = make_var("flag", prim_type(kBool)),
         shift = make_var("shift", prim_type(kInt32)), scale = make_var("scale", prim_type(kFloat32));
  Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n), t = flat_buffer("T", kFloat32, 4);
  Stmt body =
      make(For{i,
               imm(1),
               n - 1,
               ForKind::kParallel,
               {},
               {},
               store(b, select(flag, load(a, {i}) * scale + load(t, {imm(2)}), cast_to(shift, kFloat32)), {i})});
  CompiledKernel kernel(prim_func({a, flag, b, shift}, {alloc(t), store(t, f32(5), {imm(2)}),
                                                        make(Bind{scale, load(a, {imm(0)}) * f32(3)}), body}));
  std::vector<float> x = iota(1000), y(1000);
  REQUIRE(kernel.run({x.data(), y.data()}, {1, -9, 1000}, 2).status == 0);
  CHECK(y[0] == 0);
  for (size_t k = 1; k < 1000; ++k) CHECK(y[k] == x[k] * 3 + 5);
  REQUIRE(kernel.run({x.data(), y.data()}, {0, -9, 1000}, 2).status == 0);
  CHECK(y[999] == -9);
  REQUIRE(kernel.run({x.data(), y.data()}, {0, -9, 0}, 2).status == 0);
}

TEST_CASE("unrolled loops, small and too large to write out", "[codegen]") {
  for (int64_t extent : {0, 4, 5000}) {
    VarRef i = make_dim("i"), j = make_dim("j");
    Buffer b = flat_buffer("B", kInt64, imm(std::max<int64_t>(extent * 3, 1)));
    Stmt body = loop(i, imm(extent), loop(j, imm(3), store(b, i * 10 + j, {i * 3 + j}), ForKind::kUnrolled),
                     ForKind::kUnrolled);
    std::vector<int64_t> y(static_cast<size_t>(std::max<int64_t>(extent * 3, 1)));
    REQUIRE(CompiledKernel(prim_func({b}, {body})).run({y.data()}).status == 0);
    for (int64_t k = 0; k < extent * 3; ++k) CHECK(y[static_cast<size_t>(k)] == k / 3 * 10 + k % 3);
  }
}

TEST_CASE("while, if and else", "[codegen]") {
  // Collatz steps of each number.
  VarRef i = make_dim("i");
  Buffer b = flat_buffer("B", kInt32, 30), x = make_buffer("x", kInt64, {imm(1)}, "local");
  Expr value = load(x, {imm(0)});
  Stmt step = make(IfThenElse{equal(floor_mod(value, 2), imm(0)), store(x, floor_div(value, 2), {imm(0)}),
                              std::optional<Stmt>(store(x, value * 3 + 1, {imm(0)}))});
  Stmt body = loop(i, imm(30),
                   seq({alloc(x), store(x, i + 1, {imm(0)}), store(b, int_imm(0, kInt32), {i}),
                        make(While{not_equal(value, imm(1)), seq({step, store(b, load(b, {i}) + 1, {i})})}),
                        make(IfThenElse{i < imm(2), store(b, int_imm(-1, kInt32), {i}), {}})}));
  std::vector<int32_t> y(30);
  REQUIRE(CompiledKernel(prim_func({b}, {body})).run({y.data()}).status == 0);
  for (int64_t k = 0; k < 30; ++k) {
    int32_t steps = 0;
    for (int64_t v = k + 1; v != 1; v = v % 2 == 0 ? v / 2 : v * 3 + 1) ++steps;
    CHECK(y[static_cast<size_t>(k)] == (k < 2 ? -1 : steps));
  }
}

TEST_CASE("a condition does not lend its loads to the statements under it", "[codegen]") {
  Buffer b = flat_buffer("B", kInt32, 2);
  Expr value = load(b, {imm(0)});
  Stmt body = make(IfThenElse{
      value > int_imm(0, kInt32), seq({store(b, int_imm(9, kInt32), {imm(0)}), store(b, value, {imm(1)})}), {}});
  std::vector<int32_t> y{5, 5};
  REQUIRE(CompiledKernel(prim_func({b}, {body})).run({y.data()}).status == 0);
  CHECK(y == std::vector<int32_t>{9, 9});
}

TEST_CASE("large and symbolic temporaries live in scratch memory", "[codegen]") {
  VarRef n = make_dim("n"), i = make_dim("i"), j = make_dim("j"), k = make_dim("k"), m = make_dim("m");
  Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n);
  Buffer big = flat_buffer("big", kFloat32, 100000), symbolic = flat_buffer("symbolic", kFloat32, n);
  Buffer inner = flat_buffer("inner", kFloat32, 20000), computed = flat_buffer("computed", kFloat32, m);
  Stmt copy_in = loop(i, n, seq({store(big, load(a, {i}), {i}), store(symbolic, load(a, {i}) * f32(2), {i})}));
  Stmt copy_out = loop(j, n,
                       seq({alloc(inner), make(Bind{m, cast_to(load(a, {imm(0)}), kInt64) + 3}), alloc(computed),
                            store(inner, load(big, {j}), {imm(19999)}), store(computed, load(symbolic, {j}), {imm(3)}),
                            store(b, load(inner, {imm(19999)}) + load(computed, {imm(3)}), {j})}),
                       ForKind::kParallel);
  CompiledKernel kernel(prim_func({a, b}, {alloc(big), alloc(symbolic), copy_in, copy_out}));
  std::vector<float> x = iota(1000), y(1000);
  REQUIRE(kernel.run({x.data(), y.data()}, {1000}, 2).status == 0);
  for (size_t p = 0; p < 1000; ++p) CHECK(y[p] == 3 * x[p]);
  // A size that overflows is an error, not a crash.
  RunResult result = kernel.run({x.data(), y.data()}, {INT64_MAX / 2}, 1);
  CHECK(result.status == 1);
  CHECK(result.error == "the size of a temporary buffer overflows");
  result = kernel.run({x.data(), y.data()}, {int64_t{1} << 60}, 1);
  CHECK(result.status == 1);
  CHECK(result.error == "out of memory for a temporary buffer");
}

TEST_CASE("assertions return their message, from parallel loops too", "[codegen]") {
  VarRef i = make_dim("i");
  Buffer a = flat_buffer("A", kInt32, 100);
  Stmt body =
      loop(i, imm(100), make(Assert{load(a, {i}) >= int_imm(0, kInt32), {"negative index"}}), ForKind::kParallel);
  CompiledKernel kernel(prim_func({a}, {body}));
  std::vector<int32_t> x(100);
  CHECK(kernel.run({x.data()}, {}, 2).status == 0);
  x[77] = -1;
  for (int threads : {1, 2}) {
    RunResult result = kernel.run({x.data()}, {}, threads);
    CHECK(result.status == 1);
    CHECK(result.error == "negative index");
  }
}

TEST_CASE("buffers that overlap need tir.noalias = false", "[codegen]") {
  VarRef i = make_dim("i");
  Buffer a = flat_buffer("A", kInt32, 8), b = flat_buffer("B", kInt32, 8);
  Stmt body = loop(i, imm(7), store(b, load(a, {i}) + 1, {i + 1}));
  std::vector<int32_t> x(8);
  REQUIRE(CompiledKernel(prim_func({a, b}, {body}, {{"tir.noalias", false}})).run({x.data(), x.data()}).status == 0);
  CHECK(x == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("what is not lowered or not supported is refused", "[codegen]") {
  VarRef i = make_dim("i");
  Buffer b = flat_buffer("B", kFloat32, 4);
  auto compile = [](const PrimFuncRef& function) { return to_llvm_ir({{"test", function}}, parse_target("x86-64")); };
  Stmt block = make(Block{"root", {}, {}, {}, {}, {}, {}, {}, {}, no_op()});
  CHECK_THROWS_AS(compile(prim_func({b}, {block})), InternalError);
  CHECK_THROWS_AS(compile(prim_func({b}, {store(b, f32(0), {i})})), InternalError);
  Stmt bound = make(For{i, imm(0), imm(4), ForKind::kThreadBinding, "threadIdx.x", {}, store(b, f32(0), {i})});
  CHECK_THROWS_AS(compile(prim_func({b}, {bound})), CompileError);
  CHECK_THROWS_AS(compile(prim_func({b}, {store(b, intrinsic("tir.no_such", {f32(1)}, kFloat32), {imm(0)})})),
                  CompileError);
}

}  // namespace relaxc::codegen
