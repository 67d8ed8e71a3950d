// Elementwise operators: unary by a table of functions, whose interval and steepness are found by sampling.
#include <cmath>

#include "frontend/onnx/model_file.h"
#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

bool is_float(const Value& v) { return v.dtype.is_float(); }

// How a function treats rounding: kSmooth amplifies errors by its slope, kStep jumps and needs exact operands, kExact
// gives a multiple of the operand's step again.
enum class Kind : uint8_t { kSmooth, kStep, kExact };

struct Unary {
  const char* name;
  Kind kind;
  std::function<double(double)> f;
  double low = -1e6, high = 1e6;  // the domain
  int since = 13;
};

// The interval of f over the operand's interval, and its error there.
Range image(const std::function<double(double)>& f, Kind kind, const Range& in) {
  constexpr int kSamples = 128;
  Range out = {f(in.low), f(in.low), in.step, 0};
  double slope = 0, last = f(in.low), width = (in.high - in.low) / kSamples;
  for (int i = 1; i <= kSamples && width > 0; ++i) {
    double y = f(in.low + width * i);
    out.low = std::min(out.low, y);
    out.high = std::max(out.high, y);
    slope = std::max(slope, std::abs(y - last) / width);
    last = y;
  }
  G::need(std::isfinite(out.low) && std::isfinite(out.high));
  if (kind == Kind::kStep) out.step = 1;
  if (kind == Kind::kSmooth) {
    double margin = slope * width;
    out.low -= margin, out.high += margin;
    out.error = in.error * (2 * slope + 1) + 1e-6 * (out.magnitude() + 1e-2);
  }
  if (kind == Kind::kExact) out.error = in.error;
  return out;
}

double erf_gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double softplus(double x) { return std::log1p(std::exp(x)); }

