#include "ir/op.h"

#include <algorithm>

#include "ir/arith.h"
#include "ir/op_names.h"
#include "ir/type_relation.h"
#include "ir/visit.h"
#include "support/joined.h"
#include "support/lists.h"
#include "vm/builtins.h"

namespace relaxc {

namespace {

// infer asked for a rank or dtype that is not known. This is an error where a partial type does not suffice.
class UnknownOperand : public CompileError {
 public:
  using CompileError::CompileError;
};
[[noreturn]] void fail_unknown(const OpCall& op, const char* what, size_t i) {
  std::string message =
      fmt::format("{}: the {} of argument {} is not known; give it with match_cast", op.name(), what, i);
  throw UnknownOperand({{Severity::kError, ErrorKind::kInvalid, op.span, std::move(message), {}}});
}

bool may_be_tensor(const Type& type) { return type.is<TensorType>() || type.is<ObjectType>(); }

}  // namespace

const Type& OpCall::type(size_t i) const {
  if (i >= call.args.size()) fail("expected at least {} arguments, got {}", i + 1, call.args.size());
  return call.args[i].type();
}
const std::vector<Expr>& OpCall::shape(size_t i) const {
  if (const std::vector<Expr>* dims = known_shape(type(i))) return *dims;
  if (may_be_tensor(type(i)) || type(i).is<ShapeType>()) fail_unknown(*this, "shape", i);
  fail("argument {} is not a tensor", i);
}
int64_t OpCall::rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
DType OpCall::dtype(size_t i) const {
  if (std::optional<DType> dtype = tensor_dtype(type(i))) return *dtype;
  if (may_be_tensor(type(i))) fail_unknown(*this, "dtype", i);
  fail("argument {} is not a tensor", i);
}

std::optional<DType> OpCall::first_dtype() const {
  for (const Expr& arg : call.args) {
    const TupleType* tuple = arg.type().as<TupleType>();
    const Type& type = tuple && !tuple->items.empty() ? tuple->items[0] : arg.type();
    if (type.is<TensorType>()) return tensor_dtype(type);
  }
  return std::nullopt;
}

int64_t ReferenceCall::number(size_t i) const { return as_int(simplify(call.args.at(i))).value(); }
std::vector<int64_t> ReferenceCall::dims(size_t i) const {
  return map_each(call.args.at(i).as<ShapeExpr>()->values,
                  [](const Expr& dim) { return as_int(simplify(dim)).value(); });
}

std::string name_of_check(std::string_view what) {
  std::string name;
  for (char c : what) {
    bool is_kept = std::isalnum(static_cast<unsigned char>(c));
    if (c == '_') {
      name += "__";
    } else if (is_kept || !name.ends_with('_')) {
      name += is_kept ? c : '_';
    }
  }
  return name;
}
std::string what_of_check(std::string name) {
  std::string what;
  for (size_t i = 0; i < name.size(); ++i) {
    bool is_escaped = name[i] == '_' && i + 1 < name.size() && name[i + 1] == '_';
    what += name[i] != '_' ? name[i] : is_escaped ? '_' : ' ';
    i += is_escaped;
  }
  return what;
}

void OpCall::require_equal(const Expr& a, const Expr& b, std::string_view what) const {
  Verdict verdict = equal_dims(a, b);
  auto shown = [](const Expr& dim) {
    auto known = as_int(dim);
    return known ? std::to_string(*known) : debug_print(dim);
  };
  if (verdict == Verdict::kContradicted) fail("{}: {} and {}", what, shown(a), shown(b));
  if (verdict == Verdict::kPossible && checks) checks->push_back({a, b, std::string(what)});
}
void OpCall::require_at_most(const Expr& a, const Expr& b, std::string_view what) const {
  const auto found = as_int(simplify(a)), most = as_int(simplify(b));
  if (found && most && *found > *most) fail("{}: {} is more than {}", what, *found, *most);
  require_equal(simplify(min(a, b)), a, what);
}
void OpCall::require_multiple(const Expr& a, int64_t factor, std::string_view what) const {
  auto known = as_int(a);
  if (known && *known % factor != 0) fail("{}: {} and {}", what, *known, factor);
  if (!known) require_equal(simplify(floor_mod(a, factor)), int_imm(0, dtype_of(a)), what);
}

OpTable::OpTable(std::vector<OpRow> rows) : rows_(std::move(rows)) {
  std::ranges::sort(rows_, {}, &OpRow::name);
  for (const OpRow& row : rows_)
    RELAXC_CHECK(by_name_.emplace(row.name, &row).second, "operator '{}' has two rows", row.name);
}
const OpRow* OpTable::find(std::string_view name) const { return copy_value(by_name_, name).value_or(nullptr); }

namespace {

// Returns the value as the kind spells it, or nothing when it is of another kind.
std::optional<AttrValue> as_kind(const AttrValue& value, AttrKind kind) {
  if (kind == AttrKind::kAny) return value;
  std::optional<AttrValue> result;
  auto read_as = [&](auto target) {
    if (attr_kind<decltype(target)>() == kind && from_attr(value, target)) result = to_attr(target);
  };
  std::apply([&](auto... targets) { (read_as(targets), ...); },
             std::tuple<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>());
  std::optional<DType> dtype;
  bool is_dtype = kind == AttrKind::kDType && from_attr(value, dtype) && !(dtype && dtype->is_handle());
  return is_dtype ? to_attr(dtype) : result;
}

// Repeats the items until there are `count` of them, if `count` is a multiple of their number.
template <class T>
std::vector<T> repeated(std::vector<T> items, size_t count) {
  if (items.empty() || items.size() >= count || count % items.size() != 0) return items;
  for (size_t i = 0; items.size() < count; ++i) items.push_back(T(items[i]));
  return items;
}
// None is the default of a flag, and "void" of a dtype.
AttrValue normalize_attr(const OpAttr& attr, const AttrValue& value) {
  AttrValue result = value.is_none() ? value : as_kind(value, attr.kind).value_or(value);
  if (result.is_none() && attr.kind == AttrKind::kBool) return attr.otherwise;
  if (result.is_none() && attr.kind == AttrKind::kDType) return "void";
  const AttrList* list = result.as<AttrList>();
  return list ? repeated(*list, attr.items) : result;
}

}  // namespace

AttrValue to_attr(const DeviceMesh& mesh) {
  return Attrs{{"R.device_mesh", AttrList{to_attr(mesh.shape), to_attr(mesh.devices)}}};
}
bool from_attr(const AttrValue& value, DeviceMesh& mesh) {
  const Attrs* term = value.as<Attrs>();
  const AttrValue* parts = term ? term->find("R.device_mesh") : nullptr;
  const AttrList* lists = parts ? parts->as<AttrList>() : nullptr;
  return lists && lists->size() == 2 && from_attr((*lists)[0], mesh.shape) && from_attr((*lists)[1], mesh.devices);
}

Call normalize_call(const OpRow& row, Call call) {
  std::vector<const char*> order;
  for (const OpAttr& attr : row.attrs) {
    const AttrValue* given = call.attrs.find(attr.name);
    AttrValue value = normalize_attr(attr, given ? *given : attr.otherwise);
    bool absent = value.is_none() || (value.as<std::string>() && value.as<std::string>()->empty());
    if (const AttrValue* other = attr.default_from && absent ? call.attrs.find(attr.default_from) : nullptr)
      value = *other;
    if (attr.is_extension && value == attr.otherwise) {
      if (given) call.attrs = call.attrs.without(attr.name);
      continue;
    }
    call.attrs.set(attr.name, std::move(value));
    order.push_back(attr.name);
  }
  call.attrs.order(std::move(order));
  if (row.complete) row.complete(call);
  for (size_t i = 0; i < call.args.size() && i < row.inputs.size(); ++i) {
    const OpInput& input = row.inputs[i];
    const ShapeExpr* shape = call.args[i].as<ShapeExpr>();
    if (!shape) continue;
    std::vector<Expr> values = shape->values;  // the argument may be the last to hold them
    if (input.form == OpInput::Form::kScalars) call.args[i] = tuple(values, call.args[i].span());
    if (input.items > values.size()) call.args[i] = shape_expr(repeated(values, input.items), call.args[i].span());
  }
  return call;
}

bool is_normal(const OpRow& row, const Call& call) {
  Call normal = normalize_call(row, call);
  return normal.attrs == call.attrs && std::ranges::equal(normal.args, call.args, same_node);
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
    auto attr = std::ranges::find(row.attrs, std::string_view(key), &OpAttr::name);
    if (attr == row.attrs.end()) op.fail("unknown argument '{}'", key);
    if (!value.is_none() && !as_kind(value, attr->kind)) throw_bad_attr(op.span, attr->name, attr->kind, value);
    const std::string* choice = value.as<std::string>();
    const auto& known = attr->choices;
    if (choice && !known.empty() && std::ranges::find(known, *choice) == known.end())
      op.fail("{} \"{}\", expected {}", attr->name, *choice, joined(known));
  }
}

