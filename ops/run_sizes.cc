#include "ops/run_sizes.h"

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "support/joined.h"

namespace relaxc {

namespace {

// "relax.vision.x" is counted by "relax.count.x".
std::string part_name(const OpRow& row, const char* part) {
  return fmt::format("relax.{}.{}", part, row.name.substr(row.name.rfind('.') + 1));
}

// Infers the type of a call whose sizes are not counted yet: dims that depend on them are not known.
Type infer_uncounted(const OpRow& row, const OpCall& op) {
  std::vector<Expr> sizes;
  VarSet open;
  for (const char* name : row.sizes->names) open.insert(sizes.emplace_back(make_dim(name)).get());
  OpCall with_variables = op;
  with_variables.sizes = &sizes;
  return without_dims(row.infer(with_variables), [&](const VarRef& var) { return open.contains(var.get()); });
}

std::vector<Type> types_left(const OpRow& row, const OpCall& op) {
  return row.sizes->infer_left ? row.sizes->infer_left(op) : std::vector<Type>();
}
// The operands are those of the operator, so its requirements are tested before anything is counted.
Type infer_count(const OpRow& row, const OpCall& op) {
  infer_uncounted(row, op);
  Type numbers = tensor_type({int_imm(std::ssize(row.sizes->names))}, kInt64);
  std::vector<Type> types = types_left(row, op);
  if (types.empty()) return numbers;
  types.insert(types.begin(), numbers);
  return tuple_type(std::move(types));
}

// Returns the call that fills as the operator's infer and legalize see it.
OpCall counted(const OpRow& row, const OpCall& op) {
  const size_t more = row.sizes->left.size() + 1;
  const ShapeExpr* sizes = op.call.args.size() < more ? nullptr : op.call.args.back().as<ShapeExpr>();
  if (!sizes || sizes->values.size() != row.sizes->names.size())
    op.fail("expected R.shape([{}]) as the last argument", joined(row.sizes->names));
  OpCall result = op;
  result.sizes = &sizes->values;
  result.given = op.call.args.size() - more;
  return result;
}
Type infer_fill(const OpRow& row, const OpCall& op) {
  const OpCall inner = counted(row, op);
  Type result = row.infer(inner);
  std::vector<Type> left = types_left(row, inner);
  for (size_t i = 0; i < left.size(); ++i) {
    const size_t at = inner.given + i;
    if (op.dtype(at) != *tensor_dtype(left[i]) || op.rank(at) != known_rank(left[i]))
      op.fail("argument {} must be what {} leaves", at, part_name(row, "count"));
    require_same_dims(op, op.shape(at), *known_shape(left[i]), fmt::format("of {}", row.sizes->left[i].name));
  }
  return result;
}

OpRow row_that_counts(const OpRow& row) {
  OpRow result{.name = part_name(row, "count"),
               .doc = fmt::format("the sizes that R.{} finds: {}", row.name.substr(6), joined(row.sizes->names)),
               .inputs = row.inputs,
               .attrs = row.attrs,
               .infer = [row](const OpCall& op) { return infer_count(row, op); },
               .infer_partial = [](const OpCall&) { return object_type(); },
               .legalize = row.sizes->count,
               .complete = row.complete};
  for (const OpInput& left : row.sizes->left) result.doc += fmt::format("; and {}", left.doc);
  return result;
}
OpRow row_that_fills(const OpRow& row) {
  OpRow result{
      .name = part_name(row, "fill"),
      .doc = fmt::format("R.{} of sizes that R.{} found", row.name.substr(6), part_name(row, "count").substr(6)),
      .inputs = row.inputs,
      .attrs = row.attrs,
      .infer = [row](const OpCall& op) { return infer_fill(row, op); },
      .infer_partial = row.infer_partial,
      .legalize = [row](const OpCall& op) { return row.legalize(counted(row, op)); },
      .complete = row.complete};
  result.inputs.insert(result.inputs.end(), row.sizes->left.begin(), row.sizes->left.end());
  result.inputs.push_back({"sizes", "shape"});
  return result;
}

Expr decompose(const OpRow& row, const OpCall& op, Builder& b) {
  return call_parts(
      row, op.call.args, op.call.attrs,
      {.op = [&](const std::string& name, std::vector<Expr> args,
                 const Attrs& attrs) { return b.op(name, std::move(args), attrs); },
       .item = [&](const Expr& tuple, int64_t i) -> Expr { return b.emit(tuple_get(tuple, i)); },
       .size = [&](const Expr& sizes, int64_t i,
                   const char* name) { return b.op("inspect.tensor_item", {sizes}, TensorItemAttrs{i}, name); }});
}

}  // namespace

Expr call_parts(const OpRow& row, const std::vector<Expr>& args, const Attrs& attrs, const PartCalls& calls) {
  Expr found = calls.op(part_name(row, "count"), args, attrs);
  std::vector<Expr> filled = args, sizes;
  const bool leaves_more = !row.sizes->left.empty();
  for (size_t i = 0; i < row.sizes->left.size(); ++i) filled.push_back(calls.item(found, static_cast<int64_t>(i) + 1));
  Expr numbers = leaves_more ? calls.item(found, 0) : found;
  for (const char* name : row.sizes->names) sizes.push_back(calls.size(numbers, std::ssize(sizes), name));
  filled.push_back(shape_expr(sizes));
  return calls.op(part_name(row, "fill"), std::move(filled), attrs);
}

std::vector<OpRow> with_parts(OpRow row) {
  if (!row.sizes) return {std::move(row)};
  OpRow whole = row;
  whole.infer = [row](const OpCall& op) { return infer_uncounted(row, op); };
  whole.legalize = {};
  whole.decompose = [row](const OpCall& op, Builder& b) { return decompose(row, op, b); };
  return {std::move(whole), row_that_counts(row), row_that_fills(row)};
}

}  // namespace relaxc
