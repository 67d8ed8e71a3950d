#include "ir/op.h"

#include <algorithm>

#include "ir/arith.h"
#include "ir/visit.h"

namespace relaxc {

const std::vector<Expr>& OpCall::shape(size_t i) const {
  if (i >= call.args.size()) fail("expected at least {} arguments, got {}", i + 1, call.args.size());
  const std::vector<Expr>* dims = known_shape(call.args[i].type());
  if (!dims) fail("the shape of argument {} is not known; give it with match_cast", i);
  return *dims;
}
int64_t OpCall::rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
DType OpCall::dtype(size_t i) const {
  if (i >= call.args.size()) fail("expected at least {} arguments, got {}", i + 1, call.args.size());
  std::optional<DType> dtype = tensor_dtype(call.args[i].type());
  if (!dtype) fail("the dtype of argument {} is not known; give it with match_cast", i);
  return *dtype;
}

void OpCall::require_equal(const Expr& a, const Expr& b, std::string_view what) const {
  if (structural_equal(a, b)) return;
  auto difference = as_int(simplify(cast_to(a, kInt64) - cast_to(b, kInt64)));
  auto shown = [](const Expr& dim) {
    auto known = as_int(dim);
    return known ? std::to_string(*known) : debug_print(dim);
  };
  if (difference && *difference != 0) fail("{}: {} and {}", what, shown(a), shown(b));
  if (!difference && checks) checks->push_back({a, b});
}
void OpCall::require_at_most(const Expr& a, const Expr& b, std::string_view what) const {
  require_equal(simplify(min(a, b)), a, what);
}
void OpCall::require_multiple(const Expr& a, int64_t factor, std::string_view what) const {
  auto known = as_int(a);
  if (known && *known % factor != 0) fail("{}: {} and {}", what, *known, factor);
  if (!known) require_equal(simplify(floor_mod(a, factor)), int_imm(0, dtype_of(a)), what);
}

OpTable::OpTable(std::vector<OpRow> rows) : rows_(std::move(rows)) {
  std::sort(rows_.begin(), rows_.end(), [](const OpRow& a, const OpRow& b) { return a.name < b.name; });
  for (const OpRow& row : rows_) CHECK(by_name_.emplace(row.name, &row).second, "operator '{}' has two rows", row.name);
}
const OpRow* OpTable::find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

AttrValue normalize_attr(const OpAttr& attr, const AttrValue& value) {
  if (value.is_none()) return value;
  auto as = [&](auto target) -> AttrValue { return from_attr(value, target) ? to_attr(target) : value; };
  switch (attr.kind) {
    case AttrKind::kAny:
      return value;
    case AttrKind::kBool:
      return as(bool{});
    case AttrKind::kInt:
      return as(int64_t{});
    case AttrKind::kFloat:
      return as(double{});
    case AttrKind::kString:
      return as(std::string{});
    case AttrKind::kDType:
      return as(DType{});
    case AttrKind::kInts:
      return as(std::vector<int64_t>{});
  }
  return value;
}
Attrs normalize_attrs(const OpRow& row, const Attrs& attrs) {
  Attrs result = attrs;
  for (const OpAttr& attr : row.attrs) {
    if (const AttrValue* value = attrs.find(attr.name)) result.set(attr.name, normalize_attr(attr, *value));
  }
  return result;
}

namespace {

void check_arity(const OpCall& op, const OpRow& row) {
  size_t least = 0, most = 0;
  for (const OpInput& input : row.inputs) {
    if (input.arity == OpInput::Arity::kOne) ++least;
    ++most;
    if (input.arity == OpInput::Arity::kVariadic) most = SIZE_MAX;
  }
  if (op.size() < least || op.size() > most) {
    op.fail("expected {}{} arguments, got {}", least,
            most == least      ? ""
            : most == SIZE_MAX ? " or more"
                               : fmt::format(" to {}", most),
            op.size());
  }
  for (const auto& [key, value] : op.call.attrs) {
    bool known = std::any_of(row.attrs.begin(), row.attrs.end(), [&](const OpAttr& attr) { return key == attr.name; });
    if (!known) op.fail("unknown attribute '{}'", key);
  }
}

}  // namespace

Type infer_call_type(const Call& call, const Span& span, const OpTable& ops, std::vector<DimCheck>* checks) {
  if (const OpRef* ref = call.callee.as<OpRef>()) {
    const OpRow* row = ops.find(ref->name);
    if (!row) fail_unsupported(span, "unknown operator '{}'", ref->name);
    OpCall op{call, span, checks};
    check_arity(op, *row);
    return row->infer(op);
  }
  if (!call.type_args.empty()) return call.type_args.size() == 1 ? call.type_args[0] : tuple_type(call.type_args);
  const FuncType* type = call.callee.type().as<FuncType>();
  if (!type) return object_type();
  if (!type->params) return type->result;
  if (type->params->size() != call.args.size())
    fail(span, "expected {} arguments, got {}", type->params->size(), call.args.size());
  // Dims of the callee's params take the caller's values.
  VarMap dims;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const std::vector<Expr>* wanted = known_shape((*type->params)[i]);
    const std::vector<Expr>* given = known_shape(call.args[i].type());
    if (!wanted || !given || wanted->size() != given->size()) continue;
    for (size_t d = 0; d < wanted->size(); ++d) {
      if ((*wanted)[d].is<Var>()) dims.emplace((*wanted)[d].get(), (*given)[d]);
    }
  }
  return substitute(type->result, dims);
}

}  // namespace relaxc
