// Scalar semantics on every target this machine runs: arithmetic, casts, the 16-bit floats, integer division, bool.
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "support/checked_math.h"
#include "tests/kernel_harness.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

// Applies `make_value` to the elements of n-ary inputs, by vectors of 16 lanes and a scalar tail.
template <class Result, class Operand>
std::vector<Result> map_elements(const std::string& target, DType from, DType to,
                                 std::vector<std::vector<Operand>> inputs,
                                 const std::function<Expr(const std::vector<Expr>&)>& make_value) {
  int64_t n = static_cast<int64_t>(inputs[0].size());
  std::vector<VarRef> params;
  std::vector<void*> data;
  for (std::vector<Operand>& input : inputs) {
    params.push_back(flat_buffer("in", from, n));
    data.push_back(input.data());
  }
  Buffer out = flat_buffer("out", to, n);
  params.push_back(out);
  VarRef i = make_dim("i"), j = make_dim("j");
  auto body = [&](const Expr& index) {
    std::vector<Expr> values;
    for (size_t p = 0; p + 1 < params.size(); ++p) values.push_back(load(params[p], {index}));
    return store(out, make_value(values), {index});
  };
  Stmt vectors = loop(i, imm(n / 16), body(ramp(i * 16, imm(1), 16)));
  Stmt tail = loop(j, imm(n % 16), body(j + n / 16 * 16));
  std::vector<Result> result(inputs[0].size());
  data.push_back(result.data());
  RunResult run = CompiledKernel(prim_func(params, {vectors, tail}), target).run(data);
  REQUIRE(run.status == 0);
  return result;
}

template <class T>
std::vector<std::vector<T>> all_pairs(const std::vector<T>& values) {
  std::vector<std::vector<T>> pairs(2);
  for (T a : values) {
    for (T b : values) {
      pairs[0].push_back(a);
      pairs[1].push_back(b);
    }
  }
  return pairs;
}

template <class T>
std::vector<T> interesting_integers() {
  using L = std::numeric_limits<T>;
  std::vector<T> values{
      0, 1, 2, 3, 4, 7, 8, 100, L::max(), static_cast<T>(L::max() - 1), L::min(), static_cast<T>(L::min() + 1)};
  if constexpr (L::is_signed) {
    for (int v : {-1, -2, -3, -4, -7, -8, -100}) values.push_back(static_cast<T>(v));
  }
  return values;
}

const float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();
std::vector<float> interesting_floats() {
  return {0.0f,           -0.0f,         1.0f,    -1.0f,    0.5f,    1.5f,     2.5f,     -2.5f,    3.0f,
          1e-40f,         127.5f,        128.0f,  255.9f,   -128.5f, 65504.0f, 65520.0f, 65535.9f, 2147483648.0f,
          -2147483648.0f, 4294967296.0f, 9.3e18f, -9.3e18f, 1.9e19f, 3e38f,    kInf,     -kInf,    kNaN};
}