std::vector<Unary> unary_functions() {
  constexpr Kind kSmooth = Kind::kSmooth, kStep = Kind::kStep, kExact = Kind::kExact;
  auto plain = [](double (*f)(double)) { return std::function<double(double)>(f); };
  return {
      {"Abs", kExact, plain(std::fabs)},
      {"Neg", kExact, [](double x) { return -x; }},
      {"Relu", kExact, [](double x) { return std::max(x, 0.0); }},
      {"Identity", kExact, [](double x) { return x; }},
      {"Dropout", kExact, [](double x) { return x; }},
      {"Floor", kStep, plain(std::floor)},
      {"Ceil", kStep, plain(std::ceil)},
      {"Round", kStep, plain(std::nearbyint)},
      {"Sign", kStep, [](double x) { return x > 0   ? 1.0
                                            : x < 0 ? -1.0
                                                    : 0.0; }},
      {"Exp", kSmooth, plain(std::exp), -20, 6},
      {"Log", kSmooth, plain(std::log), 0.1, 1e6},
      {"Sqrt", kSmooth, plain(std::sqrt), 0.01, 1e6},
      {"Reciprocal", kSmooth, [](double x) { return 1 / x; }, 0.1, 1e6},
      {"Sigmoid", kSmooth, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", kSmooth, plain(std::tanh)},
      {"Erf", kSmooth, plain(std::erf)},
      {"Sin", kSmooth, plain(std::sin), -60, 60},
      {"Cos", kSmooth, plain(std::cos), -60, 60},
      {"Tan", kSmooth, plain(std::tan), -1.4, 1.4},
      {"Sinh", kSmooth, plain(std::sinh), -6, 6},
      {"Cosh", kSmooth, plain(std::cosh), -6, 6},
      {"Asin", kSmooth, plain(std::asin), -0.99, 0.99},
      {"Acos", kSmooth, plain(std::acos), -0.99, 0.99},
      {"Atan", kSmooth, plain(std::atan)},
      {"Asinh", kSmooth, plain(std::asinh)},
      {"Acosh", kSmooth, plain(std::acosh), 1.1, 1e6},
      {"Atanh", kSmooth, plain(std::atanh), -0.95, 0.95},
      {"Softplus", kSmooth, softplus, -60, 60},
      {"Softsign", kSmooth, [](double x) { return x / (1 + std::fabs(x)); }},
      {"HardSwish", kSmooth, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -1e3, 1e3, 14},
      {"Mish", kSmooth, [](double x) { return x * std::tanh(softplus(x)); }, -60, 60, 18},
      {"Gelu", kSmooth, erf_gelu, -60, 60, 20},
  };
}

void unary(G& g, const Unary& row) {
  Value x = g.value(
      [&](const Value& v) {
        bool integers = v.dtype.is_int() && row.kind == Kind::kExact &&
                        std::string("Abs Neg Identity").find(row.name) != std::string::npos;
        return (is_float(v) || integers) && v.range.low >= row.low && v.range.high <= row.high;
      },
      g.float_dtype(), 0, 4, {std::max(row.low, -2.0), std::min(row.high, row.low > 0 ? row.low + 2 : 2.0)});
  G::need(row.kind != Kind::kStep || x.range.exact());
  g.emit(row.name, {x.name}, {}, x.dtype, x.shape, image(row.f, row.kind, x.range));
}

// Activations with attributes; each attribute is drawn or left out.
void activation(G& g, const char* name) {
  std::string op = name;
  Value x = g.value([](const Value& v) { return is_float(v) && v.range.magnitude() < 50; }, g.float_dtype(), 0, 4);
  Attrs attrs;
  auto drawn = [&](const char* attr, double otherwise, double low, double high) {
    if (g.chance(0.4)) return otherwise;
    double value = low + static_cast<double>(g.draw(0, 8)) * (high - low) / 8;
    attrs.push_back(attribute(attr, value));
    return value;
  };
  std::function<double(double)> f;
  Kind kind = Kind::kSmooth;
  if (op == "LeakyRelu") {
    f = [a = drawn("alpha", 0.01, -0.5, 1.5)](double v) { return v < 0 ? a * v : v; };
  } else if (op == "Elu") {
    f = [a = drawn("alpha", 1, 0.5, 2)](double v) { return v < 0 ? a * std::expm1(v) : v; };
  } else if (op == "Celu") {
    f = [a = drawn("alpha", 1, 0.5, 2)](double v) { return v < 0 ? a * std::expm1(v / a) : v; };
  } else if (op == "Selu") {
    double a = drawn("alpha", 1.67326319, 0.5, 2), c = drawn("gamma", 1.05070102, 0.5, 2);
    f = [a, c](double v) { return c * (v <= 0 ? a * std::expm1(v) : v); };
  } else if (op == "HardSigmoid") {
    double a = drawn("alpha", 0.2, 0.1, 1), b = drawn("beta", 0.5, 0, 1);
    f = [a, b](double v) { return std::clamp(a * v + b, 0.0, 1.0); };
  } else if (op == "ThresholdedRelu") {
    kind = Kind::kExact;
    f = [a = drawn("alpha", 1, 0, 2)](double v) { return v > a ? v : 0; };
    G::need(x.range.exact());
  } else {
    kind = Kind::kExact;
    double bias = drawn("bias", 0, 0, 1), lambd = drawn("lambd", 0.5, 0, 1);  // multiples of an eighth
    f = [bias, lambd](double v) { return v < -lambd ? v + bias : v > lambd ? v - bias : 0; };
    G::need(x.range.exact() && x.dtype == kFloat32);
  }
  Range range = image(f, kind, x.range);
  if (kind == Kind::kExact) range = {range.low - 1, range.high + 1, std::min(range.step, 0.125), range.error};
  g.emit(op, {x.name}, attrs, x.dtype, x.shape, range);
}

Range arithmetic(const std::string& op, const Range& a, const Range& b) {
  double corners[4];
  auto fill = [&](auto f) {
    corners[0] = f(a.low, b.low), corners[1] = f(a.low, b.high);
    corners[2] = f(a.high, b.low), corners[3] = f(a.high, b.high);
  };
  Range out;
  if (op == "Add" || op == "Sum" || op == "Mean") {
    fill(std::plus<>());
    out = {0, 0, std::min(a.step, b.step), a.error + b.error};
  } else if (op == "Sub") {
    fill(std::minus<>());
    out = {0, 0, std::min(a.step, b.step), a.error + b.error};
  } else if (op == "Mul") {
    fill(std::multiplies<>());
    out = {0, 0, a.step * b.step, a.error * b.magnitude() + b.error * a.magnitude()};
  } else if (op == "Div") {
    fill(std::divides<>());
    double least = std::min(std::abs(b.low), std::abs(b.high));
    out = {0, 0, 1, a.error / least + b.error * a.magnitude() / least / least + 1e-6 * a.magnitude() / least};
  } else {
    auto f = [&](double x, double y) { return op == "Min" ? std::min(x, y) : std::max(x, y); };
    fill(f);
    out = joined(a, b);
  }
  out.low = *std::min_element(corners, corners + 4);
  out.high = *std::max_element(corners, corners + 4);
  return out;
}

bool numeric(const Value& v) { return !v.dtype.is_bool(); }

void binary(G& g, const char* name) {
  std::string op = name;
  Value a = g.value(numeric, g.chance(0.8) ? g.float_dtype() : g.one_of<DType>({kInt64, kInt32}), 0, 4);
  Range range = op == "Div" ? Range{0.25, 4, 0.125, 0} : Range{-1e6, 1e6};
  if (a.dtype.is_integral() && op == "Div") range = {1, 9, 1, 0};
  Value b = g.partner(a, range);
  if (op != "Div" && g.chance(0.5)) std::swap(a, b);
  Range result = arithmetic(op, a.range, b.range);
  g.emit(op, {a.name, b.name}, {}, a.dtype, broadcast(a.shape, b.shape), result);
}

void variadic(G& g, const char* name) {
  std::string op = name;
  Value first = g.value(op == "Sum" || op == "Mean" ? is_float : numeric, g.float_dtype(), 0, 4);
  std::vector<std::string> inputs = {first.name};
  Shape shape = first.shape;
  Range range = first.range;
  int64_t count = g.draw(1, 4);
  for (int64_t i = 1; i < count; ++i) {
    Value next = g.partner(first, {-1e6, 1e6});
    inputs.push_back(next.name);
    shape = broadcast(shape, next.shape);
    range = arithmetic(op, range, next.range);
  }
  if (op == "Mean") {
    auto n = static_cast<double>(count);
    range = {range.low / n, range.high / n, 1, range.error + 1e-6 * range.magnitude() + 1e-9};
  }
  g.emit(op, inputs, {}, first.dtype, shape, range);
}

void power(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return is_float(v) && v.range.low > 0.05 && v.range.high < 20; }, kFloat32, 0,
                    4, kPositive);
  Value y = g.partner(x, {-3, 3});
  double most = 0, slope = 0;
  for (double base : {x.range.low, x.range.high, 1.0}) {
    for (double exponent : {y.range.low, y.range.high}) {
      most = std::max(most, std::pow(base, exponent));
      slope = std::max(slope, std::pow(base, exponent) * (std::abs(exponent / base) + std::abs(std::log(base))));
    }
  }
  Range range = {0, most, 1, 2 * slope * (x.range.error + y.range.error) + 2e-6 * most};
  g.emit(name, {x.name, y.name}, {}, x.dtype, broadcast(x.shape, y.shape), range);
}

