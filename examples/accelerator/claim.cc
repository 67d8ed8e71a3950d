// The pass mxu_claim. Expects: a graph with folded constants. Guarantees: convolutions and products of int8 operands,
// the second of which is constant, are products on the matrix unit; what it does not take stays for the CPU.
//
// ONNX quantizes x as scale * (x8 - zero). The unit multiplies x8, and
//   sum((x8 - zero) * w) = sum(x8 * w) - zero * sum(w)
// where the padding of a convolution, 0, is the x8 whose value that is: zero. Sums are exact, so the result is the
// same.
#include <relaxc/graph_rewriter.h>
#include <relaxc/pattern_pass.h>

#include <algorithm>

#include "accelerator.h"

namespace mxu {

namespace {

// x in 8 bits, perhaps with a zero point, and a weight.
constexpr const char* kPatterns = R"(
@S.pattern
def convolution(x, zero, weight: S.constant):
    wide = R.astype(x, dtype="int32")
    return R.nn.conv2d(R.subtract(wide, zero) | wide, weight, data_layout="NCHW", kernel_layout="OIHW", groups=1)

@S.pattern
def product(x, zero, weight: S.constant):
    wide = R.astype(x, dtype="int32")
    return R.matmul(R.subtract(wide, zero) | wide, weight)
)";

struct Operand {
  Expr x;                            // int8
  std::optional<Expr> zero;          // is subtracted from each element: an int32 tensor of rank 0; absent: nothing is
  std::optional<int64_t> known = 0;  // its value
};

Tensor zeros(const std::vector<int64_t>& shape, DType dtype) {
  Tensor result = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < result.size(); ++i) result.set_int(i, 0);
  return result;
}

Expr int32_scalar(int64_t value) {
  Tensor result = Tensor::empty({}, kInt32);
  result.set_int(0, value);
  return constant(std::move(result));
}

bool is_int8(const Tensor& weight) {
  for (int64_t i = 0; i < weight.size(); ++i) {
    if (weight.as_int(i) < -128 || weight.as_int(i) > 127) return false;
  }
  return weight.size() > 0;
}

// Returns the operand in int8: unsigned elements become signed ones, 128 below. A text says why it does not fit.
std::variant<Operand, std::string> operand(const PatternMatch& match, Builder& builder) {
  Operand result{match.values.at("x"), {}};
  if (auto zero = match.values.find("zero"); zero != match.values.end()) {
    result.zero = zero->second, result.known = std::nullopt;
    const std::vector<Expr>* dims = known_shape(result.zero->type());
    if (!dims || !std::ranges::all_of(*dims, [](const Expr& dim) { return is_int(dim, 1); }))
      return "the zero point has more than one element";
    if (const Constant* known = result.zero->as<Constant>()) result.known = known->data.as_int(0);
  }
  const std::optional<DType> dtype = tensor_dtype(result.x.type());
  if (dtype != kInt8 && dtype != DType::uint(8)) return "the first operand does not have 8 bits";
  const int64_t below = dtype == kInt8 ? 0 : 128;
  if (result.known && (*result.known < below - 128 || *result.known > below + 127))
    return "the zero point does not fit into 8 bits";
  if (below > 0) {
    Expr wide = builder.op("astype", {result.x}, Attrs{{"dtype", kInt32}});
    result.x = builder.op("astype", {builder.op("subtract", {wide, int32_scalar(below)})}, Attrs{{"dtype", kInt8}});
  }
  if (result.known) {
    *result.known -= below;
    result.zero = *result.known == 0 ? std::nullopt : std::optional(int32_scalar(*result.known));
  } else {
    Expr zero = reshape(*result.zero, {}, builder);
    result.zero = below == 0 ? zero : builder.op("subtract", {zero, int32_scalar(below)});
  }
  return result;
}

// Emits the product, whose weight(k, n) is padded to whole tiles, and subtracts zero * sum(weight).
template <class Weight>
Expr product(const Operand& x, const RowsAttrs& rows, int64_t depth, int64_t columns, const Weight& weight,
             Builder& builder, const Type& type, bool is_image) {
  auto rounded_up = [](int64_t n) { return (n + kMxuTile - 1) / kMxuTile * kMxuTile; };
  int64_t width = rounded_up(columns);
  Tensor matrix = zeros({rounded_up(depth), width}, kInt8);
  Tensor sums = zeros(is_image ? std::vector<int64_t>{columns, 1, 1} : std::vector{columns}, kInt32);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t n = 0; n < columns; ++n) {
      matrix.set_int(k * width + n, weight(k, n));
      sums.set_int(n, sums.as_int(n) + weight(k, n));
    }
  }
  Expr tiles = builder.op("mxu.rows", {x.x}, rows);
  Expr result = builder.op("mxu.matmul", {tiles, constant(matrix)});
  result = builder.op("mxu.result", {result, shape_expr(*known_shape(type))}, ResultAttrs{is_image});
  if (!x.zero) return result;
  return builder.op("subtract", {result, builder.op("multiply", {constant(sums), *x.zero})});
}

std::variant<Expr, std::string> convolution(const PatternMatch& match, const Tensor& weight, Operand x,
                                            Builder& builder) {
  RowsAttrs rows;
  auto numbers = [&](const char* name, std::vector<int64_t>& to) { return from_attr(*match.attrs.find(name), to); };
  if (!numbers("strides", rows.strides) || !numbers("padding", rows.padding) || !numbers("dilation", rows.dilation))
    return "the padding is symbolic";
  bool pads = std::ranges::any_of(rows.padding, [](int64_t pixels) { return pixels != 0; });
  if (pads && !x.known) return "the padding is a zero point that is decided at run time";
  rows.kernel = {weight.shape()[2], weight.shape()[3]};
  rows.outside = x.known.value_or(0);
  int64_t columns = weight.shape()[0], depth = weight.size() / columns;
  auto at = [&](int64_t k, int64_t n) { return weight.as_int(n * depth + k); };
  return product(x, rows, depth, columns, at, builder, match.results[0].type(), true);
}

std::variant<Expr, std::string> matrix_product(const PatternMatch& match, const Tensor& weight, Operand x,
                                               Builder& builder) {
  const std::vector<Expr>* shape = known_shape(x.x.type());
  if (!shape || shape->size() < 2 || weight.shape().size() != 2) return "the operands are not matrices";
  Expr rows = int_imm(1), last = shape->back();
  for (size_t d = 0; d + 1 < shape->size(); ++d) rows = rows * (*shape)[d];
  if (shape->size() > 2) x.x = reshape(x.x, {rows, last}, builder);
  int64_t depth = weight.shape()[0], columns = weight.shape()[1];
  auto at = [&](int64_t k, int64_t n) { return weight.as_int(k * columns + n); };
  return product(x, {}, depth, columns, at, builder, match.results[0].type(), false);
}

std::variant<Expr, std::string> on_unit(const PatternMatch& match, Builder& builder) {
  const Constant* weight = match.values.at("weight").as<Constant>();
  if (!weight || !is_int8(weight->data)) return "the weight has elements of more than 8 bits";
  auto x = operand(match, builder);
  if (const std::string* why = std::get_if<std::string>(&x)) return *why;
  bool is_image = match.attrs.has("data_layout");
  return (is_image ? convolution : matrix_product)(match, weight->data, std::get<Operand>(x), builder);
}

}  // namespace

void add_claim(Tables& tables) {
  tables.add(
      pattern_pass("mxu_claim", "compute products of int8 on the matrix unit", {{kPatterns, on_unit}}, tables.ops()),
      {{.pipeline = "simplify", .before = "block_channels"}});
}

}  // namespace mxu
