// The pass mxu_claim. Expects: weights in 8 bits, as the model holds them. Guarantees: convolutions and products of
// quantized operands, the second of which is constant, are products on the matrix unit; what it does not take stays for
// the CPU.
//
// ONNX quantizes x as scale * (x8 - zero). The unit multiplies x8, and
//   sum((x8 - zero) * w) = sum(x8 * w) - zero * sum(w)
// where the padding of a convolution, 0, is the x8 whose value that is: zero. These sums are exact. Between
// DequantizeLinear and QuantizeLinear a network computes in float32, and there
//   sum(x_scale * (x8 - zero) * w_scale * w) = x_scale * w_scale * sum((x8 - zero) * w)
// which is rounded once, where the CPU rounds each term.
#include <relaxc/constants.h>
#include <relaxc/graph_rewriter.h>
#include <relaxc/pattern_pass.h>

#include <algorithm>

#include "accelerator.h"

namespace mxu {

namespace {

// x and the weight in 8 bits, perhaps with zero points, and pads that only the run knows.
std::string pattern(const std::string& name, const std::string& operands, const std::string& result) {
  return "@S.pattern\ndef " + name + R"((x, zero, zero8, weight: S.constant, w_zero: S.constant, x_scale,
        w_scale: S.constant, widths, fill: S.constant):
    wide = R.astype(x, dtype="int32")
    xi = R.subtract(wide, R.astype(zero8, dtype="int32")) | R.subtract(wide, zero) | wide
    w32 = R.astype(weight, dtype="int32")
    wi = R.subtract(w32, w_zero) | w32 | weight
)" + operands +
         "    return " + result + "\n";
}
std::string patterns(const std::string& name, const std::string& operands) {
  const std::string padded = "    padded = R.dyn.pad(a, widths, fill, pad_mode=\"constant\")\n",
                    turned = "    turned = R.permute_dims(b, axes=[1, 0])\n";
  return pattern(name + "convolution", operands + padded,
                 "R.nn.conv2d(padded | a, b, data_layout=\"NCHW\", kernel_layout=\"OIHW\", groups=1)") +
         pattern(name + "product", operands + turned, "R.matmul(a, turned | b)");
}
// QLinearConv, ConvInteger, QLinearMatMul, MatMulInteger.
std::string integer_patterns() { return patterns("", "    a = xi\n    b = wi\n"); }
// Operators between DequantizeLinear and QuantizeLinear. A scale of 1 is not in the graph.
std::string float_patterns() {
  return patterns("float_", R"(    xf = R.astype(xi, dtype="float32")
    a = R.multiply(xf, x_scale) | xf
    wf = R.astype(wi, dtype="float32")
    b = R.multiply(wf, w_scale) | wf
)");
}

struct Operand {
  Expr x;                            // int8
  std::optional<Expr> zero = {};     // is subtracted from each element: an int32 tensor of rank 0; absent: nothing is
  std::optional<Expr> outside = {};  // the int8 whose value is 0; absent: it is not known to fit
};

Tensor zeros(const std::vector<int64_t>& shape, DType dtype) {
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < result.size(); ++i) result.set_int(i, 0);
  return result;
}

// Returns an operand of the pattern, which may be absent.
std::optional<Expr> member(const PatternMatch& match, const char* name) {
  auto found = match.values.find(name);
  return found == match.values.end() ? std::nullopt : std::optional(found->second);
}
const Tensor& constant_of(const Expr& value) { return value.as<Constant>()->data; }

// Returns the tensor of int8 or uint8 in int8: unsigned elements become signed ones, 128 below.
Expr in_int8(const Expr& x, int64_t below, Builder& builder) {
  if (below == 0) return x;
  Expr wide = builder.op("astype", {x}, Attrs{{"dtype", kInt32}});
  return builder.op("astype", {builder.op("subtract", {wide, scalar_constant(below, kInt32)})},
                    Attrs{{"dtype", kInt8}});
}