// ---- Operands with unknown ranks, dtypes or dims

enum class Known : uint8_t { kAll, kAllButDims, kSome, kSomeOfTuple };
Known known_of(const OpCall& op) {
  Known result = Known::kAll;
  for (const Expr& arg : op.call.args) {
    Known least = arg.type().is<TupleType>() ? Known::kSomeOfTuple : Known::kSome;
    map_items(arg.type(), [&](const Type& type) {
      bool has_dtype = !type.is<TensorType>() || tensor_dtype(type);
      bool is_known = (has_dtype && known_shape(type)) || !(type.is<TensorType>() || type.is<ShapeType>());
      bool only_dims = has_dtype && known_rank(type) >= 0;
      if (!is_known) result = std::max(result, only_dims ? Known::kAllButDims : least);
      return type;
    });
  }
  return result;
}

// Returns the type with new variables, which are added to `added`, in place of dims that are not known.
Type with_new_dims(const Type& whole, VarSet& added) {
  return map_items(whole, [&](const Type& type) {
    if (known_shape(type) || !(type.is<TensorType>() || type.is<ShapeType>())) return type;
    std::vector<Expr> shape;
    for (int64_t d = 0; d < known_rank(type); ++d) added.insert(shape.emplace_back(make_dim("d")).get());
    return type.is<ShapeType>() ? shape_type(std::move(shape)) : tensor_type(std::move(shape), *tensor_dtype(type));
  });
}

