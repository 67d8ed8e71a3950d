#include "ops/common.h"

#include <numeric>

#include "ir/op_names.h"
#include "support/checked_math.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"

namespace relaxc {

std::vector<Expr> broadcast_shapes(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return broadcast_shapes(a, b,
                          [&](const Expr& x, const Expr& y) { op.require_equal(x, y, "shapes do not broadcast"); });
}
std::vector<Expr> broadcast_shapes(const std::vector<Expr>& a, const std::vector<Expr>& b,
                                   const std::function<void(const Expr&, const Expr&)>& require_equal) {
  size_t rank = std::max(a.size(), b.size());
  std::vector<Expr> result;
  for (size_t d = 0; d < rank; ++d) {
    bool in_a = d + a.size() >= rank, in_b = d + b.size() >= rank;
    const Expr& x = in_a ? a[d + a.size() - rank] : b[d + b.size() - rank];
    const Expr& y = in_b ? b[d + b.size() - rank] : x;
    bool stretches = is_int(x, 1) || is_int(y, 1);
    if (!stretches) require_equal(x, y);
    result.push_back(is_int(x, 1) || (as_int(y) && !stretches) ? y : x);
  }
  return result;
}

Expr call_builtin(const std::string& name, std::vector<Expr> args, const Type& type) {
  args.insert(args.begin(), extern_func(name));
  return call(op_ref(ops::kCallPurePacked), std::move(args), {}, type, {}, {type});
}
Expr call_impure_builtin(const std::string& name, std::vector<Expr> args) {
  return call(extern_func(name), std::move(args), {}, tuple_type({}), {}, {tuple_type({})});
}

OpRow runtime_row(const char* name, const char* doc, std::vector<OpInput> inputs, Type (*infer)(const OpCall&),
                  std::vector<OpAttr> attrs, std::vector<Expr> (*arguments)(const OpCall&)) {
  std::string builtin = fmt::format("vm.builtin.{}", name);
  builtin[builtin.rfind('.')] = '_';
  return {.name = fmt::format("relax.{}", name),
          .doc = doc,
          .inputs = std::move(inputs),
          .attrs = std::move(attrs),
          .infer = infer,
          .infer_partial = infer,
          .decompose = [=](const OpCall& op, Builder&) {
            return call_builtin(builtin, arguments ? arguments(op) : op.call.args, infer(op));
          }};
}

std::vector<OpRow> with_reason(const char* why_runtime, std::vector<OpRow> rows) {
  for (OpRow& row : rows) row.why_runtime = why_runtime;
  return rows;
}

OpRow moving(OpRow row) {
  row.moves = true;
  return row;
}

Expr load_broadcast(const Buffer& buffer, Axes axes) {
  const std::vector<Expr>& shape = buffer_type(buffer).shape;
  std::vector<Expr> indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr& axis = axes[axes.size() - shape.size() + d];
    indices.push_back(is_int(shape[d], 1) ? int_imm(0, dtype_of(axis)) : axis);
  }
  return load(buffer, indices);
}

Stmt when(const Expr& condition, const Stmt& body) { return make(IfThenElse{condition, body, std::nullopt}); }
int64_t normalize_axis(const OpCall& op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) op.fail("axis {} is out of range for a tensor of rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}
std::vector<int64_t> normalize_axes(const OpCall& op, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    int64_t normalized = normalize_axis(op, axis, rank);
    if (contains(result, normalized)) op.fail("axis {} is given twice", axis);
    result.push_back(normalized);
  }
  return result;
}

