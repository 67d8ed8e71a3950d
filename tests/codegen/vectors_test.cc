// Vector loads and stores: ramps, masks, gathers, tails, guarded vectors; register tiles stay in registers.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "passes/pass.h"
#include "tests/kernel_harness.h"
#include "tests/lowering.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

std::vector<float> count_up(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// `count` elements right before a page that must not be touched: a read or write past the end faults.
template <class T>
class FencedArray {
 public:
  explicit FencedArray(size_t count) : count_(count) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t used = (count * sizeof(T) + page - 1) / page * page;
    bytes_ = used + page;
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(base_ != MAP_FAILED);
    REQUIRE(mprotect(static_cast<char*>(base_) + used, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(static_cast<char*>(base_) + used) - count;
    std::iota(data_, data_ + count, T(1));
  }
  ~FencedArray() { munmap(base_, bytes_); }
  FencedArray(const FencedArray&) = delete;
  FencedArray& operator=(const FencedArray&) = delete;
  T* data() { return data_; }
  T operator[](size_t i) const { return data_[i]; }
  size_t size() const { return count_; }

 private:
  size_t count_, bytes_;
  void* base_;
  T* data_;
};

Expr lanes_below(const Expr& base, int lanes, const Expr& limit) {
  return ramp(base, imm(1), lanes) < broadcast(limit, lanes);
}

}  // namespace

TEST_CASE("a masked tail touches nothing outside", "[codegen]") {
  for (const std::string& target : runnable_targets()) {
    for (int lanes : {4, 8, 16, 32}) {
      VarRef n = make_dim("n"), i = make_dim("i");
      Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n);
      Expr index = ramp(i * lanes, imm(1), lanes), mask = lanes_below(i * lanes, lanes, n);
      Expr value = masked_load(a, index, mask) * broadcast(f32(2), lanes);
      CompiledKernel kernel(prim_func({a, b}, {loop(i, ceil_div(n, lanes), masked_store(b, value, index, mask))}),
                            target);
      for (size_t size : {1, 5, 16, 33}) {
        FencedArray<float> x(size), y(size);
        REQUIRE(kernel.run({x.data(), y.data()}, {static_cast<int64_t>(size)}).status == 0);
        for (size_t p = 0; p < size; ++p) REQUIRE(y[p] == 2 * x[p]);
      }
    }
  }
}

TEST_CASE("without AVX-512 the first lanes are stored without a mask", "[codegen]") {
  VarRef n = make_dim("n"), i = make_dim("i"), m = make_dim("m");
  Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n);
  Expr index = ramp(i * 8, imm(1), 8);
  for (const Expr& mask : {lanes_below(i * 8, 8, n), lanes_below(imm(0), 8, n - i * 8),
                           binary(BinaryOp::kAnd, broadcast(i < m, 8), lanes_below(i * 8, 8, n))}) {
    Stmt body = loop(i, ceil_div(n, 8), masked_store(b, masked_load(a, index, mask), index, mask));
    PrimFuncRef function = prim_func({a, b, m}, {body});
    std::string text = to_assembly({{"copy", function}}, parse_target("x86-64-v3"));
    REQUIRE(text.find("vmaskmovps\t%ymm") == std::string::npos);  // a store: its first operand is a register
    for (size_t size : {1, 6, 8, 15, 17}) {
      FencedArray<float> x(size), y(size);
      REQUIRE(CompiledKernel(function).run({x.data(), y.data()}, {2, static_cast<int64_t>(size)}).status == 0);
      for (size_t p = 0; p < size; ++p) REQUIRE(y[p] == x[p]);
    }
  }
}