// Infers the type where ranks and dtypes are known and some dims are not: these become variables. Checks of dims are
// left to the call with known dims.
Type infer_for_any_dims(const OpCall& op, const OpRow& row) {
  VarSet added;
  Call call = op.call;
  for (Expr& arg : call.args) {
    Type type = with_new_dims(arg.type(), added);
    if (!structural_equal(type, arg.type())) arg = make_var("x", type);
  }
  Type result = row.infer(OpCall{call, op.span});
  return without_dims(result, [&](const VarRef& var) { return added.contains(var.get()); });
}

// infer requests each rank and dtype that it needs. If these are known, its type is right whatever the others are.
Type infer_result(const OpCall& op, const OpRow& row) {
  Known known = known_of(op);
  if (known == Known::kAll) return row.infer(op);
  if (known == Known::kAllButDims && !(row.needs_dims && row.needs_dims(op))) return infer_for_any_dims(op, row);
  try {
    if (known == Known::kSome) return row.infer(op);
  } catch (const UnknownOperand&) {  // only this: other errors are the user's
  }
  return row.infer_partial ? row.infer_partial(op) : tensor_type_of_rank(-1, op.first_dtype());
}

// A result is on the device of the operands, when they share one.
std::string common_vdevice(const Call& call) {
  std::string result;
  for (const Expr& arg : call.args) {
    const TensorType* type = arg.type().as<TensorType>();
    if (!type || type->vdevice.empty()) continue;
    if (!result.empty() && result != type->vdevice) return {};
    result = type->vdevice;
  }
  return result;
}
Type on_vdevice(const Type& whole, const std::string& vdevice) {
  return map_items(whole, [&](const Type& type) {
    const TensorType* tensor = type.as<TensorType>();
    if (!tensor || !tensor->vdevice.empty()) return type;
    TensorType placed = *tensor;
    placed.vdevice = vdevice;
    return Type(make(std::move(placed)));
  });
}

}  // namespace

