#include "ops/gradient.h"

#include "ir/constants.h"
#include "ops/attributes.h"
#include "ops/common.h"

namespace relaxc::gradients {

Term Term::op(const char* name) const { return {builder->op(name, {expr}), builder}; }
Term Term::op(const char* name, const Term& other) const { return op(name, other.expr); }
Term Term::op(const char* name, const Expr& other) const { return {builder->op(name, {expr, other}), builder}; }
Term Term::reshaped(std::vector<Expr> dims) const {
  return {builder->op("reshape", {expr, shape_expr(std::move(dims))}), builder};
}
Term Term::permuted(std::vector<int64_t> axes) const { return op("permute_dims", AxesAttrs{std::move(axes)}); }
Term Term::broadcast_to(std::vector<Expr> dims) const {
  return {builder->op("broadcast_to", {expr, shape_expr(std::move(dims))}), builder};
}
Term Term::as(DType to) const { return to == dtype() ? *this : op("astype", CastAttrs{to}); }
Term Term::over(const char* reduction, const std::vector<int64_t>& axes) const {
  return op(reduction, ReduceAttrs{.axis = axes, .keepdims = true});
}
Term Term::number(double value) const { return {scalar_constant(value, dtype(), builder->span()), builder}; }
Term Term::zeros() const { return gradients::zeros(shape(), dtype(), *builder); }
Term Term::where(const Term& condition, const Term& otherwise) const {
  return {builder->op("where", {condition.expr, expr, otherwise.expr}), builder};
}
const std::vector<Expr>& Term::shape() const {
  const std::vector<Expr>* dims = known_shape(expr.type());
  if (!dims) fail_unsupported(builder->span(), "a gradient needs the dims of a tensor of which only the rank is known");
  return *dims;
}
DType Term::dtype() const {
  std::optional<DType> dtype = tensor_dtype(expr.type());
  if (!dtype) fail_unsupported(builder->span(), "a gradient needs the dtype of a tensor of which it is not known");
  return *dtype;
}

Term GradientCall::y(size_t i) const {
  return term(builder.emit(tuple_get(result, static_cast<int64_t>(i), builder.span())));
}
Term GradientCall::dy(size_t i) const {
  if (gradients[i]) return term(*gradients[i]);
  return y(i).zeros();
}

Term zeros(const std::vector<Expr>& dims, DType dtype, Builder& builder) {
  return {builder.op("zeros", {shape_expr(dims)}, FillAttrs{dtype}), &builder};
}
Term sliced(const Term& x, int64_t axis, const Expr& begin, const Expr& end) {
  std::vector<Expr> args = {x.expr, tuple({int_imm(axis)}), tuple({begin}), tuple({end})};
  return {x.builder->op("strided_slice", std::move(args), SliceAttrs{.assume_inbound = true}), x.builder};
}
Term scattered(const Term& dy, const std::vector<Expr>& dims, int64_t axis, const Term& positions) {
  const int64_t rank = positions.rank();
  std::vector<int64_t> order = int_range(axis, axis + rank), back = int_range(1, std::ssize(dims));
  for (int64_t d = 0; d < dy.rank(); ++d) {
    if (d < axis || d >= axis + rank) order.push_back(d);
  }
  back.insert(back.begin() + axis, 0);
  Term updates = dy.permuted(order), places = positions.reshaped(followed_by(positions.shape(), {int_imm(1)}));
  Expr target = zeros(followed_by({dims[axis]}, without_item(dims, axis)), dy.dtype(), *dy.builder).expr;
  Expr sum = dy.builder->op("scatter_nd", {target, places.expr, updates.expr}, ScatterNdAttrs{"add"});
  return Term{sum, dy.builder}.permuted(back);
}

std::vector<GradientRow> all_gradients() {
  std::vector<GradientRow> rows;
#define RELAXC_ROW(group) group##_gradients,
  for (auto* group : {RELAXC_GRADIENT_GROUPS(RELAXC_ROW)}) {
#undef RELAXC_ROW
    for (GradientRow& row : group()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace relaxc::gradients