// The square and the cube of anything.
void small_power(G& g, const char*) {
  Value x = g.value([](const Value& v) { return is_float(v) && v.range.magnitude() < 20; }, g.float_dtype(), 0, 4);
  int64_t exponent = g.draw(2, 3);
  double most = std::pow(x.range.magnitude(), static_cast<double>(exponent));
  Range range = {exponent == 2 ? 0 : -most, most, 1,
                 x.range.error * 3 * (1 + x.range.magnitude() * x.range.magnitude()) + 1e-6 * (most + 0.01)};
  g.emit("Pow", {x.name, g.scalar(g.chance(0.5) ? x.dtype : kInt64, static_cast<double>(exponent))}, {}, x.dtype,
         x.shape, range);
}

void prelu(G& g, const char* name) {
  Value x = g.float_value(1, 4);
  Shape slope(x.shape.end() - g.draw(0, static_cast<int64_t>(x.shape.size())), x.shape.end());
  for (Dim& dim : slope) {
    if (g.chance(0.3) || !dim.is_static) dim = 1;
  }
  Value s = g.tensor(x.dtype, slope);
  Range product = arithmetic("Mul", x.range, s.range);
  g.emit(name, {x.name, s.name}, {}, x.dtype, x.shape, joined(joined(product, x.range), {0, 0, 1, 0}));
}