bool is_pure(const Call& call, const OpTable& ops) {
  bool by_operator = call.callee.is<OpRef>() && !call.args.empty() && call.args[0].is<ExternFunc>();
  const Expr& callee = by_operator ? call.args[0] : call.callee;
  const FuncType* type = callee.type().as<FuncType>();
  if (!call.callee.is<OpRef>()) return type && type->pure;
  const OpRow* row = ops.find(call.callee.as<OpRef>()->name);
  return row && (row->pure || (by_operator && type && type->pure));
}

// A pure builtin of the virtual machine has the name and the arguments of the operator that it implements.
static const OpRow* find_op_of_builtin(const Expr& callee, const OpTable& ops) {
  constexpr std::string_view kPrefix = "vm.builtin.";
  const ExternFunc* external = callee.as<ExternFunc>();
  const vm::Builtin* builtin = external ? vm::find_builtin(external->symbol) : nullptr;
  return builtin && builtin->pure ? ops.find("relax." + external->symbol.substr(kPrefix.size())) : nullptr;
}

// Throws an error where the type, or that of an item of it, has complex elements, with which the operator computes.
static void refuse_complex(const OpCall& op, const Type& whole, std::string_view role) {
  map_items(whole, [&](const Type& type) {
    const std::optional<DType> dtype = type.is<TensorType>() ? tensor_dtype(type) : std::nullopt;
    if (dtype && dtype->is_complex())
      op.unsupported(
          "{} is of {}, and the operator computes; complex numbers are only moved: compute with their real "
          "and imaginary parts, a last dim of 2 of {}",
          role, to_string(*dtype), to_string(dtype->part()));
    return type;
  });
}

Type infer_call_type(const Call& call, const Span& span, const OpTable& ops, std::vector<DimCheck>* checks) {
  if (const OpRef* ref = call.callee.as<OpRef>()) {
    const OpRow* row = ops.find(ref->name);
    if (!row) fail_unsupported(span, "unknown operator '{}'", ref->name);
    OpCall op{call, span, checks};
    check_arity(op, *row);
    // Distributed results take their placement from the annotation, except where the operator defines it.
    bool distributed = std::ranges::any_of(call.args, [](const Expr& arg) { return arg.type().is<DTensorType>(); });
    if (distributed) return ops::is_distributed_op(ref->name) ? row->infer(op) : object_type();
    for (size_t i = 0; !row->moves && i < call.args.size(); ++i)
      refuse_complex(op, call.args[i].type(), fmt::format("argument {}", i));
    Type type = infer_result(op, *row);
    if (!row->moves) refuse_complex(op, type, "the result");
    std::string vdevice = call.type_args.empty() ? common_vdevice(call) : "";
    return vdevice.empty() ? type : on_vdevice(type, vdevice);
  }
  if (!call.type_args.empty()) return call.type_args.size() == 1 ? call.type_args[0] : tuple_type(call.type_args);
  if (const OpRow* row = find_op_of_builtin(call.callee, ops))
    return infer_call_type(Call{op_ref(row->name), call.args, {}, {}}, span, ops, checks);
  const FuncType* type = call.callee.type().as<FuncType>();
  if (!type) return object_type();
  if (!type->params) return type->result;
  if (type->params->size() != call.args.size())
    fail(span, "expected {} arguments, got {}", type->params->size(), call.args.size());
  // Dims of the callee's params take the caller's values.
  VarMap dims;
  for (size_t i = 0; i < call.args.size(); ++i) bind_dims((*type->params)[i], call.args[i].type(), dims);
  Type result = substitute(type->result, dims);
  // A function of the module shares no dims with its caller; a closure may.
  VarSet of_params, given;
  for (const Type& param : *type->params) walk(param, [&](const Ref<Var>& var) { of_params.insert(var.get()); });
  for (const auto& [dim, value] : dims) {
    for (const VarRef& var : free_vars(value)) given.insert(var.get());
  }
  bool global = call.callee.is<GlobalVar>();
  return without_dims(result, [&](const VarRef& var) {
    return !given.contains(var.get()) && (global || of_params.contains(var.get()));
  });
}

}  // namespace relaxc