template <class T>
bool same_bits_or_nan(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
void check_integer_operators(const std::string& target, DType dtype) {
  std::vector<std::vector<T>> pairs = all_pairs(interesting_integers<T>());
  for (BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kTruncMod,
                      BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kMin, BinaryOp::kMax, BinaryOp::kBitAnd,
                      BinaryOp::kBitOr, BinaryOp::kBitXor, BinaryOp::kShiftLeft, BinaryOp::kShiftRight}) {
    std::vector<T> result = map_elements<T, T>(target, dtype, dtype, pairs,
                                               [&](const std::vector<Expr>& x) { return binary(op, x[0], x[1]); });
    for (size_t p = 0; p < result.size(); ++p) {
      T a = pairs[0][p], b = pairs[1][p];
      INFO(target << " " << to_string(dtype) << " " << info(op).name << " " << +a << " " << +b);
      std::optional<int64_t> expected = fold_int(op, static_cast<int64_t>(a), static_cast<int64_t>(b), dtype);
      bool overflows = std::numeric_limits<T>::is_signed && a == std::numeric_limits<T>::min() && b == T(-1);
      bool is_mod = op == BinaryOp::kTruncMod || op == BinaryOp::kFloorMod;
      if (expected) {
        REQUIRE(result[p] == static_cast<T>(*expected));
      } else if (op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight) {
        bool fills = op == BinaryOp::kShiftRight && std::numeric_limits<T>::is_signed && a < T(0);
        REQUIRE(result[p] == (fills ? T(-1) : T(0)));
      } else if (overflows) {
        REQUIRE(result[p] == (is_mod ? T(0) : a));
      } else {
        REQUIRE(result[p] == (is_mod ? T(0) : a));  // by zero: as by one
      }
    }
  }
  for (BinaryOp op : {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT, BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE}) {
    std::vector<uint8_t> result = map_elements<uint8_t, T>(
        target, dtype, kBool, pairs, [&](const std::vector<Expr>& x) { return binary(op, x[0], x[1]); });
    for (size_t p = 0; p < result.size(); ++p) {
      REQUIRE(result[p] == *fold_int(op, static_cast<int64_t>(pairs[0][p]), static_cast<int64_t>(pairs[1][p]), dtype));
    }
  }
}

template <class T>
void check_saturation(const std::string& target, DType dtype) {
  std::vector<float> values = interesting_floats();
  std::vector<T> result = map_elements<T, float>(
      target, kFloat32, dtype, {values}, [&](const std::vector<Expr>& x) { return cast_elements(x[0], dtype); });
  using L = std::numeric_limits<T>;
  for (size_t p = 0; p < values.size(); ++p) {
    INFO(target << " " << to_string(dtype) << " " << values[p]);
    double v = std::trunc(static_cast<double>(values[p]));
    T expected = std::isnan(v)                        ? T(0)
                 : v <= static_cast<double>(L::min()) ? L::min()
                 : v >= static_cast<double>(L::max()) ? L::max()
                                                      : static_cast<T>(v);
    REQUIRE(result[p] == expected);
  }
}

}  // namespace

TEST_CASE("integer operators of every width", "[codegen]") {
  for (const std::string& target : runnable_targets()) {
    check_integer_operators<int8_t>(target, DType::int_(8));
    check_integer_operators<uint8_t>(target, DType::uint(8));
    check_integer_operators<int16_t>(target, DType::int_(16));
    check_integer_operators<int32_t>(target, kInt32);
    check_integer_operators<uint32_t>(target, DType::uint(32));
    check_integer_operators<int64_t>(target, kInt64);
    check_integer_operators<uint64_t>(target, DType::uint(64));
  }
}

TEST_CASE("floor division by constants, of data and of index arithmetic", "[codegen]") {
  for (int64_t divisor : {1, 2, 3, 7, 8, -1, -2, -3, -8}) {
    VarRef i = make_dim("i");
    Buffer a = flat_buffer("A", kInt64, 41), q = flat_buffer("Q", kInt64, 41), r = flat_buffer("R", kInt64, 41),
           iq = flat_buffer("IQ", kInt64, 41), ir = flat_buffer("IR", kInt64, 41);
    Expr value = load(a, {i}), d = imm(divisor);
    auto op = [&](BinaryOp which, const Expr& x) { return binary(which, x, d); };
    Stmt body =
        loop(i, imm(41),
             seq({store(q, op(BinaryOp::kFloorDiv, value), {i}), store(r, op(BinaryOp::kFloorMod, value), {i}),
                  store(iq, op(BinaryOp::kFloorDiv, i - 20), {i}), store(ir, op(BinaryOp::kFloorMod, i + 3), {i})}));
    std::vector<int64_t> x(41), y[4];
    for (int64_t k = 0; k < 41; ++k) x[static_cast<size_t>(k)] = k - 20;
    for (auto& v : y) v.resize(41);
    REQUIRE(CompiledKernel(prim_func({a, q, r, iq, ir}, {body}))
                .run({x.data(), y[0].data(), y[1].data(), y[2].data(), y[3].data()})
                .status == 0);
    for (int64_t k = 0; k < 41; ++k) {
      size_t p = static_cast<size_t>(k);
      REQUIRE(y[0][p] == floor_div(k - 20, divisor));
      REQUIRE(y[1][p] == floor_mod(k - 20, divisor));
      REQUIRE(y[2][p] == floor_div(k - 20, divisor));
      REQUIRE(y[3][p] == floor_mod(k + 3, divisor));
    }
  }
}

