// Values of graph functions from the syntax tree: the call forms of Relax, and operators. Constants: parse_constant.cc.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/arith.h"
#include "ir/text/parsing.h"
#include "support/checked_math.h"

namespace relaxc::text {

// ---- Values

// A leaf in an argument's place.
Expr Parser::as_argument(const Syntax& at) {
  std::optional<Type> wanted = std::exchange(wanted_, std::nullopt);
  Expr result = leaf(eval(at), at);
  wanted_ = wanted;
  return result;
}

Value Parser::tensor_operator(std::string_view op, Value a, Value b, const Syntax& at) {
  constexpr std::pair<std::string_view, const char*> kSugar[] = {
      {"+", "relax.add"},           {"-", "relax.subtract"},    {"*", "relax.multiply"}, {"/", "relax.divide"},
      {"//", "relax.floor_divide"}, {"%", "relax.mod"},         {"**", "relax.power"},   {"@", "relax.matmul"},
      {"<", "relax.less"},          {"<=", "relax.less_equal"}, {">", "relax.greater"},  {">=", "relax.greater_equal"},
      {"==", "relax.equal"},        {"!=", "relax.not_equal"}};
  // A number beside a tensor is a constant of the tensor's dtype.
  auto lift = [&](Value& value, const Value& other) {
    if (!value.expr.type().is<PrimType>()) return;
    std::optional<DType> dtype = tensor_dtype(other.expr.type());
    if (!value.literal || !dtype) fail(at, "expected tensors on both sides of '{}'", op);
    Expr scalar = adapt(value, *dtype, at);
    Tensor data = Tensor::empty({}, *dtype);
    if (const IntImm* imm = scalar.as<IntImm>()) data.set_int(0, imm->value);
    if (const FloatImm* imm = scalar.as<FloatImm>()) data.set_double(0, imm->value);
    value = {relaxc::constant(data, span(at))};
  };
  lift(a, b);
  lift(b, a);
  for (const auto& [symbol, name] : kSugar) {
    if (op != symbol) continue;
    Call call{op_ref(name), {leaf(a, at), leaf(b, at)}, {}, {}};
    return typed_call(std::move(call), at);
  }
  fail(at, "'{}' of tensors", op);
}

std::vector<Type> Parser::type_list(const Syntax& at) {
  std::vector<Type> result;
  for (const Syntax* item : items(at)) result.push_back(type(*item));
  return result;
}
void Parser::set_type_args(const Syntax& at, Call& call) {
  const Syntax* types = keyword(at, "sinfo_args");
  if (types && types->text != "None") call.type_args = type_list(*types);
}

// The tensor's dims in terms of the signature's, which are not negative.
Type Parser::with_dim_facts(Type type) const {
  const TensorType* tensor = type.as<TensorType>();
  const std::vector<Expr>* shape = tensor ? known_shape(type) : nullptr;
  auto simple = [](const Expr& dim) { return dim.is<IntImm>() || dim.is<Var>(); };
  if (!shape || std::all_of(shape->begin(), shape->end(), simple)) return type;
  Analyzer facts;
  for (const VarRef& var : free_vars(type)) {
    const Entity* entity = scopes_.find(var->name);
    if (entity && entity->is_dim && entity->expr && same_node(*entity->expr, var))
      facts.bind(var, Interval{0, std::numeric_limits<int64_t>::max()});
  }
  std::vector<Expr> dims;
  for (const Expr& dim : *shape) {
    Expr known = facts.simplify(dim);
    dims.push_back(structural_equal(known, simplify(dim)) ? dim : known);
  }
  TensorType result = *tensor;
  result.shape = shape_expr(std::move(dims));
  return make(std::move(result));
}

// The call with its inferred type; the annotation's where nothing can be inferred.
Value Parser::typed_call(Call call, const Syntax& at) {
  std::optional<Type> wanted = std::exchange(wanted_, std::nullopt);
  const GlobalVar* callee = call.callee.as<GlobalVar>();
  const Expr* target = callee ? module_.find(callee->name) : nullptr;
  bool kernel = target && target->is<PrimFunc>();  // it writes to its arguments
  const OpRef* op = call.callee.as<OpRef>();
  if (const OpRow* row = op ? ops_.find(op->name) : nullptr) call = normalize_call(*row, std::move(call));
  Type result = kernel ? tuple_type({}) : infer_call_type(call, span(at), ops_);
  if (call.type_args.empty()) result = with_dim_facts(result);
  if (wanted && result.is<ObjectType>()) result = *wanted;
  return {make(std::move(call), result, span(at))};
}

Value Parser::function_call(Expr callee, const Syntax& at) {
  check_keywords(at, {"sinfo_args"});
  Call call{callee, {}, {}, {}};
  for (size_t i = 1; i < at.children.size(); ++i) call.args.push_back(as_argument(*at.children[i]));
  set_type_args(at, call);
  return typed_call(std::move(call), at);
}

// A function in an argument's place: a name in quotes is an external one.
Expr Parser::callee(const Syntax& at) {
  if (at.kind == SyntaxKind::kString) return extern_func(string(at), span(at));
  return as_argument(at);
}

// R.call_packed("symbol", args..., sinfo_args=(...)) and its kin, whose further keywords are attributes.
Value Parser::packed_call(const std::string& form, const Syntax& at) {
  Expr function = callee(required(at, 0, "func"));
  bool wrapped = form != "R.call_packed";
  Call call{wrapped ? op_ref("relax." + form.substr(2)) : function, {}, {}, {}};
  if (wrapped) call.args.push_back(function);
  for (size_t i = 2; i < at.children.size(); ++i) call.args.push_back(as_argument(*at.children[i]));
  for (const Keyword& keyword : at.keywords) {
    if (!is_type_argument(keyword.name)) call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  set_type_args(at, call);
  return typed_call(std::move(call), at);
}

// R.invoke_closure(f, (x, y), sinfo_args=...) and its kin: a function and a tuple of arguments.
Value Parser::applied_call(const std::string& form, const Syntax& at) {
  check_keywords(at, {"func", "closure", "args", "sinfo_args", "out_sinfo"});
  const char* first = form == "R.invoke_closure" || form == "R.invoke_pure_closure" ? "closure" : "func";
  Call call{op_ref("relax." + form.substr(2)), {callee(required(at, 0, first))}, {}, {}};
  const Syntax& given = required(at, 1, "args");
  Expr args = as_argument(given);
  if (!args.type().is<TupleType>() && !args.type().is<ObjectType>()) args = tuple({args}, span(given));
  call.args.push_back(args);
  set_type_args(at, call);
  if (const Syntax* types = arg(at, 2, "out_sinfo")) call.type_args = type_list(*types);
  return typed_call(std::move(call), at);
}

// R.hint_on_device(x, R.device(1, 0), "global"); the device may be R.cpu(0) or tvm.cuda(0) too.
Value Parser::hint_on_device(const std::string&, const Syntax& at) {
  constexpr std::pair<std::string_view, int64_t> kDevices[] = {{"cpu", 1},    {"cuda", 2},    {"opencl", 4},
                                                               {"vulkan", 7}, {"metal", 8},   {"vpi", 9},
                                                               {"rocm", 10},  {"webgpu", 15}, {"hexagon", 16}};
  const Syntax* given = arg(at, 1, "dst_vdevice");
  if (!given) given = arg(at, 1, "device");
  if (!given || given->kind != SyntaxKind::kCall) return operator_call(*ops_.find("relax.hint_on_device"), at);
  const Syntax& named = *given->children[0];
  bool is_device = named.text == "device";
  std::optional<int64_t> type;
  if (is_device) {
    const Syntax& stated = required(*given, 0, "dev_type");
    if (stated.kind != SyntaxKind::kString) type = constant_int(stated);
  }
  std::string kind = is_device && !type ? string(required(*given, 0, "dev_type")) : std::string(named.text);
  for (const auto& [name, number] : kDevices) {
    if (!type && kind == name) type = number;
  }
  if (!type) fail(*given, "expected a device, such as R.device(1, 0) or R.cpu(0)");
  const Syntax* index = is_device ? arg(*given, 1, "dev_id") : arg(*given, 0, "dev_id");
  Call call{op_ref("relax.hint_on_device"), {as_argument(required(at, 0, "data"))}, {}, {}};
  call.attrs.set("device_type", *type);
  call.attrs.set("index", index ? constant_int(*index) : int64_t{0});
  const Syntax* scope = arg(at, 2, "memory_scope");
  call.attrs.set("memory_scope", scope ? string(*scope) : "global");
  return typed_call(std::move(call), at);
}

namespace {

// Where the arguments of the forms of call_tir stand.
struct CallTirForm {
  std::string_view name;
  int outputs, scalars, attributes;  // position; attributes: of the first
  std::vector<std::string_view> attribute_names;
};
const std::vector<CallTirForm>& call_tir_forms() {
  static const std::vector<CallTirForm> kForms = {
      {"R.call_dps_packed", 2, 3, 3, {}},
      {"R.call_tir", 2, 3, 3, {}},
      {"R.call_tir_inplace", 3, 4, 2, {"inplace_indices"}},
      {"R.call_tir_with_grad", 2, 5, 3, {"te_grad_name", "te_grad_kwargs"}},
      {"R.dist.call_tir_local_view", 2, 3, 3, {}},
  };
  return kForms;
}

}  // namespace

// The form of 2022 gives shapes and dtypes: (m, k), dtype="float32", or lists of both.
std::vector<Type> Parser::early_outputs(const Syntax& shapes, const Syntax& dtypes) {
  std::vector<const Syntax*> several = {&shapes}, of = {&dtypes};
  bool nested = !shapes.children.empty() &&
                (shapes.children[0]->kind == SyntaxKind::kTuple || shapes.children[0]->kind == SyntaxKind::kList);
  if (nested) several = items(shapes);
  if (dtypes.kind == SyntaxKind::kTuple || dtypes.kind == SyntaxKind::kList) of = items(dtypes);
  if (of.size() != 1 && of.size() != several.size()) fail(dtypes, "{} dtypes for {} shapes", of.size(), several.size());
  std::vector<Type> result;
  for (size_t i = 0; i < several.size(); ++i)
    result.push_back(
        relaxc::tensor_type(graph_dims(*several[i]), dtype(*of[of.size() == 1 ? 0 : i]), span(*several[i])));
  return result;
}

Value Parser::call_tir(const std::string& name, const Syntax& at) {
  const auto form = std::find_if(call_tir_forms().begin(), call_tir_forms().end(),
                                 [&](const CallTirForm& row) { return row.name == name; });
  // Other keywords are attributes, unless they are near to one of its own.
  std::vector<std::string> known = {"args", "dtype", "func", "gvar", "out_sinfo", "out_ty", "shape", "tir_vars"};
  known.insert(known.end(), form->attribute_names.begin(), form->attribute_names.end());
  bool sound = true;
  for (const Keyword& keyword : at.keywords) {
    std::optional<std::string> near = nearest(keyword.name, known);
    if (!near || *near == keyword.name) continue;
    report_keyword(keyword, fmt::format("unknown argument '{}'", keyword.name), near);
    sound = false;
  }
  size_t most = static_cast<size_t>(std::max(form->scalars, form->outputs)) + 1;
  if (positional(at) > most)
    report(*at.children[most + 1], "{} takes {} arguments, got {}", name, most, positional(at));
  const Syntax& function = required(at, 0, "func");
  const Syntax* dtypes = keyword(at, "dtype");
  bool early = dtypes && form->name == "R.call_tir", by_symbol = function.kind == SyntaxKind::kString;
  bool packed = name == "R.call_dps_packed" || (early && by_symbol);
  const std::string* bare = early && function.kind == SyntaxKind::kName ? function_named(function.text) : nullptr;
  Expr program = packed && by_symbol ? callee(function)
                 : bare              ? global_var(*bare, declared_.at(*bare))
                                     : expr(function);
  // A variable may stand for an external function.
  for (const BindingBlock& block : body_->blocks) {
    for (const Binding& b : block.bindings) {
      if (packed && same_node(b.var, program) && b.value.is<ExternFunc>()) program = b.value;
    }
  }
  bool right = program.is<GlobalVar>() || (packed && program.is<ExternFunc>());
  if (!right)
    fail(function, "expected {}", packed ? "the name of a kernel in quotes" : "a tensor program of the module: cls.f");
  Call call{op_ref(packed ? "relax.call_dps_packed" : "relax." + name.substr(2)), {program}, {}, {}};
  const Syntax& inputs = required(at, 1, "args");
  Expr given = as_argument(inputs);
  if (!sound) throw Failed();
  // One tensor stands for a tuple of one. Integers among the tensors of a program follow them, as dims of a shape: of a
  // program's parameters only the order within buffers and within scalars counts.
  if (!given.type().is<TupleType>()) given = tuple({given}, span(inputs));
  std::vector<Expr> tensors, scalars;
  if (const Tuple* several = given.as<Tuple>(); several && !packed) {
    for (const Expr& item : several->items) (item.type().is<PrimType>() ? scalars : tensors).push_back(item);
    bool dims_only = std::all_of(scalars.begin(), scalars.end(), [](const Expr& e) { return dtype_of(e) == kInt64; });
    if (!dims_only) scalars.clear();
    if (!scalars.empty()) given = tuple(std::move(tensors), span(inputs));
  }
  call.args.push_back(given);
  const Syntax* outputs = arg(at, static_cast<size_t>(form->outputs), early ? "shape" : "out_sinfo");
  if (!outputs) fail(at, "the output type is missing: out_sinfo=R.Tensor((n, 4), dtype=\"float32\")");
  call.type_args = early ? early_outputs(*outputs, *dtypes) : type_list(*outputs);
  const Syntax* more = arg(at, static_cast<size_t>(form->scalars), "tir_vars");
  if (more && more->text != "None") {
    Expr value = as_argument(*more);
    if (const Tuple* several = value.as<Tuple>()) {
      std::vector<Expr> numbers = several->items;
      for (Expr& number : numbers) number = graph_dim(number, *more);
      value = shape_expr(std::move(numbers), span(*more));
    }
    if (!value.is<ShapeExpr>()) fail(*more, "expected R.shape([...])");
    if (!scalars.empty()) fail(*more, "scalar arguments stand in args and in tir_vars");
    call.args.push_back(value);
  } else if (!scalars.empty()) {
    call.args.push_back(shape_expr(std::move(scalars), span(inputs)));
  }
  for (size_t i = 0; i < form->attribute_names.size(); ++i) {
    const Syntax* value = arg(at, static_cast<size_t>(form->attributes) + i, form->attribute_names[i]);
    if (value && value->text != "None") call.attrs.set(std::string(form->attribute_names[i]), attr_value(*value));
  }
  for (const Keyword& keyword : at.keywords) {
    bool own = std::find(known.begin(), known.end(), keyword.name) != known.end();
    if (!own) call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  if (const AttrValue* indices = call.attrs.find("inplace_indices"); indices && indices->as<int64_t>())
    call.attrs.set("inplace_indices", AttrList{*indices});
  return typed_call(std::move(call), at);
}

namespace {

Tensor converted(const Tensor& data, DType dtype) {
  if (data.dtype() == dtype) return data;
  Tensor result = Tensor::empty(data.shape(), dtype);
  for (int64_t i = 0; i < data.size(); ++i) {
    if (dtype.is_float() || data.dtype().is_float()) result.set_double(i, data.as_double(i));
    if (!dtype.is_float() && !data.dtype().is_float()) result.set_int(i, data.as_int(i));
  }
  return result;
}

}  // namespace

Value Parser::relax_call(const std::string& form, const Syntax& at) {
  struct Form {
    std::string_view name;
    Value (Parser::*read)(const std::string&, const Syntax&);
  };
  constexpr Form kForms[] = {{"R.call_builtin_with_ctx", &Parser::applied_call},
                             {"R.call_dps_packed", &Parser::call_tir},
                             {"R.call_inplace_packed", &Parser::packed_call},
                             {"R.call_packed", &Parser::packed_call},
                             {"R.call_pure_packed", &Parser::packed_call},
                             {"R.call_py_func", &Parser::applied_call},
                             {"R.call_tir", &Parser::call_tir},
                             {"R.call_tir_inplace", &Parser::call_tir},
                             {"R.call_tir_with_grad", &Parser::call_tir},
                             {"R.dist.call_tir_local_view", &Parser::call_tir},
                             {"R.hint_on_device", &Parser::hint_on_device},
                             {"R.invoke_closure", &Parser::applied_call},
                             {"R.invoke_pure_closure", &Parser::applied_call},
                             {"R.make_closure", &Parser::applied_call},
                             {"R.vm.call_tir_dyn", &Parser::applied_call}};
  for (const Form& row : kForms) {
    if (form == row.name) return (this->*row.read)(form, at);
  }
  if (form == "R.const") return constant(at);
  if (form == "R.dist.const") {
    const Syntax& stated = required(at, 1, "struct_info");
    Type placed = type(stated);
    const DTensorType* spread = placed.as<DTensorType>();
    if (!spread) fail(stated, "expected R.DTensor(...)");
    Syntax plain(SyntaxKind::kCall, at.line, at.column, at.length);
    plain.children = {at.children[0], &required(at, 0, "value")};
    Expr value = constant(plain).expr;
    const Tensor& data = value.as<Constant>()->data;
    const std::vector<Expr>*have = known_shape(value.type()), *want = known_shape(spread->tensor);
    if (want && !std::equal(have->begin(), have->end(), want->begin(), want->end(),
                            [](const Expr& a, const Expr& b) { return structural_equal(a, b); }))
      fail(stated, "the constant has the shape ({})", fmt::join(data.shape(), ", "));
    return {make(Constant{converted(data, tensor_dtype(spread->tensor).value_or(data.dtype()))}, placed, span(at))};
  }
  if (form == "R.shape") {
    return {shape_expr(graph_dims(required(at, 0, "value")), span(at))};
  }
  if (form == "R.prim_value") {
    const Syntax& given = required(at, 0, "value");
    Value value = eval(given);
    if (!value.expr.type().is<PrimType>()) fail(given, "expected a scalar");
    return {value.expr};
  }
  if (form == "R.tuple" || form == "R.Tuple") {
    std::vector<Expr> values;
    for (size_t i = 1; i < at.children.size(); ++i) values.push_back(as_argument(*at.children[i]));
    return {bounded_tuple(std::move(values), at)};
  }
  if (form == "R.TupleGetItem") {
    Expr whole = as_argument(required(at, 0, "tuple_value"));
    return tuple_item(whole, required(at, 1, "index"), at);
  }
  if (form == "R.str") return {string_imm(string(required(at, 0, "value")), span(at))};
  if (form == "R.dtype") return {make(DTypeImm{dtype(at)}, object_type(), span(at))};
  if (form == "R.ExternFunc") return {external_function(at)};
  if (form == "R.emit") return eval(required(at, 0, "value"));
  if (form == "R.emit_te") fail(at, "R.emit_te needs a Python interpreter; call a tensor program with R.call_tir");
  if (form == "I.Op") return {op_ref(string(required(at, 0, "name")))};
  if (form == "R.match_cast") fail(at, "R.match_cast stands alone on the right of '='");
  const OpRow* row = ops_.find("relax." + form.substr(2));
  if (!row && is_type_name(form)) fail(*at.children[0], "'{}' is a type; expected a value", form);
  if (!row) {
    std::vector<std::string> known;
    for (const OpRow& candidate : ops_.rows()) known.push_back("R." + candidate.name.substr(6));
    for (const char* other : {"R.const", "R.shape", "R.prim_value", "R.call_packed", "R.match_cast", "R.tuple"})
      known.emplace_back(other);
    std::optional<std::string> near = nearest(form, known);
    fail_with_hint(*at.children[0], fmt::format("unknown operator '{}'", form), near.value_or(""));
  }
  return operator_call(*row, at);
}

AttrValue Parser::attribute(const OpAttr& attr, const Syntax& at) {
  if (std::string_view(attr.name) == "dst_vdevice") return vdevice_name(at);
  if (std::string_view(attr.name) == "device_mesh") return to_attr(device_mesh(at));
  if (std::string_view(attr.name) == "placement") {
    std::string text = string(at), spaced;
    std::erase(text, ' ');
    for (char c : text) spaced += c == ',' ? ", " : std::string(1, c);
    return spaced;
  }
  if (at.kind == SyntaxKind::kLambda) return index_map(at);
  if (at.kind == SyntaxKind::kCall && dotted(*at.children[0]) == "R.const") return attr_value(required(at, 0, "value"));
  return attr_value(at);
}

namespace {

bool is_list(const Syntax& at) { return at.kind == SyntaxKind::kTuple || at.kind == SyntaxKind::kList; }
bool is_none(const Syntax* at) { return !at || at->text == "None"; }

}  // namespace

// An argument as its place wants it: a dtype by its name, a shape as a tuple of numbers and dims.
Expr Parser::operator_input(const OpInput* input, const Syntax& at) {
  if (input && std::string_view(input->name) == "dtype" && at.kind == SyntaxKind::kString)
    return make(DTypeImm{dtype(at)}, object_type(), span(at));
  if (input && std::string_view(input->name) == "func" && at.kind == SyntaxKind::kString)
    return extern_func(string(at), span(at));
  OpInput::Form form = input ? input->form : OpInput::Form::kAny;
  auto is_dim = [&](const Expr& value, const Syntax& item) {
    const PrimType* scalar = value.type().as<PrimType>();
    bool integer = scalar && scalar->dtype.is_integral() && scalar->dtype.lanes == 1;
    if (form == OpInput::Form::kShape && scalar && !integer)
      fail(item, "expected an integer dim, got {}", to_string(scalar->dtype));
    return integer;
  };
  bool is_shape = at.kind == SyntaxKind::kCall && dotted(*at.children[0]) == "R.shape";
  if (is_shape && form != OpInput::Form::kAny) return operator_input(input, required(at, 0, "value"));
  if (!is_list(at) || at.children.empty()) {
    Expr value = as_argument(at);
    return form == OpInput::Form::kShape && is_dim(value, at) ? shape_expr({graph_dim(value, at)}, span(at)) : value;
  }
  bool dims_only = form != OpInput::Form::kScalars;
  std::vector<Expr> items;
  for (const Syntax* item : at.children) {
    bool boxed = item->kind == SyntaxKind::kCall && dotted(*item->children[0]) == "R.prim_value";
    items.push_back(boxed ? expr(*item) : as_argument(*item));
    dims_only = dims_only && (!boxed || form == OpInput::Form::kShape) && is_dim(items.back(), *item);
  }
  if (dims_only) {
    for (size_t i = 0; i < items.size(); ++i) items[i] = graph_dim(items[i], *at.children[i]);
  }
  return dims_only ? shape_expr(std::move(items), span(at)) : tuple(std::move(items), span(at));
}

Value Parser::operator_call(const OpRow& row, const Syntax& at) {
  Call call{op_ref(row.name), {}, {}, {}};
  bool variadic = !row.inputs.empty() && row.inputs.back().arity == OpInput::Arity::kVariadic;
  size_t given = positional(at), inputs = row.inputs.size();
  // R.assert_op(c, [x, y], "format"): the list holds the arguments of the format.
  auto unpacked = [&](const OpInput& input, const Syntax& value) {
    if (std::string_view(input.name) != "format_args" || !is_list(value)) return false;
    for (const Syntax* item : value.children) call.args.push_back(as_argument(*item));
    return true;
  };
  // Every argument tells its errors.
  bool sound = true;
  auto positional_argument = [&](size_t i) {
    const Syntax& value = *at.children[i + 1];
    if (i < inputs && unpacked(row.inputs[i], value)) {
      variadic = false;
    } else if (i < inputs || variadic) {
      bool left_out = i < inputs && row.inputs[i].arity == OpInput::Arity::kOptional && is_none(&value);
      if (sound && !left_out && i < inputs && call.args.size() < i)
        fail(value, "argument '{}' before it is missing", row.inputs[call.args.size()].name);
      if (!left_out) call.args.push_back(operator_input(i < inputs ? &row.inputs[i] : nullptr, value));
    } else if (i - inputs < row.attrs.size()) {
      const OpAttr& attr = row.attrs[i - inputs];
      call.attrs.set(attr.name, attribute(attr, value));
    } else {
      fail(value, "{} takes at most {} arguments", row.name, inputs + row.attrs.size());
    }
  };
  for (size_t i = 0; i < given; ++i) sound &= guarded([&] { positional_argument(i); });
  // Inputs by name follow the positional ones, in order.
  for (size_t i = given; i < inputs; ++i) {
    const Syntax* value = keyword(at, row.inputs[i].name);
    if (is_none(value)) continue;
    sound &= guarded([&] {
      if (unpacked(row.inputs[i], *value)) return;
      if (sound && call.args.size() < i)
        fail(*value, "argument '{}' before it is missing", row.inputs[call.args.size()].name);
      call.args.push_back(operator_input(&row.inputs[i], *value));
    });
  }
  for (const Keyword& keyword : at.keywords) {
    if (is_type_argument(keyword.name) && keyword.value->text == "None") continue;
    auto named = [&](const auto& part) { return keyword.name == part.name; };
    auto input = std::find_if(row.inputs.begin(), row.inputs.end(), named);
    auto attr = std::find_if(row.attrs.begin(), row.attrs.end(), named);
    bool twice = input != row.inputs.end() ? static_cast<size_t>(input - row.inputs.begin()) < given
                                           : call.attrs.has(keyword.name);
    if (twice) fail(*keyword.value, "argument '{}' is given twice", keyword.name);
    if (input != row.inputs.end()) continue;
    if (attr == row.attrs.end()) {
      std::vector<std::string> known;
      for (const OpInput& other : row.inputs) known.emplace_back(other.name);
      for (const OpAttr& other : row.attrs) known.emplace_back(other.name);
      report_keyword(keyword, fmt::format("{} has no argument '{}'", row.name, keyword.name),
                     nearest(keyword.name, known));
      sound = false;
      continue;
    }
    sound &= guarded([&] { call.attrs.set(attr->name, attribute(*attr, *keyword.value)); });
  }
  if (!sound) throw Failed();
  // A reshape's dims of -1 (what the others leave) and 0 (the input's) are written as what they stand for.
  const ShapeExpr* shape = row.name == "relax.reshape" && call.args.size() > 1 ? call.args[1].as<ShapeExpr>() : nullptr;
  if (shape && std::any_of(shape->values.begin(), shape->values.end(),
                           [](const Expr& dim) { return is_int(dim, -1) || is_int(dim, 0); })) {
    call.args[1] = shape_expr(copied_dims(call.args[0], *shape, at), call.args[1].span());
    Type type = infer_call_type(call, span(at), ops_);
    const std::vector<Expr>* dims = known_shape(type);
    if (!dims) fail(at, "the dim of -1 is not determined: the shape of x is not known");
    call.args[1] = shape_expr(*dims, call.args[1].span());
  }
  return typed_call(std::move(call), at);
}

// A dim of 0 copies the input's dim at its position; for an input without elements it is what it says.
std::vector<Expr> Parser::copied_dims(const Expr& x, const ShapeExpr& shape, const Syntax& at) {
  const std::vector<Expr>* from = known_shape(x.type());
  std::vector<Expr> dims = shape.values;
  bool literal = !from || std::any_of(from->begin(), from->end(), [](const Expr& dim) { return is_int(dim, 0); });
  for (size_t d = 0; d < dims.size() && !literal; ++d) {
    if (!is_int(dims[d], 0)) continue;
    if (d >= from->size()) fail(at, "the dim of 0 at {} copies no dim: x has rank {}", d, from->size());
    dims[d] = (*from)[d];
  }
  return dims;
}

}  // namespace relaxc::text
