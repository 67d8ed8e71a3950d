// Convolutions and products of quantized tensors. ONNX has three forms of them, and each becomes integer arithmetic
// with a float scale: QLinearConv, QLinearMatMul; ConvInteger, MatMulInteger; and float operators between
// DequantizeLinear and QuantizeLinear. Sums are int32 and exact; scales, biases and the rounding to even are those of
// relaxc's kernels, so the first two forms give the same integers. In the third relaxc computes in float32, and a value
// that is halfway between two integers but for rounding may become the other one.
#include <algorithm>
#include <cmath>

#include "exact_sums.h"
#include "onednn.h"

namespace onednn {

namespace {

// x - zero and w - w_zero in int32.
constexpr const char* kIntegers = R"(
    x32 = R.astype(x, dtype="int32")
    xi = R.subtract(x32, zero) | x32
    w32 = R.astype(w, dtype="int32")
    wi = R.subtract(w32, w_zero) | w32
)";
constexpr const char* kReals = R"(
    xf = R.multiply(R.astype(xi, dtype="float32"), x_scale)
    wf = R.multiply(R.astype(wi, dtype="float32"), w_scale)
)";
// Rounds q, adds the zero point, and saturates.
constexpr const char* kQuantized = R"(
    rounded = R.round(R.divide(q, out_scale))
    clipped = R.astype(R.clip(R.add(rounded, out_zero) | rounded, lowest, highest), dtype="int32")
    quantized = R.astype(clipped, dtype="int8") | R.astype(clipped, dtype="uint8")
)";

std::string pattern(const std::string& name, const std::string& body) {
  return "@S.pattern\ndef " + name +
         "(x, q, zero, w: S.constant, w_zero: S.constant, x_scale: S.constant, w_scale: S.constant, "
         "int_bias: S.constant, scale: S.constant, bias: S.constant, added, low, high, out_scale: S.constant, "
         "out_zero: S.constant, lowest, highest):" +
         body;
}

std::string patterns_of(const std::string& op, const std::string& integers, const std::string& reals) {
  auto between_reals = [&](const std::string& name, const std::string& sum) {
    return pattern(name + op, kIntegers + (kReals + ("    c = " + reals + "\n    y = R.add(c, bias) | c\n")) + sum +
                                  "    relu = R.nn.relu(z)\n    q = relu | R.clip(z, low, high) | z\n" + kQuantized +
                                  "    return quantized | q\n");
  };
  return pattern("q_" + op, kIntegers + ("    c = " + integers + "\n    s = R.add(c, int_bias) | c\n") +
                                "    q = R.multiply(R.astype(s, dtype=\"float32\"), scale)" + kQuantized +
                                "    return quantized\n") +
         between_reals("qdq_sum_", "    z = R.add(y, added)\n") + between_reals("qdq_", "    z = y\n") +
         pattern("i_" + op, kIntegers + ("    return " + integers + "\n"));
}

// The members of a match by their names in the pattern.
class Int8Match {
 public:
  explicit Int8Match(const PatternMatch& match) : match_(match), kind_(has("q") ? Kind::kQuantize : Kind::kDequantize) {
    for (const Binding& binding : match.inside) {
      const std::string& op = op_name(binding.value);
      if (op == "relax.nn.conv2d") kind_ = Kind::kConv;
      if (op == "relax.matmul") kind_ = Kind::kMatmul;
      if (op == "relax.permute_dims") is_transposed_ = true;
    }
  }

  std::optional<std::string> why_not() const {
    if (has("w")) {
      if (auto why = why_not_product()) return why;
    } else if (!at(input()).is<Var>() || known_shape(at(input()).type())->empty()) {
      return "the operand is constant, or has no axes";
    } else if (kind_ == Kind::kDequantize ? !is_narrow(type_of(at("x"))) : type_of(at("q")) != Type::kF32) {
      return "the operand has another dtype";
    }
    std::optional<Type> out = type_of(match_.results[0]);
    if (!out) return "the result has another dtype";
    for (const char* name : {"x_scale", "out_scale", "out_zero", "low", "high", "lowest", "highest"}) {
      if (has(name) && !scalar(name)) return std::string(name) + " is not a constant scalar";
    }
    if (has("out_scale") && !(*scalar("out_scale") > 0)) return "out_scale is not positive";
    if (has("zero") && !(at("zero").is<Var>() ? has("w") && is_one_int32(at("zero")) : scalar("zero").has_value()))
      return "the operand's zero point is not one int32";
    double lowest = out == Type::kS8 ? -128 : 0, highest = lowest + 255;
    if (has("lowest") && (scalar("lowest") != lowest || scalar("highest") != highest))
      return "it saturates at other numbers than those of its dtype";
    return std::nullopt;
  }

