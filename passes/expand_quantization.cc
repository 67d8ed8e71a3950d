// Expects: operators on leaves. Guarantees: quantize and dequantize with one scale for all, or one along an axis, are
// written as the arithmetic that they stand for. Patterns of backends and accelerators (docs/plugins.md) find one form
// of it, whether ONNX's QuantizeLinear, QLinearConv or MatMulInteger stood there:
//   dequantize   multiply(astype(subtract(astype(x, int32), zero), float32), scale)
//   quantize     astype(astype(clip(add(round(divide(x, scale)), zero), least, most), int32), int8)
// A zero point of 0 is left out. It is placed where narrow weights are kept (Tables::keep_narrow_weights).
#include <cmath>

#include "ir/constants.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "passes/compose.h"

namespace relaxc {

namespace {

class QuantizationExpander final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 protected:
  std::optional<Expr> visit(const Binding& binding, Builder& b) override {
    if (binding.cast || !known_shape(binding.value.type())) return std::nullopt;
    if (const Call* call = as_call(binding.value, ops::kDequantize)) return dequantized(*call, b);
    if (const Call* call = as_call(binding.value, ops::kQuantize)) return quantized(*call, b);
    return std::nullopt;
  }

 private:
  static Expr cast(const Expr& x, DType dtype, Builder& b) {
    return tensor_dtype(x.type()) == dtype ? x : b.op("astype", {x}, DTypeAttrs{dtype});
  }
  // Returns a scale or zero point in a shape that broadcasts to the data.
  static Expr aligned(const Expr& parameter, const Expr& data, int64_t axis, Builder& b) {
    if (is_one_element(parameter.type())) return reshape(parameter, {}, b);
    const size_t rank = known_shape(data.type())->size();
    std::vector<Expr> dims(rank, int_imm(1));
    dims[axis < 0 ? rank + static_cast<size_t>(axis) : static_cast<size_t>(axis)] =
        known_shape(parameter.type())->at(0);
    return reshape(parameter, dims, b);
  }
  static std::optional<Expr> dequantized(const Call& call, Builder& b) {
    const auto attrs = read_attrs<DequantizeAttrs>(call.attrs);
    const DType dtype = tensor_dtype(call.args[0].type()).value_or(kFloat32);
    const bool are_integers = dtype.is_integral() && tensor_dtype(call.args[2].type()).value_or(dtype).is_integral();
    if (attrs.block_size > 0 || attrs.out_dtype != kFloat32 || !are_integers || dtype.bits > 16) return std::nullopt;
    Expr x = cast(call.args[0], kInt32, b);
    if (constant_element(call.args[2]) != 0.0)
      x = b.op("subtract", {x, cast(aligned(call.args[2], call.args[0], attrs.axis, b), kInt32, b)});
    const Expr scale = cast(aligned(call.args[1], call.args[0], attrs.axis, b), kFloat32, b);
    return b.op("multiply", {cast(x, kFloat32, b), scale});
  }
  static std::optional<Expr> quantized(const Call& call, Builder& b) {
    const auto attrs = read_attrs<QuantizeAttrs>(call.attrs);
    const DType dtype = attrs.out_dtype;
    if (tensor_dtype(call.args[0].type()) != kFloat32 || !dtype.is_integral() || dtype.bits > 16) return std::nullopt;
    const Expr scale = cast(aligned(call.args[1], call.args[0], attrs.axis, b), kFloat32, b);
    Expr x = b.op("round", {constant_element(scale) == 1.0 ? call.args[0] : b.op("divide", {call.args[0], scale})});
    if (constant_element(call.args[2]) != 0.0)
      x = b.op("add", {x, cast(aligned(call.args[2], call.args[0], attrs.axis, b), kFloat32, b)});
    const double least = dtype.is_uint() ? 0 : -std::ldexp(1, dtype.bits - 1);
    x = b.op("clip", {x, float_imm(least), float_imm(least + std::ldexp(1, dtype.bits) - 1)});
    return cast(cast(x, kInt32, b), dtype, b);
  }
};

}  // namespace

IRModule expand_quantization(IRModule module, PassContext& context) {
  return rewrite_by<QuantizationExpander>(std::move(module), context);
}

}  // namespace relaxc