TEST_CASE("float operators, min and max with NaN", "[codegen]") {
  std::vector<std::vector<float>> pairs = all_pairs(interesting_floats());
  struct Row {
    BinaryOp op;
    float (*expected)(float, float);
  };
  const Row rows[] = {
      {BinaryOp::kAdd, [](float a, float b) { return a + b; }},
      {BinaryOp::kSub, [](float a, float b) { return a - b; }},
      {BinaryOp::kMul, [](float a, float b) { return a * b; }},
      {BinaryOp::kDiv, [](float a, float b) { return a / b; }},
      {BinaryOp::kTruncMod, [](float a, float b) { return std::fmod(a, b); }},
      {BinaryOp::kFloorDiv, [](float a, float b) { return std::floor(a / b); }},
  };
  for (const std::string& target : runnable_targets()) {
    for (const Row& row : rows) {
      std::vector<float> result = map_elements<float, float>(
          target, kFloat32, kFloat32, pairs, [&](const std::vector<Expr>& x) { return binary(row.op, x[0], x[1]); });
      for (size_t p = 0; p < result.size(); ++p) {
        INFO(target << " " << info(row.op).name << " " << pairs[0][p] << " " << pairs[1][p]);
        REQUIRE(same_bits_or_nan(result[p], row.expected(pairs[0][p], pairs[1][p])));
      }
    }
    for (BinaryOp op : {BinaryOp::kMin, BinaryOp::kMax}) {
      std::vector<float> result = map_elements<float, float>(
          target, kFloat32, kFloat32, pairs, [&](const std::vector<Expr>& x) { return binary(op, x[0], x[1]); });
      for (size_t p = 0; p < result.size(); ++p) {
        float a = pairs[0][p], b = pairs[1][p];
        if (std::isnan(a) || std::isnan(b)) {
          REQUIRE(std::isnan(result[p]));
        } else {
          REQUIRE(result[p] == (op == BinaryOp::kMin ? std::min(a, b) : std::max(a, b)));
        }
      }
      for (bool constant_first : {true, false}) {  // relu
        result = map_elements<float, float>(target, kFloat32, kFloat32, {interesting_floats()},
                                            [&](const std::vector<Expr>& x) {
                                              Expr zero = scalar_imm(0, dtype_of(x[0]));
                                              return constant_first ? binary(op, zero, x[0]) : binary(op, x[0], zero);
                                            });
        for (size_t p = 0; p < result.size(); ++p) {
          float a = interesting_floats()[p];
          REQUIRE((std::isnan(a) ? std::isnan(result[p])
                                 : result[p] == (op == BinaryOp::kMin ? std::min(a, 0.0f) : std::max(a, 0.0f))));
        }
      }
    }
    std::vector<std::vector<float>> finite = all_pairs<float>({5.5f, -5.5f, 3.0f, -3.0f, 0.25f, 6.0f});
    std::vector<float> result =
        map_elements<float, float>(target, kFloat32, kFloat32, finite,
                                   [&](const std::vector<Expr>& x) { return binary(BinaryOp::kFloorMod, x[0], x[1]); });
    for (size_t p = 0; p < result.size(); ++p) {
      float a = finite[0][p], b = finite[1][p];
      REQUIRE(result[p] == a - std::floor(a / b) * b);
    }
    std::vector<uint8_t> differs =
        map_elements<uint8_t, float>(target, kFloat32, kBool, {{kNaN, 1.0f}, {kNaN, 1.0f}},
                                     [&](const std::vector<Expr>& x) { return not_equal(x[0], x[1]); });
    REQUIRE(differs == std::vector<uint8_t>{1, 0});
  }
}