void modulo(G& g, const char* name) {
  bool floats = g.chance(0.5);
  Value a = g.value([&](const Value& v) { return v.range.exact() && (floats ? is_float(v) : v.dtype.is_int()); },
                    floats ? kFloat32 : kInt64, 0, 4, floats ? Range{} : kIntegers);
  Value b = g.partner(a, floats ? Range{0.5, 4, 0.125, 0} : Range{1, 7, 1, 0});
  G::need(b.range.exact());
  double most = b.range.high;
  Attrs attrs;
  if (floats || g.chance(0.3)) attrs.push_back(attribute("fmod", 1));
  g.emit(name, {a.name, b.name}, attrs, a.dtype, broadcast(a.shape, b.shape),
         {-most, most, std::min(a.range.step, b.range.step), 0});
}

void comparison(G& g, const char* name) {
  Value a = g.value([](const Value& v) { return numeric(v) && v.range.exact() && v.dtype.bits >= 32; },
                    g.one_of<DType>({kFloat32, kFloat32, kInt64, kInt32, kFloat64}), 0, 4);
  Value b = g.partner(a, {-1e6, 1e6});
  G::need(b.range.exact());
  g.emit(name, {a.name, b.name}, {}, kBool, broadcast(a.shape, b.shape), kFlags);
}

void logical(G& g, const char* name) {
  Value a = g.value([](const Value& v) { return v.dtype.is_bool(); }, kBool, 0, 4);
  if (std::string(name) == "Not") {
    g.emit(name, {a.name}, {}, kBool, a.shape, kFlags);
    return;
  }
  Value b = g.partner(a, kFlags);
  g.emit(name, {a.name, b.name}, {}, kBool, broadcast(a.shape, b.shape), kFlags);
}

void bitwise(G& g, const char* name) {
  Value a = g.value([](const Value& v) { return v.dtype.is_integral(); },
                    g.one_of<DType>({kInt64, kInt32, DType::uint(8), DType::int_(8)}), 0, 4, kIntegers);
  Range wide = a.dtype.is_uint() ? Range{0, 255, 1, 0} : Range{-128, 127, 1, 0};
  G::need(a.range.magnitude() <= 127);
  if (std::string(name) == "BitwiseNot") {
    g.emit(name, {a.name}, {}, a.dtype, a.shape, wide);
    return;
  }
  Value b = g.partner(a, {wide.low, 127, 1, 0});
  g.emit(name, {a.name, b.name}, {}, a.dtype, broadcast(a.shape, b.shape), wide);
}

void bit_shift(G& g, const char* name) {
  DType dtype = g.one_of<DType>({DType::uint(8), DType::uint(32), DType::uint(64)});
  Value a = g.value([&](const Value& v) { return v.dtype.is_uint() && v.range.high < 16; }, dtype, 0, 3, {0, 15, 1, 0});
  Value b = g.tensor(a.dtype, g.chance(0.5) ? Shape{} : Shape{1}, {0, 3, 1, 0});
  bool left = g.chance(0.5);
  g.emit(name, {a.name, b.name}, {attribute("direction", left ? "LEFT" : "RIGHT")}, a.dtype,
         broadcast(a.shape, b.shape), {0, left ? a.range.high * 8 : a.range.high, 1, 0});
}

void where(G& g, const char* name) {
  Value a = g.any_value(0, 4);
  Value b = g.partner(a, {-1e6, 1e6});
  Shape shape = broadcast(a.shape, b.shape);
  Value wanted = {"", kBool, shape, kFlags};
  Value condition = g.partner(wanted, kFlags);
  g.emit(name, {condition.name, a.name, b.name}, {}, a.dtype, broadcast(shape, condition.shape),
         joined(a.range, b.range));
}

