#include "tests/codegen/float_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace relaxc::codegen {

namespace {

PrimFuncRef elementwise(const Intrinsic& row) {
  VarRef n = make_dim("n"), i = make_dim("i");
  Expr index = ramp(i * 16, imm(1), 16);
  std::vector<VarRef> buffers;
  std::vector<Expr> args;
  for (int p = 0; p < row.arity; ++p) {
    Buffer buffer = flat_buffer("A" + std::to_string(p), kFloat32, n);
    buffers.push_back(buffer);
    args.push_back(load(buffer, {index}));
  }
  Buffer result = flat_buffer("Y", kFloat32, n);
  buffers.push_back(result);
  Stmt body = store(result, intrinsic(row.name, args, kFloat32.with_lanes(16)), {index});
  return prim_func(buffers, {loop(i, ceil_div(n, 16), body)});
}

uint64_t hash(uint64_t x) {  // splitmix64, S. Vigna
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
float float_of(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

}  // namespace

std::vector<const Intrinsic*> float_functions() {
  std::vector<const Intrinsic*> rows;
  for (const Intrinsic& row : intrinsics()) {
    if (row.eval && row.arity <= 2 && row.result == Intrinsic::Result::kSame) rows.push_back(&row);
  }
  return rows;
}

FloatFunction::FloatFunction(const Intrinsic& row, const std::string& target)
    : arity_(row.arity), kernel_(elementwise(row), target) {}

void FloatFunction::operator()(std::span<const float> a, std::span<const float> b, std::span<float> y) const {
  std::vector<void*> data{const_cast<float*>(a.data())};
  if (arity_ == 2) data.push_back(const_cast<float*>(b.data()));
  data.push_back(y.data());
  kernel_.run(data, {static_cast<int64_t>(y.size())});
}

void Worst::add_inexact(float value, double exact, float argument, float second) {
  if (std::isnan(exact)) {
    wrong += !std::isnan(value);
    return;
  }
  bool is_right = std::signbit(value) == std::signbit(exact) && exact != 0 && !std::isinf(exact);
  wrong += !is_right;
  double limited = std::clamp(exact, -0x1p128, 0x1p128);
  uint32_t exponent = std::bit_cast<uint32_t>(static_cast<float>(limited)) >> 23 & 255;
  uint64_t inverse_ulp = static_cast<uint64_t>(1023 + 150 - std::clamp(exponent, 1u, 254u)) << 52;
  double number = std::clamp(static_cast<double>(value), -0x1p128, 0x1p128);
  double error = std::fabs(number - limited) * std::bit_cast<double>(inverse_ulp);
  if (error > ulps) ulps = error, a = argument, b = second;
}
void Worst::add(const Worst& other) {
  uint64_t sum = wrong + other.wrong;
  if (other.ulps > ulps) *this = other;
  wrong = sum;
}

const std::vector<float>& corner_values() {
  static const std::vector<float> values = [] {
    using Limits = std::numeric_limits<float>;
    std::vector<float> list{0,           Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(), Limits::min(),
                            0x1.8p-127f, Limits::max(),      0x1.fffffep-1f,      0x1.000002p0f};
    for (int n = 1; n <= 40; ++n) list.push_back(static_cast<float>(n) / 2);
    for (int n = 21; n <= 26; ++n) {  // where odd integers end
      for (float offset : {-1.0f, -0.5f, 0.0f, 0.5f, 1.0f}) list.push_back(std::ldexp(1.0f, n) + offset);
    }
    for (size_t p = 0, count = list.size(); p < count; ++p) list.push_back(-list[p]);
    return list;
  }();
  return values;
}

std::pair<float, float> argument_pair(uint64_t p) {
  const std::vector<float>& corners = corner_values();
  if (p < corners.size() * corners.size()) return {corners[p / corners.size()], corners[p % corners.size()]};
  uint64_t random = hash(p);
  auto exponent_for = [&](float x) {  // |y log2 x| < 152
    double log_of_result = 152 * (static_cast<double>(random >> 32) * 0x1p-31 - 1);
    return static_cast<float>(log_of_result / std::log2(std::fabs(static_cast<double>(x))));
  };
  switch (p % 4) {
    case 0: {
      uint64_t exponents = p / 4;
      return {float_of((exponents & 511) << 23 | (random & 0x7fffff)),
              float_of((exponents >> 9 & 511) << 23 | (random >> 32 & 0x7fffff))};
    }
    case 1:
      return {float_of(random), static_cast<float>(static_cast<int>(random >> 32 & 255) - 128) / 2};
    case 2: {
      float x = float_of(random);
      return {x, exponent_for(x)};
    }
    default: {
      float x = 1 + static_cast<float>(static_cast<int>(random & 0xffff) - 0x8000) * 0x1p-24f;
      return {x, exponent_for(x)};
    }
  }
}

}  // namespace relaxc::codegen