TEST_CASE("casts from float saturate, NaN gives 0", "[codegen]") {
  for (const std::string& target : runnable_targets()) {
    check_saturation<int8_t>(target, DType::int_(8));
    check_saturation<uint8_t>(target, DType::uint(8));
    check_saturation<int16_t>(target, DType::int_(16));
    check_saturation<int32_t>(target, kInt32);
    check_saturation<uint32_t>(target, DType::uint(32));
    check_saturation<int64_t>(target, kInt64);
    check_saturation<uint64_t>(target, DType::uint(64));
    std::vector<uint8_t> truth =
        map_elements<uint8_t, float>(target, kFloat32, kBool, {{0.0f, -0.0f, 0.1f, 1e-40f, kNaN, kInf}},
                                     [&](const std::vector<Expr>& x) { return cast_elements(x[0], kBool); });
    REQUIRE(truth == std::vector<uint8_t>{0, 0, 1, 1, 1, 1});
    std::vector<int8_t> wrapped =
        map_elements<int8_t, int64_t>(target, kInt64, DType::int_(8), {{127, 128, 255, 256, -129}},
                                      [&](const std::vector<Expr>& x) { return cast_elements(x[0], DType::int_(8)); });
    REQUIRE(wrapped == std::vector<int8_t>{127, -128, -1, 0, 127});
    std::vector<float> from_unsigned =
        map_elements<float, uint64_t>(target, DType::uint(64), kFloat32, {{0, 1, UINT64_MAX, uint64_t{1} << 63}},
                                      [&](const std::vector<Expr>& x) { return cast_elements(x[0], kFloat32); });
    REQUIRE(from_unsigned == std::vector<float>{0, 1, 18446744073709551616.0f, 9223372036854775808.0f});
  }
}

