// Functions of floats against double references: the stated bounds of emit_math.h, special values, and that every
// intrinsic of the table is there for each float type.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/intrinsics.h"
#include "tests/codegen/kernel_harness.h"

#include "tests/catch.h"

namespace relaxc::codegen {

namespace {

std::vector<float> run_float32(const std::string& target, const std::string& name, const std::vector<float>& x) {
  int64_t n = static_cast<int64_t>(x.size()) / 16;
  VarRef i = make_dim("i");
  Buffer a = flat_buffer("A", kFloat32, n * 16), b = flat_buffer("B", kFloat32, n * 16);
  Expr index = ramp(i * 16, imm(1), 16);
  Stmt body = loop(i, imm(n), store(b, intrinsic(name, {load(a, {index})}, kFloat32.with_lanes(16)), {index}),
                   ForKind::kParallel);
  std::vector<float> input = x, result(x.size());
  REQUIRE(CompiledKernel(prim_func({a, b}, {body}), target).run({input.data(), result.data()}, {}, 2).status == 0);
  return result;
}

// Distance in units in the last place of the float nearest to the reference, subnormals included.
double ulp_error(float value, double reference) {
  float nearest = static_cast<float>(reference);
  if (std::isnan(reference)) return std::isnan(value) ? 0 : 1e9;
  if (std::isinf(nearest) || std::isinf(value)) {
    if (value == nearest) return 0;
    // The largest float may stand for a value that rounds to infinity and back.
    return std::fabs(reference) < 0x1.000002p128 && std::fabs(value) >= 0x1.fffffep127f ? 1 : 1e9;
  }
  int exponent = std::max(std::ilogb(std::fabs(nearest) > 0 ? nearest : 0x1p-149f), -126);
  return std::fabs(static_cast<double>(value) - reference) / std::ldexp(1.0, exponent - 23);
}

struct Bound {
  const char* name;
  double ulps;
  double (*reference)(double);
};
const Bound kBounds[] = {
    {"tir.exp", 1.1, [](double x) { return std::exp(x); }},
    {"tir.log", 1.0, [](double x) { return std::log(x); }},
    {"tir.tanh", 1.5, [](double x) { return std::tanh(x); }},
    {"tir.sigmoid", 2.5, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
    {"tir.erf", 1.5, [](double x) { return std::erf(x); }},
};

}  // namespace

TEST_CASE("float32 functions keep their bounds", "[codegen]") {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int p = -200000; p < 200000; ++p) x.push_back(static_cast<float>(p) * 5.5e-4f);
  for (float v : {88.72283f, 88.722839f, 88.73f, -103.97f, -103.98f, -87.33655f, -88.0f, 1.0f, 0x1p-126f, 0x1p-149f,
                  0.625f, 0.921875f}) {
    for (float w : {v, std::nextafter(v, 1e9f), std::nextafter(v, -1e9f)}) x.insert(x.end(), {w, -w});
  }
  while (x.size() % 16) x.push_back(0);
  for (const std::string& target : {std::string("host"), std::string("x86-64")}) {
    for (const Bound& bound : kBounds) {
      std::vector<float> y = run_float32(target, bound.name, x);
      double worst = 0;
      float worst_at = 0;
      for (size_t p = 0; p < x.size(); ++p) {
        double error = ulp_error(y[p], bound.reference(static_cast<double>(x[p])));
        if (error > worst) worst = error, worst_at = x[p];
      }
      INFO(target << " " << bound.name << ": " << worst << " ulp at " << worst_at);
      CHECK(worst <= bound.ulps);
    }
  }
}

TEST_CASE("special values of float32 functions", "[codegen]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x{0.0f, -0.0f, inf, -inf, nan, 1e-40f, -1e-40f, -1.0f, 1.0f, 100, -200, 3e38f, -3e38f, 1, 1, 1};
  auto expect = [&](const char* name, std::vector<float> expected) {
    std::vector<float> y = run_float32("host", name, x);
    for (size_t p = 0; p < expected.size(); ++p) {
      INFO(name << " of " << x[p] << " is " << y[p]);
      CHECK((std::isnan(expected[p]) ? std::isnan(y[p])
                                     : y[p] == expected[p] && std::signbit(y[p]) == std::signbit(expected[p])));
    }
  };
  expect("tir.exp", {1, 1, inf, 0, nan, 1, 1});
  expect("tir.log", {-inf, -inf, inf, nan, nan, std::log(1e-40f), nan, nan, 0});
  expect("tir.tanh", {0.0f, -0.0f, 1, -1, nan, 1e-40f, -1e-40f});
  expect("tir.sigmoid", {0.5, 0.5, 1, 0, nan, 0.5, 0.5});
  expect("tir.erf", {0.0f, -0.0f, 1, -1, nan});
}

TEST_CASE("every intrinsic, on every float type, scalar and vector", "[codegen]") {
  struct Type {
    DType dtype;
    double tolerance;
  };
  for (const Type& type :
       {Type{kFloat32, 1e-6}, Type{kFloat64, 1e-14}, Type{DType::float_(16), 1e-3}, Type{DType::bfloat16(), 8e-3}}) {
    for (const std::string& target : {std::string("host"), std::string("x86-64")}) {
      for (const Intrinsic& row : intrinsics()) {
        if (!row.eval) continue;
        INFO(target << " " << row.name << " " << to_string(type.dtype));
        constexpr int64_t kSize = 20;  // a vector of 16 and 4 scalars
        Buffer a = flat_buffer("A", kFloat64, kSize), b = flat_buffer("B", kFloat64, kSize);
        VarRef i = make_dim("i");
        auto body = [&](const Expr& index) {
          int lanes = dtype_of(index).lanes;
          Expr x = cast_to(load(a, {index}), type.dtype.with_lanes(lanes));
          std::vector<Expr> args(static_cast<size_t>(row.arity), x);
          for (size_t p = 1; p < args.size(); ++p)
            args[p] = scalar_imm(0.75 * static_cast<double>(p), type.dtype.with_lanes(lanes));
          bool is_bool = row.result == Intrinsic::Result::kBool;
          Expr y = intrinsic(row.name, args, (is_bool ? kBool : type.dtype).with_lanes(lanes));
          return store(b, cast_to(y, kFloat64.with_lanes(lanes)), {index});
        };
        CompiledKernel kernel(prim_func({a, b}, {body(ramp(imm(0), imm(1), 16)), loop(i, imm(4), body(i + 16))}),
                              target);
        std::vector<double> x(kSize), y(kSize);
        for (size_t p = 0; p < kSize; ++p) x[p] = static_cast<double>(p) * 0.25 - 2.0;  // exact in each type
        REQUIRE(kernel.run({x.data(), y.data()}).status == 0);
        for (size_t p = 0; p < kSize; ++p) {
          double expected = row.eval(x[p], 0.75, 1.5);
          INFO(x[p] << ": " << y[p] << ", expected " << expected);
          if (std::isnan(expected)) {
            REQUIRE(std::isnan(y[p]));
          } else if (std::isinf(expected)) {
            REQUIRE(y[p] == expected);
          } else {
            REQUIRE(std::fabs(y[p] - expected) <= type.tolerance * std::max(1.0, std::fabs(expected)));
          }
        }
      }
    }
  }
}

}  // namespace relaxc::codegen