TEST_CASE("masked bytes, bools and half floats", "[codegen]") {
  for (const std::string& target : runnable_targets()) {
    for (DType dtype : {DType::int_(8), kBool, DType::float_(16), kInt64}) {
      Buffer a = flat_buffer("A", dtype, 16), b = flat_buffer("B", dtype, 16);
      Expr index = ramp(imm(0), imm(1), 16), mask = lanes_below(imm(0), 16, imm(11));
      CompiledKernel kernel(prim_func({a, b}, {masked_store(b, masked_load(a, index, mask), index, mask)}), target);
      size_t bytes = static_cast<size_t>(11 * dtype.bytes());
      FencedArray<uint8_t> x(bytes), y(bytes);
      if (dtype.is_bool()) std::fill(x.data(), x.data() + bytes, uint8_t{1});
      std::fill(y.data(), y.data() + bytes, uint8_t{0});
      REQUIRE(kernel.run({x.data(), y.data()}).status == 0);
      REQUIRE(std::equal(x.data(), x.data() + bytes, y.data()));
    }
  }
}

TEST_CASE("strided, reversed, broadcast and gathered lanes", "[codegen]") {
  std::vector<float> x = count_up(64), y(8);
  std::vector<int32_t> where{5, 0, 63, 5, 17, 2, 40, 1};
  Buffer a = flat_buffer("A", kFloat32, 64), b = flat_buffer("B", kFloat32, 8), w = flat_buffer("W", kInt32, 8);
  VarRef s = make_dim("s");
  Expr all = ramp(imm(0), imm(1), 8);
  auto run = [&](const Expr& index) {
    std::vector<VarRef> params{a, b, w, s};
    REQUIRE(CompiledKernel(prim_func(params, {store(b, load(a, {index}), {all})}))
                .run({x.data(), y.data(), where.data()}, {5})
                .status == 0);
    return y;
  };
  REQUIRE(run(ramp(imm(3), imm(2), 8)) == std::vector<float>{4, 6, 8, 10, 12, 14, 16, 18});
  REQUIRE(run(ramp(imm(7), imm(-1), 8)) == std::vector<float>{8, 7, 6, 5, 4, 3, 2, 1});
  REQUIRE(run(broadcast(imm(9), 8)) == std::vector<float>(8, 10));
  REQUIRE(run(ramp(imm(0), s, 8)) == std::vector<float>{1, 6, 11, 16, 21, 26, 31, 36});
  REQUIRE(run(all * broadcast(imm(3), 8) + broadcast(s, 8)) == std::vector<float>{6, 9, 12, 15, 18, 21, 24, 27});
  std::vector<float> gathered = run(load(w, {all}));
  for (size_t p = 0; p < 8; ++p) REQUIRE(gathered[p] == x[static_cast<size_t>(where[p])]);
  // Scatter; of equal addresses the last lane wins.
  std::vector<float> out(64);
  Buffer o = flat_buffer("O", kFloat32, 64);
  Stmt scatter = store(o, load(b, {all}), {load(w, {all})});
  y = {1, 2, 3, 4, 5, 6, 7, 8};
  REQUIRE(CompiledKernel(prim_func({b, w, o}, {scatter})).run({y.data(), where.data(), out.data()}).status == 0);
  REQUIRE(out[5] == 4);
  REQUIRE(out[63] == 3);
  REQUIRE(out[1] == 8);
  // Masked scatter with a stride.
  Stmt masked = masked_store(o, load(b, {all}), ramp(imm(0), imm(4), 8), lanes_below(imm(0), 8, imm(3)));
  std::fill(out.begin(), out.end(), 0.0f);
  REQUIRE(CompiledKernel(prim_func({b, o}, {masked})).run({y.data(), out.data()}).status == 0);
  REQUIRE(out[8] == 3);
  REQUIRE(out[12] == 0);
}

TEST_CASE("a scalar if_then_else evaluates one side", "[codegen]") {
  VarRef i = make_dim("i");
  Buffer a = flat_buffer("A", kFloat32, 5), b = flat_buffer("B", kFloat32, 9);
  Expr padded = if_then_else(i >= imm(2) && i < imm(7), load(a, {i - 2}), f32(-1));
  FencedArray<float> x(5);
  std::vector<float> y(9);
  REQUIRE(
      CompiledKernel(prim_func({a, b}, {loop(i, imm(9), store(b, padded, {i}))})).run({x.data(), y.data()}).status ==
      0);
  REQUIRE(y == std::vector<float>{-1, -1, 1, 2, 3, 4, 5, -1, -1});
}

