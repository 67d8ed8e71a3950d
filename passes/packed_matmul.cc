#include "passes/packed_matmul.h"

#include "ir/op_names.h"
#include "ops/fold.h"
#include "tir/analysis/annotations.h"
#include "tir/compute.h"
#include "tir/schedule/rule.h"

namespace relaxc {

namespace {

// Returns whether a block before the product makes float32 of a weight of 16 bits, once for all rows of a tile.
bool is_widened(DType x, DType y) { return x == kFloat32 && y.is_float() && y.bits == 16; }

}  // namespace

std::vector<Expr> PackedMatmul::packed_shape() const { return layout.from_plain(followed_by(batch, {depth, padded})); }

PrimFuncRef PackedMatmul::program(const std::vector<Expr>& x_shape, DType x_dtype, DType y_dtype, DType result) const {
  ComputeBuilder b;
  const Buffer x = b.input("x1", x_dtype, x_shape), y = b.input("x2", y_dtype, packed_shape());
  std::vector<Expr> out(x_shape.begin(), x_shape.end() - 1);
  out.push_back(padded);
  if (!batch.empty()) {  // which the left operand may lack
    out.insert(out.begin(), std::max(out.size(), batch.size() + 2) - out.size(), int_imm(1));
    std::copy(batch.begin(), batch.end(), out.end() - 2 - std::ssize(batch));
  }
  const DType sum = accumulation_dtype(result);
  auto element = [&](Axes at, const Expr& row, const Expr& column) {
    std::vector<Expr> plain;
    for (size_t behind = batch.size() + 2; behind > 2; --behind) plain.push_back(at[at.size() - behind]);
    plain.insert(plain.end(), {row, column});
    return cast_to(load(y, layout.from_plain_index(plain)), sum);
  };
  std::optional<Buffer> wide;
  if (is_widened(x_dtype, y_dtype)) {
    wide = b.compute("widen", sum, {depth, padded}, [&](Axes i) { return element({}, i[0], i[1]); });
    b.annotate(annotation<"unpacked_columns">(), layout.block_of(batch.size() + 1));
  }
  Buffer product = b.reduce("matmul", sum, out, {depth}, zero(sum), combine_sum, [&](Axes i, Axes r) {
    std::vector<Expr> left(i.end() - std::ssize(x_shape), i.end() - 1);
    left.push_back(r[0]);
    for (size_t d = 0; d + 2 < x_shape.size(); ++d) {
      if (is_int(x_shape[d], 1) && !is_int(out[out.size() - x_shape.size() + d], 1)) left[d] = int_imm(0);
    }
    return cast_to(load(x, left), sum) * (wide ? load(*wide, {r[0], i.back()}) : element(i, r[0], i.back()));
  });
  if (!structural_equal(width, padded)) {
    out.back() = width;
    product = b.compute("matmul_columns", sum, out, [&](Axes i) { return load(product, {i.begin(), i.end()}); });
  }
  return with_op_name(b.finish({as_dtype(b, product, result, "matmul_cast")}), ops::short_name(ops::kMatmul));
}

PrimFuncRef padding_program(const std::vector<Expr>& shape, const std::vector<Expr>& padded, DType dtype) {
  ComputeBuilder b;
  const Buffer x = b.input("x", dtype, shape);
  return b.finish({b.compute("T_pad", dtype, padded, [&](Axes i) {
    std::optional<Expr> is_inside;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (structural_equal(shape[d], padded[d])) continue;
      const Expr is_in_axis = i[d] < shape[d];
      is_inside = is_inside ? *is_inside && is_in_axis : is_in_axis;
    }
    return is_inside ? if_then_else(*is_inside, load(x, i), zero(dtype)) : load(x, i);
  })});
}

}  // namespace relaxc