std::vector<Expr> scalar_list(const OpCall& op, size_t i) {
  if (op.arg(i).type().is<ShapeType>()) return op.shape(i);
  const Tuple* tuple = op.arg(i).as<Tuple>();
  if (!tuple) op.fail("argument {} must be a shape or a tuple of scalars", i);
  std::vector<Expr> result;
  for (const Expr& item : tuple->items) {
    const PrimType* type = item.type().as<PrimType>();
    if (!type || !type->dtype.is_integral()) op.fail("argument {} holds an item that is not an integer", i);
    result.push_back(cast_to(item, kInt64));
  }
  return result;
}
std::vector<Type> tensor_list(const OpCall& op, size_t i) {
  const TupleType* type = op.arg(i).type().as<TupleType>();
  if (!type || type->items.empty()) op.fail("expected a tuple of tensors");
  for (size_t k = 0; k < type->items.size(); ++k) {
    if (!type->items[k].is<TensorType>()) op.fail("item {} of the tuple is not a tensor", k);
    if (!known_shape(type->items[k]) || !tensor_dtype(type->items[k]))
      op.fail("the shape or dtype of tensor {} is not known; give it with match_cast", k);
  }
  return type->items;
}
DType common_dtype(const OpCall& op, const std::vector<Type>& tensors) {
  DType first = *tensor_dtype(tensors[0]);
  for (const Type& tensor : tensors) {
    DType other = *tensor_dtype(tensor);
    if (first != other) op.fail("tensors have different dtypes: {} and {}", to_string(first), to_string(other));
  }
  return first;
}
std::vector<Buffer> inputs_of_tuple(ComputeBuilder& b, const OpCall& op) {
  if (op.arg(0).is<Tuple>()) return b.inputs_of(op);
  std::vector<Buffer> inputs;
  for (const Type& item : tensor_list(op, 0))
    inputs.push_back(b.input(fmt::format("input{}", inputs.size()), *tensor_dtype(item), *known_shape(item)));
  return inputs;
}
void require_rank(const OpCall& op, size_t i, int64_t rank) {
  if (op.rank(i) != rank) op.fail("argument {} has rank {}, expected {}", i, op.rank(i), rank);
}
void require_ranks(const OpCall& op, const std::vector<int64_t>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) require_rank(op, i, ranks[i]);
}
void require_same_dtype(const OpCall& op, size_t i, size_t j) {
  if (op.dtype(i) != op.dtype(j))
    op.fail("arguments {} and {} have different dtypes: {} and {}", i, j, to_string(op.dtype(i)),
            to_string(op.dtype(j)));
}
void require_scalar(const OpCall& op, size_t i) {
  if (!op.arg(i).type().is<PrimType>()) op.fail("argument {} must be a scalar", i);
}
void require_tensor(const OpCall& op) {
  if (!op.arg(0).type().is<TensorType>()) op.fail("expected a tensor");
}
DType product_dtype(const OpCall& op, std::optional<DType> out_dtype) {
  DType a = op.dtype(0), b = op.dtype(1);
  if (a.is_bool() || b.is_bool()) op.fail("expected numbers, got bool");
  bool widened = out_dtype && ((a.is_integral() && b.is_integral()) || (a.is_float() && b.is_float()));
  if (a != b && !widened) op.fail("arguments have different dtypes: {} and {}", to_string(a), to_string(b));
  return out_dtype.value_or(a);
}
void require_same_dims(const OpCall& op, const std::vector<Expr>& a, const std::vector<Expr>& b,
                       std::string_view what) {
  for (size_t d = 0; d < a.size(); ++d) op.require_equal(a[d], b[d], fmt::format("dim {} {}", d, what));
}
Type infer_like_first(const OpCall& op) { return tensor_type(op.shape(0), op.dtype(0)); }
Type infer_unranked(std::optional<DType> dtype) { return tensor_type_of_rank(-1, dtype); }
Type infer_same_rank(const OpCall& op, size_t i, std::optional<DType> dtype) {
  return tensor_type_of_rank(known_rank(op.arg(i).type()), dtype);
}
Type infer_unknown(const OpCall&) { return object_type(); }
Type infer_nothing(const OpCall&) { return tuple_type({}); }
Type infer_stated(const OpCall& op) {
  const std::vector<Type>& types = op.call.type_args;
  if (types.empty()) op.fail("the output type is missing");
  return types.size() == 1 ? types[0] : tuple_type(types);
}
Type infer_stated_dtype(const OpCall& op) {
  std::optional<DType> stated;
  for (const char* name : {"dtype", "out_dtype"}) {
    const AttrValue* value = op.call.attrs.find(name);
    if (value && from_attr(*value, stated) && stated) return infer_unranked(stated);
  }
  return infer_unranked(op.first_dtype());
}
Type infer_stated_dtype_same_rank(const OpCall& op) {
  return infer_same_rank(op, 0, tensor_dtype(infer_stated_dtype(op)));
}
PrimFuncRef compute_program(const OpCall& op, const std::string& name, const Type& result,
                            const std::function<Expr(Inputs, Axes)>& value) {
  auto [b, x] = OpProgram(op);
  return b.finish({b.compute(name, *tensor_dtype(result), *known_shape(result), [&](Axes i) { return value(x, i); })});
}

std::string stage_name(const std::string& op) { return "T_" + op.substr(op.rfind('.') + 1); }
OpRow impure(OpRow row) {
  row.pure = false;
  return row;
}
Buffer stored(ComputeBuilder& b, const char* name, DType dtype, const std::vector<Expr>& shape,
              const std::function<Expr(Axes)>& value) {
  Attrs annotations;
  annotations.set(annotation<"stored">(), true);
  return b.compute(name, dtype, shape, value, std::move(annotations));
}