// Returns the operand, or why it does not fit.
std::variant<Operand, std::string> operand(const PatternMatch& match, Builder& builder) {
  Operand result{match.values.at("x")};
  const std::optional<DType> dtype = tensor_dtype(result.x.type());
  if (dtype != kInt8 && dtype != DType::uint(8)) return "the first operand does not have 8 bits";
  const int64_t below = dtype == kInt8 ? 0 : 128;
  result.x = in_int8(result.x, below, builder);
  const std::optional<Expr> zero = member(match, "zero"), zero8 = member(match, "zero8");
  if ((zero && !is_one_element(zero->type())) || (zero8 && !is_one_element(zero8->type())))
    return "the zero point has more than one element";
  if (zero8 && tensor_dtype(zero8->type()) != dtype) return "the zero point has another dtype than the operand";
  const bool is_known = !zero8 && (!zero || zero->is<Constant>());
  if (is_known) {
    const int64_t known = (zero ? constant_of(*zero).as_int(0) : 0) - below;
    if (known < -128 || known > 127) return "the zero point does not fit into 8 bits";
    result.outside = scalar_constant(known, kInt8);
    if (known != 0) result.zero = scalar_constant(known, kInt32);
  } else if (zero8) {
    result.outside = in_int8(reshape(*zero8, {}, builder), below, builder);
    result.zero = builder.op("astype", {*result.outside}, Attrs{{"dtype", kInt32}});
  } else {
    result.zero = reshape(*zero, {}, builder);
    if (below > 0) result.zero = builder.op("subtract", {*result.zero, scalar_constant(below, kInt32)});
  }
  return result;
}

// The weight as a matrix.
struct Weight {
  int64_t depth, columns;
  std::vector<int64_t> kernel;  // of a convolution
  std::vector<int64_t> values;  // minus their zero points, a column after the other
  std::vector<double> scales;   // a column's
};

// Returns a number for each column, from a tensor that broadcasts to the weight: one number, or one along `axis`.
std::optional<std::vector<double>> by_column(const Tensor& tensor, const Tensor& weight, size_t axis) {
  const int64_t columns = weight.shape()[axis];
  std::vector<double> result;
  for (int64_t n = 0; n < columns; ++n) result.push_back(tensor.as_double(tensor.size() == 1 ? 0 : n % tensor.size()));
  const size_t rank = weight.shape().size(), behind = rank - 1 - axis;
  const bool is_along = tensor.size() == columns && tensor.shape().size() > behind && tensor.shape().size() <= rank &&
                        tensor.shape()[tensor.shape().size() - 1 - behind] == columns;
  return tensor.size() == 1 || is_along ? std::optional(result) : std::nullopt;
}

std::variant<Weight, std::string> weight_of(const PatternMatch& match) {
  const Tensor& tensor = constant_of(match.values.at("weight"));
  const bool is_image = match.attrs.has("data_layout"), is_turned = match.values.contains("turned");
  if (tensor.shape().size() != (is_image ? 4u : 2u)) return "the operands are not matrices";
  if (tensor.size() == 0) return "the weight is empty";
  if (!tensor.dtype().is_int() && !tensor.dtype().is_uint()) return "the weight does not have whole numbers";
  const size_t axis = is_image || is_turned ? 0 : 1;
  Weight result;
  result.columns = tensor.shape()[axis], result.depth = tensor.size() / result.columns;
  if (is_image) result.kernel = {tensor.shape()[2], tensor.shape()[3]};
  std::vector<double> zero(static_cast<size_t>(result.columns));
  result.scales.assign(zero.size(), 1);
  if (std::optional<Expr> given = member(match, "w_zero")) {
    auto numbers = by_column(constant_of(*given), tensor, axis);
    if (!numbers) return "the weight's zero point is not one number for each column";
    zero = *numbers;
  }
  if (std::optional<Expr> given = member(match, "w_scale")) {
    auto numbers = by_column(constant_of(*given), tensor, axis);
    if (!numbers) return "the weight's scale is not one number for each column";
    result.scales = *numbers;
  }
  for (int64_t n = 0; n < result.columns; ++n) {
    for (int64_t k = 0; k < result.depth; ++k) {
      const int64_t at = axis == 0 ? n * result.depth + k : k * result.columns + n;
      result.values.push_back(tensor.as_int(at) - static_cast<int64_t>(zero[static_cast<size_t>(n)]));
      if (result.values.back() < -128 || result.values.back() > 127)
        return "the weight has elements of more than 8 bits";
    }
  }
  return result;
}

// Returns the product with the weight, which is padded to whole tiles, minus zero * sum(weight).
Expr product(const Expr& tiles, const std::optional<Expr>& zero, const Weight& weight, const std::vector<Expr>& shape,
             Builder& builder) {
  auto rounded_up = [](int64_t n) { return (n + kMxuTile - 1) / kMxuTile * kMxuTile; };
  const bool is_image = !weight.kernel.empty();
  const int64_t width = rounded_up(weight.columns);
  Tensor matrix = zeros({rounded_up(weight.depth), width}, kInt8);
  Tensor sums = zeros(is_image ? std::vector<int64_t>{weight.columns, 1, 1} : std::vector{weight.columns}, kInt32);
  for (int64_t i = 0; i < weight.depth * weight.columns; ++i) {
    const int64_t n = i / weight.depth, value = weight.values[static_cast<size_t>(i)];
    matrix.set_int(i % weight.depth * width + n, value);
    sums.set_int(n, sums.as_int(n) + value);
  }
  Expr result = builder.op("mxu.matmul", {tiles, constant(matrix)});
  result = builder.op("mxu.result", {result, shape_expr(shape)}, ResultAttrs{is_image});
  return zero ? builder.op("subtract", {result, builder.op("multiply", {constant(sums), *zero})}) : result;
}

