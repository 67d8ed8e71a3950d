// Quantization: integers, or floats of a small range, that stand for real numbers.
#include "ops/quantize.h"

#include <algorithm>
#include <cmath>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

Expr saturated(const Expr& value, DType dtype) {
  if (!dtype.is_float() || dtype.bits >= 32) return cast_to(value, dtype);
  Expr most = scalar_imm(dtype == DType::bfloat16() ? 3.3895313892515355e38 : 65504, dtype_of(value));
  return cast_to(max(min(value, most), zero(dtype_of(value)) - most), dtype);
}

namespace {

// A scale and a zero point have one element, or are vectors along the axis, or have the data's rank and an element for
// each block along the axis.
bool has_one_element(const std::vector<Expr>& shape) {
  return std::ranges::all_of(shape, [](const Expr& dim) { return is_int(dim, 1); });
}
// Returns the elements of the axis that share a scale; 0 where each has its own, or all have the same one.
template <class A>
int64_t block_size_of(const A& attrs) {
  if constexpr (requires { attrs.block_size; }) return attrs.block_size;
  return 0;
}
void require_blocks(const OpCall& op, size_t i, int64_t axis, int64_t size) {
  if (op.rank(i) != op.rank(0))
    op.fail("argument {} has rank {}, expected {}, that of the data, because of block_size", i, op.rank(i), op.rank(0));
  for (int64_t d = 0; d < op.rank(0); ++d) {
    const Expr expected = d == axis ? ceil_div(op.shape(0)[d], size) : op.shape(0)[d];
    op.require_equal(op.shape(i)[d], simplify(expected), fmt::format("dim {} of argument {} and of the blocks", d, i));
  }
}
template <class A>
Type infer_quantization(const OpCall& op) {
  A attrs = op.attrs<A>();
  if (!op.dtype(1).is_float()) op.fail("a scale of {}, expected a float", to_string(op.dtype(1)));
  const int64_t block_size = block_size_of(attrs);
  if (block_size < 0) op.fail("block_size is {}, expected at least 0", block_size);
  for (size_t i : {1, 2}) {
    if (has_one_element(op.shape(i))) continue;
    if (block_size == 0 && op.rank(i) > 1) op.fail("argument {} has rank {}, expected 0 or 1", i, op.rank(i));
    int64_t axis = normalize_axis(op, attrs.axis, op.rank(0));
    if (block_size > 0) {
      require_blocks(op, i, axis, block_size);
    } else {
      op.require_equal(op.shape(i)[0], op.shape(0)[axis], fmt::format("size of argument {} and of axis {}", i, axis));
    }
  }
  return tensor_type(op.shape(0), attrs.out_dtype);
}
// Returns the element of a scale or zero point that belongs to element `i` of the data.
template <class A>
Expr parameter_at(const OpCall& op, const A& attrs, const Buffer& values, Axes i) {
  size_t rank = buffer_type(values).shape.size();
  if (has_one_element(buffer_type(values).shape)) return load(values, std::vector<Expr>(rank, int_imm(0)));
  const int64_t axis = normalize_axis(op, attrs.axis, op.rank(0)), size = block_size_of(attrs);
  if (size == 0) return load(values, {i[axis]});
  return load(values, with_item({i.begin(), i.end()}, axis, floor_div(i[axis], size)));
}
// Computes in float32 at least. The rounding is to even, as in ONNX and torch; NaN becomes the least number. Limits
// and zero point are integers, so it is the same to limit before the rounding as behind the addition.
Expr quantize_element(const OpCall& op, Inputs x, Axes i) {
  QuantizeAttrs attrs = op.attrs<QuantizeAttrs>();
  DType dtype = op.dtype(0) == kFloat64 ? kFloat64 : kFloat32, result = attrs.out_dtype;
  auto parameter = [&](size_t k, DType as) { return cast_to(parameter_at(op, attrs, x[k], i), as); };
  Expr scaled = binary(BinaryOp::kDiv, cast_to(at(x[0], i), dtype), parameter(1, dtype));
  if (result.is_float()) return saturated(scaled + parameter(2, dtype), result);
  if (result.bits > 16 || result.bits < 8)
    return cast_to(intrinsic(ops::kNearbyint, {scaled}, dtype) + parameter(2, dtype), result);
  const double least = result.is_uint() ? 0 : -std::ldexp(1, result.bits - 1);
  auto limit = [&](double number) { return scalar_imm(number, dtype) - parameter(2, dtype); };
  Expr rounded = intrinsic(std::string(kRoundWithin.text),
                           {scaled, limit(least), limit(least + std::ldexp(1, result.bits) - 1)}, dtype);
  return cast_to(cast_to(rounded, kInt32) + parameter(2, kInt32), result);
}
// The zero point is subtracted in int32 (int64 for wide data), so that nothing wraps and nothing is rounded. One that
// is a float, as half-quadratic quantization finds it, is subtracted in float32.
Expr dequantize_element(const OpCall& op, Inputs x, Axes i) {
  DequantizeAttrs attrs = op.attrs<DequantizeAttrs>();
  auto parameter = [&](size_t k) { return parameter_at(op, attrs, x[k], i); };
  const bool are_floats = op.dtype(0).is_float() || op.dtype(2).is_float();
  DType exact = are_floats ? kFloat32 : op.dtype(0).bits > 16 ? kInt64 : kInt32;
  Expr difference = cast_to(at(x[0], i), exact) - cast_to(parameter(2), exact);
  return saturated(cast_to(difference, kFloat32) * cast_to(parameter(1), kFloat32), attrs.out_dtype);
}
// One scale and zero point for all are the same in any layout.
std::optional<LayoutOffer> layouts_of_quantization(const LayoutQuestion& q) {
  const bool is_whole = has_one_element(q.op.shape(1)) && has_one_element(q.op.shape(2));
  return is_whole ? same_layout(q) : std::nullopt;
}
template <class A>
OpRow quantization(const char* name, const char* doc, const char* parameter, std::vector<OpAttr> attrs,
                   const Element& element) {
  return by_element({.name = name,
                     .doc = doc,
                     .inputs = {{"data", "the tensor"}, {"scale", parameter}, {"zero_point", parameter}},
                     .attrs = std::move(attrs),
                     .infer = infer_quantization<A>,
                     .infer_partial = infer_stated_dtype_same_rank,
                     .layouts = layouts_of_quantization},
                    element);
}

Type infer_lookup(const OpCall& op) {
  if (!op.dtype(0).is_integral() || op.dtype(0).bits != 8)
    op.fail("data of {}, expected int8 or uint8", to_string(op.dtype(0)));
  if (op.rank(1) != 1) op.fail("a table of rank {}, expected 1", op.rank(1));
  op.require_equal(op.shape(1)[0], int_imm(kByteTableSize), "size of the table and number of bytes");
  return tensor_type(op.shape(0), op.dtype(1));
}
Expr lookup_element(const OpCall&, Inputs x, Axes i) {
  return load(x[1], {cast_to(cast_to(at(x[0], i), DType::uint(8)), kInt64)});
}
// The data's layout; the table stays as it is.
std::optional<LayoutOffer> layouts_of_lookup(const LayoutQuestion& q) {
  if (!q.layouts[0]) return std::nullopt;
  auto emit = [](const std::vector<Expr>& tensors, Builder& b) { return b.op(std::string(kLookup.text), tensors); };
  return LayoutOffer{.operands = {q.layouts[0], std::nullopt}, .result = *q.layouts[0], .emit = emit};
}
reference::Tensors lookup_reference(const ReferenceCall& c) {
  return {reference::tensor_of(c.x[0].shape(), c.x[1].dtype(), [&](const reference::Index& i) {
    const auto byte = static_cast<int64_t>(reference::element(c.x[0], i)) & (kByteTableSize - 1);
    return c.x[1].as_double(byte);
  })};
}

// Limits a number to those of an integer dtype. NaN becomes the least.
double within(double number, DType dtype) {
  if (!dtype.is_integral() || dtype.bits > 32) return number;
  const double least = dtype.is_uint() ? 0 : -std::ldexp(1, dtype.bits - 1);
  return number > least ? std::min(number, least + std::ldexp(1, dtype.bits) - 1) : least;
}

// The references take a scale and a zero point of the element at `i`.
template <class A>
Reference of_parameters(double (*value)(double x, double scale, double zero_point)) {
  return [=](const ReferenceCall& c) -> reference::Tensors {
    const A attrs = c.attrs<A>();
    const int64_t axis = attrs.axis < 0 ? attrs.axis + c.x[0].ndim() : attrs.axis, size = block_size_of(attrs);
    size_t along = static_cast<size_t>(axis);
    return {reference::tensor_of(c.x[0].shape(), attrs.out_dtype, [&](const reference::Index& i) {
      auto parameter = [&](size_t k) {
        if (c.x[k].size() == 1) return c.x[k].as_double(0);
        if (size == 0) return c.x[k].as_double(i[along]);
        reference::Index block = i;
        block[along] /= size;
        return reference::element(c.x[k], block);
      };
      return within(value(reference::element(c.x[0], i), parameter(1), parameter(2)), attrs.out_dtype);
    })};
  };
}
double quantized(double x, double scale, double zero_point) {
  float ratio = static_cast<float>(x) / static_cast<float>(scale);
  return static_cast<double>(std::nearbyint(ratio)) + zero_point;
}
double dequantized(double x, double scale, double zero_point) { return (x - zero_point) * scale; }

}  // namespace

std::vector<OpRow> quantize_ops() {
  return {reference::with(quantization<QuantizeAttrs>("relax.quantize", "clamp(round(data / scale) + zero_point)",
                                                      "scalar, or one per element of the axis",
                                                      op_attrs<QuantizeAttrs>(), quantize_element),
                          of_parameters<QuantizeAttrs>(quantized)),
          reference::with(quantization<DequantizeAttrs>("relax.dequantize", "(data - zero_point) * scale",
                                                        "scalar, or one per element or block of the axis",
                                                        with_extension(op_attrs<DequantizeAttrs>(), "block_size"),
                                                        dequantize_element),
                          of_parameters<DequantizeAttrs>(dequantized)),
          reference::with(by_element({.name = std::string(kLookup.text),
                                      .doc = "table[data], where the bits of data are a number from 0 to 255",
                                      .inputs = {{"data", "int8 or uint8"}, {"table", "256 elements"}},
                                      .infer = infer_lookup,
                                      .layouts = layouts_of_lookup},
                                     lookup_element, OpPattern::kBroadcast),
                          lookup_reference)};
}

}  // namespace relaxc