TEST_CASE("float16 and bfloat16: every value widens, arithmetic rounds once", "[codegen]") {
  const DType kHalf = DType::float_(16), kBrain = DType::bfloat16();
  std::vector<uint16_t> all(65536);
  for (size_t p = 0; p < all.size(); ++p) all[p] = static_cast<uint16_t>(p);
  // Floats around every rounding boundary of the 16-bit formats.
  std::vector<float> floats;
  for (size_t p = 0; p < all.size(); p += 3) {
    for (float v : {half_to_float(all[p]), bfloat16_to_float(all[p])}) {
      for (int32_t step : {-1, 0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001}) {
        floats.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(v) + static_cast<uint32_t>(step)));
      }
    }
  }
  auto same = [](DType dtype, uint16_t a, uint16_t b) {
    float x = dtype.code == DTypeCode::kBFloat ? bfloat16_to_float(a) : half_to_float(a);
    float y = dtype.code == DTypeCode::kBFloat ? bfloat16_to_float(b) : half_to_float(b);
    return a == b || (std::isnan(x) && std::isnan(y));
  };
  for (const std::string& target : runnable_targets()) {
    for (DType dtype : {kHalf, kBrain}) {
      bool is_half = dtype == kHalf;
      auto widen = is_half ? half_to_float : bfloat16_to_float;
      auto narrow = is_half ? float_to_half : float_to_bfloat16;
      std::vector<float> wide = map_elements<float, uint16_t>(
          target, dtype, kFloat32, {all}, [&](const std::vector<Expr>& x) { return cast_elements(x[0], kFloat32); });
      for (size_t p = 0; p < all.size(); ++p) REQUIRE(same_bits_or_nan(wide[p], widen(all[p])));
      std::vector<uint16_t> narrowed = map_elements<uint16_t, float>(
          target, kFloat32, dtype, {floats}, [&](const std::vector<Expr>& x) { return cast_elements(x[0], dtype); });
      for (size_t p = 0; p < floats.size(); ++p) {
        INFO(target << " " << to_string(dtype) << " " << floats[p]);
        REQUIRE(same(dtype, narrowed[p], narrow(floats[p])));
      }
      std::vector<std::vector<uint16_t>> pairs(2);
      for (size_t p = 0; p < 20000; ++p) {
        pairs[0].push_back(static_cast<uint16_t>(p * 40503));
        pairs[1].push_back(static_cast<uint16_t>(p * 30011 + 77));
      }
      std::vector<uint16_t> sums = map_elements<uint16_t, uint16_t>(
          target, dtype, dtype, pairs, [&](const std::vector<Expr>& x) { return x[0] * x[1] + x[0]; });
      for (size_t p = 0; p < sums.size(); ++p) {
        float a = widen(pairs[0][p]), b = widen(pairs[1][p]);
        INFO(target << " " << to_string(dtype) << ": " << a << " * " << b << " + " << a << " gives " << widen(sums[p]));
        REQUIRE(same(dtype, sums[p], narrow(widen(narrow(a * b)) + a)));
      }
    }
    // A float64 just above a tie must not be rounded to the tie first.
    std::vector<double> doubles{1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11, -(1.0 + 0x1p-11 + 0x1p-40),
                                1.0 + 0x1p-11 - 0x1p-40, 1e300,         std::nan("")};
    std::vector<uint16_t> halves = map_elements<uint16_t, double>(
        target, kFloat64, kHalf, {doubles}, [&](const std::vector<Expr>& x) { return cast_elements(x[0], kHalf); });
    REQUIRE(halves[0] == 0x3c01);
    REQUIRE(halves[1] == 0x3c00);
    REQUIRE(halves[2] == 0xbc01);
    REQUIRE(halves[3] == 0x3c00);
    REQUIRE(halves[4] == 0x7c00);
    REQUIRE(std::isnan(half_to_float(halves[5])));
  }
}

TEST_CASE("bool buffers hold a byte per element", "[codegen]") {
  std::vector<uint8_t> a(35), b(35);
  for (size_t p = 0; p < 35; ++p) a[p] = p % 2, b[p] = p % 3 == 0;
  for (const std::string& target : runnable_targets()) {
    auto run = [&](const std::function<Expr(const std::vector<Expr>&)>& f) {
      return map_elements<uint8_t, uint8_t>(target, kBool, kBool, {a, b}, f);
    };
    std::vector<uint8_t> conjunction = run([](const std::vector<Expr>& x) { return x[0] && x[1]; });
    std::vector<uint8_t> disjunction = run([](const std::vector<Expr>& x) { return x[0] || not_(x[1]); });
    for (size_t p = 0; p < 35; ++p) {
      REQUIRE(conjunction[p] == (a[p] && b[p]));
      REQUIRE(disjunction[p] == (a[p] || !b[p]));
    }
  }
}

TEST_CASE("intrinsics of integers", "[codegen]") {
  std::vector<int32_t> x{0, -1, 5, INT32_MIN, -100};
  auto run = [&](const char* name, DType dtype) {
    return map_elements<int32_t, int32_t>(
        "host", dtype, dtype, {x}, [&](const std::vector<Expr>& v) { return intrinsic(name, {v[0]}, dtype_of(v[0])); });
  };
  REQUIRE(run("tir.abs", kInt32) == std::vector<int32_t>{0, 1, 5, INT32_MIN, 100});
  REQUIRE(run("tir.abs", DType::uint(32)) == x);
  REQUIRE(run("tir.bitwise_not", kInt32) == std::vector<int32_t>{-1, 0, -6, INT32_MAX, 99});
  REQUIRE(run("tir.popcount", DType::uint(32)) == std::vector<int32_t>{0, 32, 2, 1, 28});
}

}  // namespace relaxc::codegen