TEST_CASE("a vector if_then_else reads only the lanes that want it", "[codegen]") {
  for (const std::string& target : runnable_targets()) {
    VarRef i = make_dim("i");
    Buffer a = flat_buffer("A", kFloat32, 5), b = flat_buffer("B", kFloat32, 16), w = flat_buffer("W", kInt32, 5);
    Expr index = ramp(imm(0), imm(1), 16);
    Expr inside = index < broadcast(imm(5), 16);
    auto vector_if = [&](const Expr& c, const Expr& x, const Expr& y) {
      return intrinsic("tir.if_then_else", {c, x, y}, dtype_of(x));
    };
    // Contiguous, gathered through a guarded index vector, and a guarded broadcast.
    Expr contiguous = vector_if(inside, load(a, {index}), broadcast(f32(-1), 16));
    Expr gathered = vector_if(not_(inside), broadcast(f32(-2), 16), load(a, {load(w, {index})}));
    Expr nobody =
        vector_if(index < broadcast(imm(0), 16), broadcast(load(a, {imm(5000000)}), 16), broadcast(f32(7), 16));
    FencedArray<float> x(5);
    FencedArray<int32_t> order(5);
    for (size_t p = 0; p < 5; ++p) order.data()[p] = static_cast<int32_t>(4 - p);
    for (int which = 0; which < 3; ++which) {
      std::vector<float> y(16);
      Expr value = which == 0 ? contiguous : which == 1 ? gathered : nobody;
      REQUIRE(CompiledKernel(prim_func({a, w, b}, {store(b, value, {index})}), target)
                  .run({x.data(), order.data(), y.data()})
                  .status == 0);
      for (size_t p = 0; p < 16; ++p) {
        float expected = which == 2 ? 7.0f : p >= 5 ? (which == 0 ? -1.0f : -2.0f) : which == 0 ? x[p] : x[4 - p];
        REQUIRE(y[p] == expected);
      }
    }
  }
}

TEST_CASE("buffers of vectors", "[codegen]") {
  VarRef i = make_dim("i");
  Buffer a = flat_buffer("A", kFloat32.with_lanes(4), 6), b = flat_buffer("B", kFloat32.with_lanes(4), 6);
  std::vector<float> x = count_up(24), y(24);
  REQUIRE(CompiledKernel(prim_func({a, b}, {loop(i, imm(6), store(b, load(a, {i}), {imm(5) - i}))}))
              .run({x.data(), y.data()})
              .status == 0);
  for (size_t p = 0; p < 24; ++p) REQUIRE(y[p] == x[(5 - p / 4) * 4 + p % 4]);
}