OpRow by_element(OpRow row, Element element, OpPattern pattern, std::string stage) {
  if (stage.empty()) stage = stage_name(row.name);
  row.pattern = pattern;
  row.legalize = [=, infer = row.infer](const OpCall& op) {
    return compute_program(op, stage, infer(op), [&](Inputs x, Axes i) { return element(op, x, i); });
  };
  return row;
}

OpAttr& attr_of(std::vector<OpAttr>& attrs, std::string_view name) {
  auto found = std::ranges::find(attrs, name, &OpAttr::name);
  RELAXC_CHECK(found != attrs.end(), "no attribute '{}'", name);
  return *found;
}
std::vector<OpAttr> with_choices(std::vector<OpAttr> attrs, std::string_view name,
                                 std::vector<std::string_view> choices) {
  attr_of(attrs, name).choices = std::move(choices);
  return attrs;
}
std::vector<OpAttr> with_extension(std::vector<OpAttr> attrs, std::string_view name) {
  attr_of(attrs, name).is_extension = true;
  return attrs;
}
std::vector<OpAttr> with_default_from(std::vector<OpAttr> attrs, std::string_view name, const char* other) {
  attr_of(attrs, name).default_from = other;
  return attrs;
}

Stmt loop_nest(const std::vector<Expr>& extents, const std::function<Stmt(Axes)>& body) {
  std::vector<VarRef> vars;
  while (vars.size() < extents.size()) vars.push_back(make_dim(fmt::format("i{}", vars.size())));
  Stmt nest = body({vars.begin(), vars.end()});
  for (size_t d = vars.size(); d-- > 0;) nest = loop(vars[d], extents[d], nest);
  return nest;
}

Expr size_product(const OpCall& op, const Expr& a, const Expr& b) {
  auto x = as_int(a), y = as_int(b);
  if (x && y && !checked_mul(*x, *y)) op.fail("a size of {} * {} overflows", *x, *y);
  return simplify(a * b);
}
Expr size_sum(const OpCall& op, const Expr& a, const Expr& b) {
  auto x = as_int(a), y = as_int(b);
  if (x && y && !checked_add(*x, *y)) op.fail("a size of {} + {} overflows", *x, *y);
  return simplify(a + b);
}
Expr product(const std::vector<Expr>& dims) {
  Expr result = int_imm(1);
  for (const Expr& dim : dims) result = result * dim;
  return result;
}
Expr has_elements(const std::vector<Expr>& dims) {
  Expr result = bool_imm(true);
  for (const Expr& dim : dims) {
    if (as_int(dim).value_or(0) == 0) result = result && (int_imm(0) < dim);
  }
  return result;
}
std::vector<Expr> with_item(std::vector<Expr> list, int64_t at, Expr item) {
  list[at] = std::move(item);
  return list;
}
std::vector<Expr> with_new_item(std::vector<Expr> list, int64_t at, Expr item) {
  list.insert(list.begin() + at, std::move(item));
  return list;
}
std::vector<Expr> without_item(std::vector<Expr> list, int64_t at) {
  list.erase(list.begin() + at);
  return list;
}
std::vector<Expr> followed_by(std::vector<Expr> list, const std::vector<Expr>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}
std::vector<Expr> items_at(const std::vector<Expr>& list, const std::vector<int64_t>& positions) {
  return map_each(positions, [&](int64_t position) { return list[position]; });
}
std::vector<int64_t> int_range(int64_t first, int64_t end) {
  std::vector<int64_t> result(static_cast<size_t>(std::max<int64_t>(end - first, 0)));
  std::iota(result.begin(), result.end(), first);
  return result;
}
std::vector<Expr> int_imms(const std::vector<int64_t>& values) {
  return map_each(values, [&](int64_t value) { return int_imm(value); });
}
std::optional<std::vector<int64_t>> as_ints(const std::vector<Expr>& values) { return all_or_none(values, as_int); }

Expr flatten_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape) {
  Expr flat = int_imm(0);
  for (size_t d = 0; d < indices.size(); ++d) flat = flat * shape[d] + indices[d];
  return flat;
}

std::vector<Expr> unflatten_index(Expr flat, const std::vector<Expr>& shape) {
  std::vector<Expr> indices(shape.size(), int_imm(0));
  for (size_t d = shape.size(); d-- > 0;) {
    indices[d] = d == 0 ? flat : floor_mod(flat, shape[d]);
    flat = floor_div(flat, shape[d]);
  }
  return indices;
}

}  // namespace relaxc
