#include "ir/op.h"

#include <algorithm>

#include "ir/type_relation.h"
#include "ir/visit.h"
#include "vm/builtins.h"

namespace relaxc {

namespace {

[[noreturn]] void fail_unknown(const OpCall& op, const char* what, size_t i) {
  op.fail("the {} of argument {} is not known; give it with match_cast", what, i);
}

bool may_be_tensor(const Type& type) { return type.is<TensorType>() || type.is<ObjectType>(); }

}  // namespace

const std::vector<Expr>& OpCall::shape(size_t i) const {
  if (i >= call.args.size()) fail("expected at least {} arguments, got {}", i + 1, call.args.size());
  const std::vector<Expr>* dims = known_shape(call.args[i].type());
  bool unknown = may_be_tensor(call.args[i].type()) || call.args[i].type().is<ShapeType>();
  if (!dims && unknown) fail_unknown(*this, "shape", i);
  if (!dims) fail("argument {} is no tensor", i);
  return *dims;
}
int64_t OpCall::rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
DType OpCall::dtype(size_t i) const {
  if (i >= call.args.size()) fail("expected at least {} arguments, got {}", i + 1, call.args.size());
  std::optional<DType> dtype = tensor_dtype(call.args[i].type());
  if (!dtype && may_be_tensor(call.args[i].type())) fail_unknown(*this, "dtype", i);
  if (!dtype) fail("argument {} is no tensor", i);
  return *dtype;
}

std::string name_of_check(std::string_view what) {
  std::string name;
  for (char c : what) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
std::string what_of_check(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
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

namespace {

// The value as the kind spells it, or nothing when it is of another kind.
std::optional<AttrValue> as_kind(const AttrValue& value, AttrKind kind) {
  auto as = [&](auto target) -> std::optional<AttrValue> {
    if (!from_attr(value, target)) return std::nullopt;
    return to_attr(target);
  };
  switch (kind) {
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
    case AttrKind::kDType: {
      std::optional<DType> dtype;
      bool fits = from_attr(value, dtype) && !(dtype && dtype->is_handle());
      return fits ? std::optional(to_attr(dtype)) : std::nullopt;
    }
    case AttrKind::kInts:
      return as(std::vector<int64_t>{});
    case AttrKind::kFloats:
      return as(std::vector<double>{});
  }
  return std::nullopt;
}

// The items again and again until there are `count`, if that comes out even.
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
    if (const AttrValue* other = attr.like && absent ? call.attrs.find(attr.like) : nullptr) value = *other;
    if (attr.own && value == attr.otherwise) {
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
  return normal.attrs == call.attrs &&
         std::equal(normal.args.begin(), normal.args.end(), call.args.begin(), call.args.end(),
                    [](const Expr& a, const Expr& b) { return same_node(a, b); });
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
    auto attr = std::find_if(row.attrs.begin(), row.attrs.end(), [&](const OpAttr& a) { return key == a.name; });
    if (attr == row.attrs.end()) op.fail("unknown argument '{}'", key);
    if (!value.is_none() && !as_kind(value, attr->kind)) throw_bad_attr(op.span, attr->name, value);
    const std::string* choice = value.as<std::string>();
    const auto& known = attr->choices;
    if (choice && !known.empty() && std::find(known.begin(), known.end(), *choice) == known.end())
      op.fail("{} \"{}\", expected {}", attr->name, *choice, fmt::join(known, ", "));
  }
}

// ---- Operands of which not all is known
//
// infer() wants shapes and dtypes. A call with less is tried with stand-ins for what is missing: new dims, dims of 1,
// each of some ranks and dtypes. Its type is what all accepted tries agree on. Checks of dims are left to the call that
// knows them: nothing is lowered before shapes are known.

bool is_complete(const Type& type) {
  if (const TupleType* tuple = type.as<TupleType>())
    return std::all_of(tuple->items.begin(), tuple->items.end(), is_complete);
  if (type.is<TensorType>()) return known_shape(type) && tensor_dtype(type);
  return !type.is<ShapeType>() || known_shape(type);
}

class PartialInference {
 public:
  PartialInference(const OpCall& op, const OpRow& row) : op_(op), row_(row) {
    for (const Expr& arg : op.call.args) count_slots(arg.type());
  }

  Type run() {
    std::vector<Choice> rank_choices = choices(ranks_, std::size(kRanks));
    std::vector<Choice> dtype_choices = choices(dtypes_, std::size(kDTypes));
    std::optional<CompileError> first_error;
    for (const Choice& ranks : rank_choices) {
      for (const Choice& dtypes : dtype_choices) {
        try {
          Type result = attempt(ranks, dtypes, false);
          return vary(result, ranks, dtypes);
        } catch (const CompileError& error) {
          if (!first_error) first_error = error;
        }
      }
    }
    // Some ranks were left out when many operands lack one.
    if (ranks_ > kFewSlots || dtypes_ > kFewSlots) return object_type();
    throw CompileError(*first_error);
  }

 private:
  using Choice = std::vector<size_t>;  // a candidate for each slot
  static constexpr int64_t kRanks[] = {4, 2, 3, 1, 0, 5, 6};
  static constexpr DType kDTypes[] = {kFloat32, kInt64, kBool, DType::float_(16), kInt32, DType::int_(8)};
  static constexpr size_t kFewSlots = 2;

  void count_slots(const Type& type) {
    if (const TupleType* tuple = type.as<TupleType>()) {
      for (const Type& item : tuple->items) count_slots(item);
    }
    if (type.is<TensorType>() || type.is<ShapeType>()) ranks_ += !known_shape(type) && known_rank(type) < 0;
    dtypes_ += type.is<TensorType>() && !tensor_dtype(type);
  }
  // All combinations for few slots; for more, those where all slots, or all but the first, have the same candidate.
  static std::vector<Choice> choices(size_t slots, size_t candidates) {
    std::vector<Choice> result;
    if (slots == 0) return {{}};
    for (size_t c = 0; c < candidates; ++c) result.push_back(Choice(slots, c));
    if (slots == 1) return result;
    for (size_t rest = 0; rest < candidates; ++rest) {
      for (size_t c = 0; c < candidates; ++c) {
        result.push_back(Choice(slots, rest));
        result.back()[0] = c;
      }
    }
    return result;
  }

  Type stand_in(const Type& type, const Choice& ranks, const Choice& dtypes, bool ones, size_t& rank, size_t& dtype) {
    if (const TupleType* tuple = type.as<TupleType>()) {
      std::vector<Type> items;
      for (const Type& item : tuple->items) items.push_back(stand_in(item, ranks, dtypes, ones, rank, dtype));
      return tuple_type(std::move(items));
    }
    if (!type.is<TensorType>() && !type.is<ShapeType>()) return type;
    std::vector<Expr> shape;
    if (const std::vector<Expr>* known = known_shape(type)) {
      shape = *known;
    } else {
      int64_t ndim = known_rank(type) >= 0 ? known_rank(type) : kRanks[ranks[rank++]];
      for (int64_t d = 0; d < ndim; ++d) {
        if (ones) {
          shape.push_back(int_imm(1));
        } else {
          new_dims_.push_back(make_dim("d"));
          shape.push_back(new_dims_.back());
        }
      }
    }
    if (type.is<ShapeType>()) return shape_type(std::move(shape));
    std::optional<DType> known = tensor_dtype(type);
    return tensor_type(std::move(shape), known ? *known : kDTypes[dtypes[dtype++]]);
  }

  // The type with these stand-ins, without what mentions them.
  Type attempt(const Choice& ranks, const Choice& dtypes, bool ones) {
    new_dims_.clear();
    size_t rank = 0, dtype = 0;
    Call call = op_.call;
    for (Expr& arg : call.args) {
      if (!is_complete(arg.type())) arg = make_var("x", stand_in(arg.type(), ranks, dtypes, ones, rank, dtype));
    }
    return without_new_dims(row_.infer(OpCall{call, op_.span}));
  }
  Type without_new_dims(const Type& type) const {
    if (const TupleType* tuple = type.as<TupleType>()) {
      std::vector<Type> items;
      for (const Type& item : tuple->items) items.push_back(without_new_dims(item));
      return tuple_type(std::move(items));
    }
    bool mentions = false;
    for (const VarRef& var : free_vars(type)) {
      mentions = mentions || std::any_of(new_dims_.begin(), new_dims_.end(),
                                         [&](const VarRef& dim) { return same_node(dim, var); });
    }
    if (!mentions) return type;
    if (type.is<TensorType>()) return tensor_type_of_rank(known_rank(type), tensor_dtype(type));
    return type.is<ShapeType>() ? shape_type_of_rank(known_rank(type)) : object_type();
  }

  // What stays of the result when each slot alone, or all of a kind together, take other candidates.
  Type vary(Type result, const Choice& ranks, const Choice& dtypes) {
    auto also = [&](const Choice& r, const Choice& d, bool ones) {
      try {
        result = common_type(result, attempt(r, d, ones));
      } catch (const CompileError&) {
        return;  // not a call that this one stands for
      }
    };
    auto variations = [](const Choice& choice, size_t candidates, const auto& use) {
      for (size_t c = 0; c < candidates && !choice.empty(); ++c) {
        use(Choice(choice.size(), c));
        for (size_t slot = 0; slot < choice.size(); ++slot) {
          Choice other = choice;
          other[slot] = c;
          use(other);
        }
      }
    };
    also(ranks, dtypes, true);
    variations(ranks, std::size(kRanks), [&](const Choice& other) { also(other, dtypes, false); });
    variations(dtypes, std::size(kDTypes), [&](const Choice& other) { also(ranks, other, false); });
    return result;
  }

  const OpCall& op_;
  const OpRow& row_;
  size_t ranks_ = 0, dtypes_ = 0;  // slots: operands without a rank, without a dtype
  std::vector<VarRef> new_dims_;
};

// Tensors are where the operands are, when these have one device between them.
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
Type on_vdevice(const Type& type, const std::string& vdevice) {
  if (const TupleType* tuple = type.as<TupleType>()) {
    std::vector<Type> items;
    for (const Type& item : tuple->items) items.push_back(on_vdevice(item, vdevice));
    return tuple_type(std::move(items));
  }
  const TensorType* tensor = type.as<TensorType>();
  if (!tensor || !tensor->vdevice.empty()) return type;
  TensorType placed = *tensor;
  placed.vdevice = vdevice;
  return make(std::move(placed));
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

namespace {

// The operator that a pure builtin of the virtual machine carries out has its name and takes its arguments.
const OpRow* find_op_of_builtin(const Expr& callee, const OpTable& ops) {
  constexpr std::string_view kPrefix = "vm.builtin.";
  const ExternFunc* external = callee.as<ExternFunc>();
  const vm::Builtin* builtin = external ? vm::find_builtin(external->symbol) : nullptr;
  return builtin && builtin->pure ? ops.find("relax." + external->symbol.substr(kPrefix.size())) : nullptr;
}

}  // namespace

Type infer_call_type(const Call& call, const Span& span, const OpTable& ops, std::vector<DimCheck>* checks) {
  if (const OpRef* ref = call.callee.as<OpRef>()) {
    const OpRow* row = ops.find(ref->name);
    if (!row) fail_unsupported(span, "unknown operator '{}'", ref->name);
    OpCall op{call, span, checks};
    check_arity(op, *row);
    // The placement of distributed results is for the annotation to say, but where the operator is about it.
    bool distributed =
        std::any_of(call.args.begin(), call.args.end(), [](const Expr& arg) { return arg.type().is<DTensorType>(); });
    if (distributed) return ref->name.starts_with("relax.dist.") ? row->infer(op) : object_type();
    bool complete =
        std::all_of(call.args.begin(), call.args.end(), [](const Expr& arg) { return is_complete(arg.type()); });
    Type type = complete ? row->infer(op) : PartialInference(op, *row).run();
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
  std::unordered_set<const NodeHeader*> own;
  for (const Type& param : *type->params) {
    walk(param, [&](const Ref<Var>& var) { own.insert(var.get()); });
  }
  std::unordered_set<const NodeHeader*> given;
  for (const auto& [dim, value] : dims) {
    for (const VarRef& var : free_vars(value)) given.insert(var.get());
  }
  bool global = call.callee.is<GlobalVar>();
  std::vector<VarRef> known = free_vars(result);
  std::erase_if(known,
                [&](const VarRef& var) { return !given.contains(var.get()) && (global || own.contains(var.get())); });
  return without_unbound_dims(result, known);
}

}  // namespace relaxc