  Step step(Data& data, const std::function<int64_t(const Expr&)>& number_of) const {
    Step step{.kind = kind_, .type = *type_of(match_.results[0]), .a = number_of(at(input()))};
    if (kind_ == Kind::kConv) set_window(match_.attrs, step);
    if (has("w")) {
      std::vector<int64_t> dims = weight().data.shape();
      if (is_transposed_) std::swap(dims[0], dims[1]);
      set_weight_dims(match_.attrs, kind_, dims, step);
      step.weight = data.add(*integer_weights());
    }
    if (has("added")) step.added = number_of(at("added"));
    if (has("zero") && at("zero").is<Var>()) step.zero_value = number_of(at("zero"));
    if (has("zero") && !at("zero").is<Var>()) step.zero = static_cast<int32_t>(*scalar("zero"));
    if (has("int_bias")) {
      const Tensor& bias = at("int_bias").as<Constant>()->data;
      std::vector<int32_t> all(static_cast<size_t>(num_channels()));
      for (size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<int32_t>(bias.as_int(bias.size() == 1 ? 0 : static_cast<int64_t>(i)));
      step.int_bias = data.add(all);
    }
    std::vector<float> scales = this->scales();
    step.num_scales = std::ssize(scales);
    if (!scales.empty()) step.scales = data.add(scales);
    if (has("bias")) {
      std::vector<float> bias = *per_channel("bias");
      bias.resize(static_cast<size_t>(num_channels()), bias[0]);
      step.bias = data.add(bias);
    }
    if (has("relu")) step.activation = Activation::kRelu;
    if (has("low")) {
      step.activation = Activation::kClip;
      step.low = static_cast<float>(*scalar("low")), step.high = static_cast<float>(*scalar("high"));
    }
    if (has("out_scale")) step.out_scale = static_cast<float>(*scalar("out_scale"));
    if (has("out_zero")) step.out_zero = static_cast<int32_t>(*scalar("out_zero"));
    return step;
  }

 private:
  std::optional<std::string> why_not_product() const {
    const Expr& x = at("x");
    if (!is_narrow(type_of(x))) return "the operand does not have 8 bits";
    if (!x.is<Var>()) return "the operand is constant";
    if (!has_exact_sums()) return "this processor has no VNNI, where oneDNN's 16-bit sums of int8 products saturate";
    size_t rank = known_shape(x.type())->size(), weight_rank = weight().data.shape().size();
    bool fits = kind_ == Kind::kConv ? rank == 4 && weight_rank == 4 : (rank == 2 || rank == 3) && weight_rank == 2;
    if (!fits || weight().data.size() == 0)
      return "the operands' ranks are not those of a 2-d convolution or of a product with a matrix";
    if (auto why = kind_ == Kind::kConv ? unknown_layout(match_.attrs) : std::nullopt) return why;
    if (is_transposed_ && !swaps_axes()) return "permute_dims does not swap the axes";
    if (!integer_weights()) return "weights minus their zero points do not fit in 8 bits";
    if (has("w_scale") && !along(at("w_scale"), weight_rank, weight_axis())) return "w_scale is not one per channel";
    for (const char* name : {"scale", "bias", "int_bias"}) {
      if (has(name) && !per_channel(name)) return std::string(name) + " is not one per channel";
    }
    if (has("added") &&
        !(at("added").is<Var>() && type_of(at("added")) == Type::kF32 && same_shape(at("added"), match_.results[0])))
      return "what is added does not have the result's shape in float32";
    return std::nullopt;
  }

  static bool is_narrow(std::optional<Type> type) { return type == Type::kS8 || type == Type::kU8; }
  const char* input() const { return kind_ == Kind::kQuantize ? "q" : "x"; }
  bool has(const char* name) const { return match_.values.contains(name); }
  const Expr& at(const char* name) const { return match_.values.find(name)->second; }
  const Constant& weight() const { return *at("w").as<Constant>(); }
  size_t weight_axis() const { return kind_ == Kind::kConv || is_transposed_ ? 0 : 1; }
  int64_t num_channels() const { return weight().data.shape()[weight_axis()]; }

  bool swaps_axes() const {
    const AttrValue* axes = match_.attrs.find("axes");
    std::vector<int64_t> order;
    return !axes || !from_attr(*axes, order) || order == std::vector<int64_t>{1, 0};
  }
  static bool is_one_int32(const Expr& value) {
    const std::vector<Expr>* shape = known_shape(value.type());
    return type_of(value) == Type::kS32 && shape && shape->size() <= 1 &&
           std::ranges::all_of(*shape, [](const Expr& dim) { return is_int(dim, 1); });
  }

  std::optional<double> scalar(const char* name) const {
    const Expr& value = at(name);
    if (const FloatImm* number = value.as<FloatImm>()) return number->value;
    const Constant* constant = value.as<Constant>();
    return constant && constant->data.size() == 1 ? std::optional(constant->data.as_double(0)) : std::nullopt;
  }
  std::optional<std::vector<float>> per_channel(const char* name) const {
    size_t rank = known_shape(match_.results[0].type())->size();
    std::optional<std::vector<float>> result = along(at(name), rank, kind_ == Kind::kConv ? 1 : rank - 1);
    return result && (result->size() == 1 || std::ssize(*result) == num_channels()) ? result : std::nullopt;
  }

  // Returns the weights minus their zero points, in the order [in, out] for a product.
  std::optional<std::vector<int8_t>> integer_weights() const {
    const Tensor& w = weight().data;
    std::vector<int64_t> dims = w.shape();
    std::vector<float> zeros = {0};
    if (has("w_zero")) {
      auto found = along(at("w_zero"), dims.size(), weight_axis());
      if (!found) return std::nullopt;
      zeros = *found;
    }
    std::vector<int8_t> result(static_cast<size_t>(w.size()));
    int64_t inner = 1;  // elements from one channel to the next
    for (size_t d = weight_axis() + 1; d < dims.size(); ++d) inner *= dims[d];
    for (int64_t i = 0; i < w.size(); ++i) {
      size_t channel = static_cast<size_t>(i / inner % dims[weight_axis()]);
      int64_t value = w.as_int(i) - static_cast<int64_t>(zeros[zeros.size() == 1 ? 0 : channel]);
      if (value < -128 || value > 127) return std::nullopt;
      int64_t to = is_transposed_ ? i % dims[1] * dims[0] + i / dims[1] : i;
      result[static_cast<size_t>(to)] = static_cast<int8_t>(value);
    }
    return result;
  }

  std::vector<float> scales() const {
    if (has("scale")) return *per_channel("scale");
    if (!has("x_scale")) return {};
    if (!has("w")) return {static_cast<float>(*scalar("x_scale"))};
    std::vector<float> result = *along(at("w_scale"), weight().data.shape().size(), weight_axis());
    for (float& scale : result) scale *= static_cast<float>(*scalar("x_scale"));
    return result;
  }

  const PatternMatch& match_;
  Kind kind_;
  bool is_transposed_ = false;
};

}  // namespace

std::vector<ExternalPattern> int8_patterns() {
  std::string conversions =
      pattern("quantize", kQuantized + std::string("    return quantized\n")) +
      pattern("dequantize",
              kIntegers + std::string("    return R.multiply(R.astype(xi, dtype=\"float32\"), x_scale)\n"));
  std::vector<ExternalPattern> result;
  for (const std::string& text :
       {patterns_of("conv", "R.nn.conv2d(xi, wi)", "R.nn.conv2d(xf, wf)"),
        patterns_of("matmul", "R.matmul(xi, wi)", "R.matmul(xf, wf | R.permute_dims(wf))"), conversions})
    result.push_back({text, [](const PatternMatch& match) { return Int8Match(match).why_not(); }});
  return result;
}

bool is_int8_pattern(const std::string& name) {
  return name.ends_with("_conv") || name.ends_with("_matmul") || name.ends_with("quantize");
}

Step int8_step(const PatternMatch& match, Data& data, const std::function<int64_t(const Expr&)>& number_of) {
  return Int8Match(match).step(data, number_of);
}

}  // namespace onednn
