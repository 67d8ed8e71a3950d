// The operators that a product on the matrix unit is made of. R.mxu.matmul is what the unit computes; the two others
// bring tensors into tiles and back, on the CPU.
#include <relaxc/compute.h>

#include "accelerator.h"

namespace mxu {

namespace {

Expr rounded_up(const Expr& dim) { return ceil_div(dim, kMxuTile) * kMxuTile; }

// The dims of a convolution whose pixels become rows.
struct Pixels {
  explicit Pixels(const OpCall& op) : attrs(op.attrs<RowsAttrs>()), shape(op.shape(0)) {
    if (op.rank(0) != 2 && op.rank(0) != 4) op.fail("x has rank {}, expected 2 or 4", op.rank(0));
    if (op.dtype(0) != kInt8) op.fail("x is {}, expected int8", to_string(op.dtype(0)));
    if (op.size() > 1 && (op.rank(1) != 0 || op.dtype(1) != kInt8)) op.fail("outside is not one int8");
    if (shape.size() == 2) shape.insert(shape.end(), {int_imm(1), int_imm(1)});
    height = extent(0), width = extent(1);
    rows = shape[0] * height * width;
    columns = shape[1] * (attrs.kernel.at(0) * attrs.kernel.at(1));
  }
  Expr extent(size_t d) const {
    int64_t window = (attrs.kernel.at(d) - 1) * attrs.dilation.at(d) + 1;
    return floor_div(shape[d + 2] + (attrs.padding.at(d) + attrs.padding.at(d + 2) - window), attrs.strides.at(d)) + 1;
  }
  // The pixel's row (d = 0) or column that is under the window's element.
  Expr position(size_t d, const Expr& output, const Expr& element) const {
    return output * attrs.strides[d] + element * attrs.dilation[d] - attrs.padding[d];
  }
  RowsAttrs attrs;
  std::vector<Expr> shape;  // of the image: [n, c, h, w]
  Expr height = int_imm(0), width = int_imm(0), rows = int_imm(0), columns = int_imm(0);
};

Type infer_rows(const OpCall& op) {
  Pixels p(op);
  return tensor_type({ceil_div(p.rows, kMxuTile), int_imm(kMxuTile), rounded_up(p.columns)}, kInt8);
}

// Each row holds the elements of one window, in the order of the weight's: channel, row, column (im2col).
PrimFuncRef rows(const OpCall& op) {
  ComputeBuilder b;
  const std::vector<Buffer> inputs = b.inputs_of(op);
  const Buffer& x = inputs[0];
  Pixels p(op);
  int64_t kw = p.attrs.kernel[1], window = p.attrs.kernel[0] * kw;
  Buffer y = b.compute("rows", kInt8, *known_shape(infer_rows(op)), [&](Axes i) {
    Expr row = i[0] * kMxuTile + i[1], image = floor_div(row, p.height * p.width), c = floor_div(i[2], window);
    Expr at_y = p.position(0, floor_mod(floor_div(row, p.width), p.height), floor_div(floor_mod(i[2], window), kw));
    Expr at_x = p.position(1, floor_mod(row, p.width), floor_mod(i[2], kw));
    Expr is_inside = at_y >= int_imm(0) && at_y < p.shape[2] && at_x >= int_imm(0) && at_x < p.shape[3];
    bool is_matrix = buffer_type(x).shape.size() == 2;
    Expr pixel = load(x, is_matrix ? std::vector{image, c} : std::vector{image, c, at_y, at_x});
    Expr value = if_then_else(is_inside, pixel, inputs.size() > 1 ? load(inputs[1], {}) : int_imm(0, kInt8));
    return if_then_else(row < p.rows && i[2] < p.columns, value, int_imm(0, kInt8));
  });
  return b.finish({y});
}

Type infer_matmul(const OpCall& op) {
  if (op.rank(0) != 3 || op.rank(1) != 2 || op.dtype(0) != kInt8 || op.dtype(1) != kInt8)
    op.fail("expected int8 tiles of rank 3 and an int8 matrix");
  op.require_equal(op.shape(0)[2], op.shape(1)[0], "columns of a and rows of b");
  return tensor_type({op.shape(0)[0], op.shape(0)[1], op.shape(1)[1]}, kInt32);
}

PrimFuncRef matmul(const OpCall& op) {
  ComputeBuilder b;
  std::vector<Buffer> x = b.inputs_of(op);
  Buffer y =
      b.reduce("product", kInt32, *known_shape(infer_matmul(op)), {op.shape(1)[0]}, zero(kInt32), combine_sum,
               [&](Axes i, Axes k) {
                 return cast_to(load(x[0], {i[0], i[1], k[0]}), kInt32) * cast_to(load(x[1], {k[0], i[2]}), kInt32);
               });
  return b.finish({y});
}

Type infer_result(const OpCall& op) {
  const ShapeExpr* shape = op.arg(1).as<ShapeExpr>();
  bool fits = shape && (op.attrs<ResultAttrs>().image ? shape->values.size() == 4 : shape->values.size() >= 2);
  if (!fits) op.fail("expected a shape of rank 4 for an image, and of rank 2 or more else");
  return tensor_type(shape->values, op.dtype(0));
}

PrimFuncRef result(const OpCall& op) {
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  std::vector<Expr> shape = *known_shape(infer_result(op));
  size_t column = op.attrs<ResultAttrs>().image ? 1 : shape.size() - 1;
  Buffer y = b.compute("result", op.dtype(0), shape, [&](Axes i) {
    Expr row = int_imm(0);
    for (size_t d = 0; d < shape.size(); ++d) row = d == column ? row : row * shape[d] + i[d];
    return load(x, {floor_div(row, kMxuTile), floor_mod(row, kMxuTile), i[column]});
  });
  return b.finish({y});
}

}  // namespace

void add_operators(Tables& tables) {
  tables.add(OpRow{.name = "relax.mxu.rows",
                   .doc = "the windows of an image, or the rows of a matrix, as tiles of 16 rows, padded with zeros",
                   .inputs = {{"x", "int8, [n, c, h, w] or [m, k]"},
                              {"outside", "int8, the value of pixels in the padding", OpInput::Arity::kOptional}},
                   .attrs = op_attrs<RowsAttrs>(),
                   .infer = infer_rows,
                   .legalize = rows});
  tables.add(OpRow{.name = "relax.mxu.matmul",
                   .doc = "the product of tiles with a matrix, on the matrix unit",
                   .inputs = {{"a", "int8, [m / 16, 16, k]"}, {"b", "int8, [k, n]"}},
                   .infer = infer_matmul,
                   .legalize = matmul});
  tables.add(OpRow{.name = "relax.mxu.result",
                   .doc = "the product's rows as a tensor, or as the pixels of an image",
                   .inputs = {{"x", "int32 tiles"}, {"shape", "of the result"}},
                   .attrs = op_attrs<ResultAttrs>(),
                   .pattern = OpPattern::kInjective,
                   .infer = infer_result,
                   .legalize = result});
}

}  // namespace mxu