void clip(G& g, const char* name) {
  Value x = g.value(numeric, g.float_dtype(), 0, 4);
  G::need(x.dtype.bits >= 32 || is_float(x));
  double low = static_cast<double>(g.draw(-3, 0)), high = static_cast<double>(g.draw(0, 3));
  G::need(!x.dtype.is_uint() || low >= 0);
  std::vector<std::string> inputs = {x.name};
  bool has_low = g.chance(0.7), has_high = g.chance(0.7);
  if (has_low || has_high) inputs.push_back(has_low ? g.scalar(x.dtype, low) : "");
  if (has_high) inputs.push_back(g.scalar(x.dtype, high));
  Range range = x.range;
  if (has_low) range.low = std::max(range.low, low), range.high = std::max(range.high, low);
  if (has_high) range.high = std::min(range.high, high), range.low = std::min(range.low, high);
  g.emit(name, inputs, {}, x.dtype, x.shape, range);
}

void cast(G& g, const char* name) {
  Value x = g.any_value(0, 4);
  DType to = g.any_dtype();
  bool narrows = is_float(x) && !to.is_float();
  G::need(x.range.exact() || !narrows);
  G::need(!(to.is_uint() && x.range.low < 0) && !(to.bits == 8 && x.range.magnitude() > 127));
  Range range = x.range;
  if (narrows) range.step = 1, range.low = std::ceil(range.low) - 1, range.high = std::floor(range.high) + 1;
  if (to.is_uint()) range.low = std::max(range.low, 0.0);
  g.emit(name, {x.name}, {attribute("to", int64_t{onnx_import::element_type_of_dtype(to)})}, to, x.shape, range);
}

void classify(G& g, const char* name) {
  Value x = g.value(is_float, kFloat32, 0, 4);
  Attrs attrs;
  if (std::string(name) == "IsInf" && g.chance(0.5)) attrs.push_back(attribute("detect_negative", 0));
  g.emit(name, {x.name}, attrs, kBool, x.shape, kFlags);
}

void quantize(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype == kFloat32 && v.range.exact() && v.range.step >= 1.0 / 1024; },
                    kFloat32, 1, 4);
  DType to = g.chance(0.5) ? DType::int_(8) : DType::uint(8);
  std::vector<std::string> inputs = {x.name, g.scalar(kFloat32, 0.25), g.scalar(to, 3)};
  Range whole = to.is_int() ? Range{-128, 127, 1, 0} : Range{0, 255, 1, 0};
  Value q = g.emit(name, inputs, {}, to, x.shape, whole);
  if (g.chance(0.5)) return;
  g.emit("DequantizeLinear", {q.name, inputs[1], inputs[2]}, {}, kFloat32, x.shape, {-64, 64, 0.25, 0});
}

}  // namespace

std::vector<Operator> elementwise_operators() {
  std::vector<Operator> rows;
  for (Unary& row : unary_functions()) {
    const char* name = row.name;
    int since = row.since;
    rows.push_back({name, since, [row = std::move(row)](G& g, const char*) { unary(g, row); }});
  }
  for (const char* name : {"LeakyRelu", "Elu", "Celu", "Selu", "HardSigmoid", "ThresholdedRelu", "Shrink"})
    rows.push_back({name, 13, activation});
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Add", "Mul"}) rows.push_back({name, 13, binary});
  for (const char* name : {"Sum", "Mean", "Min", "Max"}) rows.push_back({name, 13, variadic});
  for (const char* name : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    rows.push_back({name, 13, comparison});
  for (const char* name : {"And", "Or", "Xor", "Not"}) rows.push_back({name, 13, logical});
  for (const char* name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}) rows.push_back({name, 18, bitwise});
  for (const char* name : {"IsNaN", "IsInf"}) rows.push_back({name, 13, classify});
  rows.insert(rows.end(), {{"Pow", 13, power},
                           {"Pow", 13, small_power},
                           {"PRelu", 16, prelu},
                           {"Mod", 13, modulo},
                           {"BitShift", 13, bit_shift},
                           {"Where", 16, where},
                           {"Clip", 13, clip},
                           {"Cast", 13, cast},
                           {"QuantizeLinear", 13, quantize}});
  return rows;
}

}  // namespace relaxc::test::onnx_graphs