// A 6 x 2-vector tile of a matmul: accumulators in a local buffer under unrolled loops become registers.
TEST_CASE("the accumulators of a register tile are registers", "[codegen]") {
  Target target = parse_target("x86-64-v4");
  int lanes = target.vector_lanes(32);
  VarRef k = make_dim("k"), n = make_dim("n");
  Buffer a = make_buffer("A", kFloat32, {n, imm(6)}), b = make_buffer("B", kFloat32, {n, imm(2 * lanes)}),
         c = flat_buffer("C", kFloat32, 12 * lanes), tile = make_buffer("tile", kFloat32, {imm(12 * lanes)}, "local");
  auto each = [&](const std::function<Stmt(const Expr& row, const Expr& at, const Expr& column)>& make_stmt) {
    VarRef r = make_dim("r"), v = make_dim("v");
    Expr at = ramp((r * 2 + v) * lanes, imm(1), lanes), column = ramp(v * lanes, imm(1), lanes);
    return loop(r, imm(6), loop(v, imm(2), make_stmt(r, at, column), ForKind::kUnrolled), ForKind::kUnrolled);
  };
  Stmt zero =
      each([&](const Expr&, const Expr& at, const Expr&) { return store(tile, broadcast(f32(0), lanes), {at}); });
  Stmt update = each([&](const Expr& r, const Expr& at, const Expr& column) {
    return store(tile, load(tile, {at}) + broadcast(load(a, {k, r}), lanes) * load(b, {k, column}), {at});
  });
  Stmt write = each([&](const Expr&, const Expr& at, const Expr&) { return store(c, load(tile, {at}), {at}); });
  KernelMap kernels{{"tile", prim_func({a, b, c}, {alloc(tile), zero, loop(k, n, update), write})}};
  std::string text = to_assembly(kernels, target);
  REQUIRE(text.find("(%rsp)") == std::string::npos);
  size_t fused = 0;
  for (size_t p = text.find("vfmadd"); p != std::string::npos; p = text.find("vfmadd", p + 1)) ++fused;
  REQUIRE(fused == 12);
  REQUIRE(text.find("zmm") != std::string::npos);

  CompiledKernel kernel(kernels.at("tile"));
  std::vector<float> x(6 * 9), y(static_cast<size_t>(2 * lanes * 9)), z(static_cast<size_t>(12 * lanes));
  for (size_t p = 0; p < x.size(); ++p) x[p] = static_cast<float>(p % 7) - 3;
  for (size_t p = 0; p < y.size(); ++p) y[p] = static_cast<float>(p % 5) - 2;
  REQUIRE(kernel.run({x.data(), y.data(), z.data()}, {9}).status == 0);
  for (size_t r = 0; r < 6; ++r) {
    for (size_t s = 0; s < static_cast<size_t>(2 * lanes); ++s) {
      float expected = 0;
      for (size_t q = 0; q < 9; ++q) expected += x[q * 6 + r] * y[q * static_cast<size_t>(2 * lanes) + s];
      REQUIRE(z[r * static_cast<size_t>(2 * lanes) + s] == expected);
    }
  }
}

TEST_CASE("gathers and scatters take indices of 32 bits", "[codegen]") {
  VarRef i = make_dim("i"), v = make_dim("v"), k = make_dim("k");
  Buffer a = flat_buffer("A", kFloat32, 98000), b = flat_buffer("B", kFloat32, 98000);
  Expr at = i * 16 + v, from = floor_mod(at, 50) * 1960 + floor_div(at, 50);
  for (bool gathers : {true, false}) {
    Stmt move = gathers ? store(b, load(a, {from + k}), {at}) : store(b, load(a, {at}), {from + k});
    Stmt body = loop(i, imm(6125), loop(v, imm(16), move, ForKind::kVectorized));
    PrimFuncRef function = lower_program(prim_func({a, b, k}, {body}));
    std::string text = to_assembly({{"k", function}}, parse_target("x86-64-v4"));
    REQUIRE(text.find(gathers ? "vgatherdps" : "vscatterdps") != std::string::npos);
    REQUIRE(text.find("vpmullq") == std::string::npos);
    REQUIRE(text.find("vpextrq") == std::string::npos);
    std::vector<float> x = count_up(98000), y(98000);
    REQUIRE(CompiledKernel(function).run({x.data(), y.data()}, {0}).status == 0);
    for (size_t p = 0; p < y.size(); ++p) {
      size_t other = p % 50 * 1960 + p / 50;
      REQUIRE((gathers ? y[p] == x[other] : y[other] == x[p]));
    }
  }
}

TEST_CASE("relu is one instruction per vector", "[codegen]") {
  Target target = parse_target("x86-64-v3");
  VarRef n = make_dim("n"), i = make_dim("i");
  Buffer a = flat_buffer("A", kFloat32, n), b = flat_buffer("B", kFloat32, n);
  Expr index = ramp(i * 8, imm(1), 8);
  Stmt body = loop(i, n, store(b, max(load(a, {index}), broadcast(f32(0), 8)), {index}));
  std::string text = to_assembly({{"relu", prim_func({a, b}, {body})}}, target);
  REQUIRE(text.find("vmaxps") != std::string::npos);
  REQUIRE(text.find("vcmp") == std::string::npos);
  REQUIRE(text.find("vblend") == std::string::npos);
}

}  // namespace relaxc::codegen