// Returns the windows of the image, or the rows of the matrix, as tiles.
std::variant<Expr, std::string> tiles_of(const PatternMatch& match, Operand x, const Weight& weight, Builder& builder) {
  const std::vector<Expr>* shape = known_shape(x.x.type());
  if (!shape || shape->size() < 2) return "the operands are not matrices";
  if (weight.kernel.empty()) {
    Expr rows = int_imm(1), last = shape->back();
    for (size_t d = 0; d + 1 < shape->size(); ++d) rows = rows * (*shape)[d];
    return builder.op("mxu.rows", {shape->size() > 2 ? reshape(x.x, {rows, last}, builder) : x.x}, RowsAttrs());
  }
  RowsAttrs rows;
  auto numbers = [&](const char* name, std::vector<int64_t>& to) { return from_attr(*match.attrs.find(name), to); };
  if (!numbers("strides", rows.strides) || !numbers("padding", rows.padding) || !numbers("dilation", rows.dilation))
    return "the padding is symbolic";
  rows.kernel = weight.kernel;
  const std::optional<Expr> widths = member(match, "widths");
  const bool pads = widths || std::ranges::any_of(rows.padding, [](int64_t pixels) { return pixels != 0; });
  if (widths && constant_of(match.values.at("fill")).as_double(0) != 0) return "the padding is not 0";
  if (pads && !x.outside) return "the padding is a zero point that is not known to have 8 bits";
  if (widths) x.x = builder.op("dyn.pad", {x.x, *widths, *x.outside});
  return builder.op("mxu.rows", pads ? std::vector{x.x, *x.outside} : std::vector{x.x}, rows);
}

// Returns the match's result, of the dtype that its pattern has, on the unit.
std::variant<Expr, std::string> on_unit(DType dtype, const PatternMatch& match, Builder& builder) {
  const Type& type = match.results[0].type();
  const std::optional<Expr> x_scale = member(match, "x_scale");
  if (tensor_dtype(type) != dtype) return "the result has another dtype";
  if (x_scale && !is_one_element(x_scale->type())) return "the scale of the first operand has more than one element";
  auto weight = weight_of(match);
  if (const std::string* why = std::get_if<std::string>(&weight)) return *why;
  auto x = operand(match, builder);
  if (const std::string* why = std::get_if<std::string>(&x)) return *why;
  const Weight& matrix = std::get<Weight>(weight);
  auto tiles = tiles_of(match, std::get<Operand>(x), matrix, builder);
  if (const std::string* why = std::get_if<std::string>(&tiles)) return *why;
  Expr sum = product(std::get<Expr>(tiles), std::get<Operand>(x).zero, matrix, *known_shape(type), builder);
  if (dtype == kInt32) return sum;
  const bool is_image = !matrix.kernel.empty();
  Tensor scales =
      Tensor::empty(is_image ? std::vector<int64_t>{matrix.columns, 1, 1} : std::vector{matrix.columns}, kFloat32);
  for (int64_t n = 0; n < matrix.columns; ++n) scales.set_double(n, matrix.scales[static_cast<size_t>(n)]);
  Expr scale = constant(scales);
  if (x_scale) scale = builder.op("multiply", {scale, reshape(*x_scale, {}, builder)});
  return builder.op("multiply", {builder.op("astype", {sum}, Attrs{{"dtype", kFloat32}}), scale});
}

}  // namespace

void add_claim(Tables& tables) {
  tables.keep_narrow_weights();
  auto on_unit_in = [](DType dtype) {
    return [dtype](const PatternMatch& match, Builder& builder) { return on_unit(dtype, match, builder); };
  };
  tables.add(
      pattern_pass("mxu_claim", "compute products of int8 on the matrix unit",
                   {{integer_patterns(), on_unit_in(kInt32)}, {float_patterns(), on_unit_in(kFloat32)}}, tables.ops()),
      {{.pipeline = "simplify", .before = "integer_regions"}});
}

}  // namespace mxu
