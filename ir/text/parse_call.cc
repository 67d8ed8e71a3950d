// Reads values of graph functions from the syntax tree: Relax's call forms, R.call_tir and its variants, operators.
#include <algorithm>

#include "ir/arith.h"
#include "ir/attr_names.h"
#include "ir/op_names.h"
#include "ir/text/parse_te.h"
#include "support/joined.h"

namespace relaxc::text {

// ---- Values

Value Parser::eval_as(std::optional<Type> wanted, const Syntax& at) {
  Temporarily annotation(wanted_, std::move(wanted));
  return eval(at);
}

Expr Parser::as_argument(const Syntax& at) { return leaf(eval_as(std::nullopt, at), at); }

Value Parser::tensor_operator(std::string_view op, Value a, Value b, const Syntax& at) {
  constexpr std::pair<std::string_view, const char*> kSugar[] = {
      {"+", "relax.add"},           {"-", "relax.subtract"},    {"*", "relax.multiply"}, {"/", "relax.divide"},
      {"//", "relax.floor_divide"}, {"%", "relax.mod"},         {"**", "relax.power"},   {"@", "relax.matmul"},
      {"<", "relax.less"},          {"<=", "relax.less_equal"}, {">", "relax.greater"},  {">=", "relax.greater_equal"},
      {"==", "relax.equal"},        {"!=", "relax.not_equal"}};
  lift_number(a, b, op, at);
  lift_number(b, a, op, at);
  const char* const* name = row_of(kSugar, op);
  if (!name) fail(at, "'{}' cannot take tensors", op);
  return typed_call(OpName{*name}, {leaf(a, at), leaf(b, at)}, at);
}

void Parser::lift_number(Value& value, const Value& tensor, std::string_view op, const Syntax& at) {
  if (!value.expr.type().is<PrimType>()) return;
  std::optional<DType> dtype = tensor_dtype(tensor.expr.type());
  if (value.literal && !dtype && tensor.expr.type().is<TensorType>())
    fail({at,
          {},
          "write the number as R.const(2, \"float32\"), or give the tensor's dtype: R.Tensor((n, 4), \"float32\")"},
         "a number beside a tensor of unknown dtype");
  if (!value.literal || !dtype) fail(at, "expected tensors on both sides of '{}'", op);
  Expr scalar = adapt(value, *dtype, at);
  Tensor data = Tensor::empty({}, *dtype);
  if (const IntImm* imm = scalar.as<IntImm>()) data.set_int(0, imm->value);
  if (const FloatImm* imm = scalar.as<FloatImm>()) data.set_double(0, imm->value);
  value = {relaxc::constant(data, span(at))};
}

void Parser::set_type_args(const Syntax* types, Call& call) {
  if (!is_none(types)) call.type_args = read_each(items(*types), &Parser::type);
}

// Returns the type with its dims in terms of the signature's dims, which are not negative.
Type Parser::with_dim_facts(Type type) const {
  const TensorType* tensor = type.as<TensorType>();
  const std::vector<Expr>* shape = tensor ? known_shape(type) : nullptr;
  auto simple = [](const Expr& dim) { return dim.is<IntImm>() || dim.is<Var>(); };
  if (!shape || std::ranges::all_of(*shape, simple)) return type;
  Analyzer facts;
  for (const VarRef& var : free_vars(type)) {
    const Entity* entity = scopes_.find(var->name);
    if (entity && entity->is_dim && !entity->may_be_negative && entity->expr && same_node(*entity->expr, var))
      facts.bind(var, Interval{0, std::numeric_limits<int64_t>::max()});
  }
  TensorType result = *tensor;
  result.shape = shape_expr(map_each(*shape, [&](const Expr& dim) {
    Expr known = facts.simplify(dim);
    return structural_equal(known, simplify(dim)) ? dim : known;
  }));
  return make(std::move(result));
}

// Returns the call with its inferred type, or with the annotation's where the type cannot be inferred.
Value Parser::typed_call(Call call, const Syntax& at) {
  std::optional<Type> wanted = std::exchange(wanted_, std::nullopt);
  const GlobalVar* callee = call.callee.as<GlobalVar>();
  const Expr* target = callee ? module_.find(callee->name) : nullptr;
  bool kernel = target && target->is<PrimFunc>();  // it writes to its arguments
  const OpRef* op = call.callee.as<OpRef>();
  if (const OpRow* row = op ? ops_.find(op->name) : nullptr) call = normalize_call(*row, std::move(call));
  std::optional<DType> returned = kernel ? target->as<PrimFunc>()->result : std::nullopt;
  Type result = returned ? prim_type(*returned) : kernel ? tuple_type({}) : infer_call_type(call, span(at), ops_);
  if (call.type_args.empty()) result = with_dim_facts(result);
  if (wanted && result.is<ObjectType>()) result = *wanted;
  return {make(std::move(call), result, span(at))};
}

Value Parser::typed_call(OpName op, std::vector<Expr> args, const Syntax& at, Attrs attrs) {
  return typed_call(Call{op_ref(op), std::move(args), std::move(attrs), {}}, at);
}

Value Parser::function_call(Expr callee, const Syntax& at) {
  check_keywords(at, {"sinfo_args"});
  Call call{callee, read_each(at.operands(), &Parser::as_argument), {}, {}};
  set_type_args(keyword(at, "sinfo_args"), call);
  return typed_call(std::move(call), at);
}

// Reads a function as an argument: a name in quotes is an external one.
Expr Parser::callee(const Syntax& at) {
  return at.kind == SyntaxKind::kString ? extern_func(string(at), span(at)) : as_argument(at);
}

// Reads R.call_packed("symbol", args..., sinfo_args=(...)) and its variants, whose further keywords are attributes.
Value Parser::packed_form(const std::string& form, const Syntax& at) {
  Expr function = callee(required(at, 0, "func"));
  // Before 2023 a call in a dataflow block is pure because it stands there.
  const ExternFunc* named = function.as<ExternFunc>();
  bool pure_by_place =
      early_ && body_->in_dataflow && form == "R.call_packed" && named && !named->symbol.starts_with("vm.builtin.");
  bool wrapped = form != "R.call_packed" || pure_by_place;
  Call call{
      wrapped ? op_ref(pure_by_place ? "relax.call_pure_packed" : "relax." + form.substr(2)) : function, {}, {}, {}};
  if (wrapped) call.args.push_back(function);
  for (size_t i = 2; i < at.children.size(); ++i) call.args.push_back(as_argument(*at.children[i]));
  for (const Keyword& keyword : at.keywords) {
    if (canonical_keyword(keyword.name) != "sinfo_args")
      call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  set_type_args(keyword(at, "sinfo_args"), call);
  return typed_call(std::move(call), at);
}

// Reads R.invoke_closure(f, (x, y), sinfo_args=...) and its variants: a function and a tuple of arguments.
Value Parser::applied_form(const std::string& form, const Syntax& at) {
  check_keywords(at, {"func", "closure", "args", "sinfo_args", "out_sinfo"});
  const char* first = form == "R.invoke_closure" || form == "R.invoke_pure_closure" ? "closure" : "func";
  Call call{op_ref("relax." + form.substr(2)), {callee(required(at, 0, first))}, {}, {}};
  const Syntax& given = required(at, 1, "args");
  Expr args = as_argument(given);
  if (!args.type().is<TupleType>() && !args.type().is<ObjectType>()) args = tuple({args}, span(given));
  call.args.push_back(args);
  set_type_args(keyword(at, "sinfo_args"), call);
  if (const Syntax* types = arg(at, 2, "out_sinfo")) call.type_args = read_each(items(*types), &Parser::type);
  return typed_call(std::move(call), at);
}

// Reads relax.Call(op, [x, y], attrs, sinfo_args), as Python builds a call, and R.call_tir_packed(cls.f, (x, out)).
Value Parser::node_form(const std::string& form, const Syntax& at) {
  const bool is_program = form == "R.call_tir_packed";
  const Syntax& function = required(at, 0, is_program ? "func" : "op");
  Call call{callee(function), {}, {}, {}};
  for (const Syntax* item : items(required(at, 1, "args"))) call.args.push_back(as_argument(*item));
  if (const Syntax* given = is_program ? nullptr : arg(at, 2, "attrs"); !is_none(given))
    fail({*given, {}, "call the operator: relax.op.add(x, y)"}, "the attributes of relax.Call are objects of Python");
  set_type_args(is_program ? keyword(at, "sinfo_args") : arg(at, 3, "sinfo_args"), call);
  const OpRef* op = call.callee.as<OpRef>();
  if (op && !ops_.find(op->name)) fail(function, "unknown operator '{}'", op->name);
  return typed_call(std::move(call), at);
}

// Reads R.hint_on_device(x, R.device(1, 0), "global"); the device may be R.cpu(0) or tvm.cuda(0) too.
Value Parser::device_form(const std::string&, const Syntax& at) {
  constexpr std::pair<std::string_view, int64_t> kDevices[] = {{"cpu", 1},    {"cuda", 2},    {"opencl", 4},
                                                               {"vulkan", 7}, {"metal", 8},   {"vpi", 9},
                                                               {"rocm", 10},  {"webgpu", 15}, {"hexagon", 16}};
  const Syntax* given = arg(at, 1, "dst_vdevice");
  if (!given) given = arg(at, 1, "device");
  if (!given || !is_call(*given)) return operator_call(*ops_.find(ops::kHintOnDevice.text), at);
  std::string kind(given->children[0]->text);
  bool is_device = kind == "device";
  const Syntax* stated = is_device ? &required(*given, 0, "dev_type") : nullptr;
  if (stated && stated->kind == SyntaxKind::kString) kind = string(*stated);
  std::optional<int64_t> type;
  if (stated && stated->kind != SyntaxKind::kString) type = constant_int(*stated);
  if (const int64_t* number = type ? nullptr : row_of(kDevices, kind)) type = *number;
  if (!type) fail(*given, "expected a device, such as R.device(1, 0) or R.cpu(0)");
  Attrs attrs = {{"device_type", *type}};  // the others have defaults
  if (const Syntax* index = arg(*given, is_device ? 1 : 0, "dev_id")) attrs.set("index", constant_int(*index));
  if (const Syntax* scope = arg(at, 2, "memory_scope")) attrs.set("memory_scope", string(*scope));
  return typed_call(ops::kHintOnDevice, {as_argument(required(at, 0, "data"))}, at, std::move(attrs));
}

// ---- Calls of tensor programs and kernels

// Removes the scalars from the inputs of a program and returns them, if they are dims. The order between tensors and
// scalars does not matter for a program's parameters.
static std::vector<Expr> take_scalars(Expr& inputs) {
  const Tuple* several = inputs.as<Tuple>();
  if (!several) return {};
  std::vector<Expr> tensors, scalars;
  for (const Expr& item : several->items) (item.type().is<PrimType>() ? scalars : tensors).push_back(item);
  bool dims_only = std::ranges::all_of(scalars, [](const Expr& e) { return dtype_of(e) == kInt64; });
  if (!dims_only || scalars.empty()) return {};
  inputs = tuple(std::move(tensors), inputs.span());
  return scalars;
}

// Reads the form of 2022, which gives shapes and dtypes: (m, k), dtype="float32", or lists of both.
std::vector<Type> Parser::early_outputs(const Syntax& shapes, const Syntax* dtypes, std::optional<DType> otherwise) {
  std::vector<const Syntax*> several = {&shapes}, of = dtypes ? items(*dtypes) : std::vector<const Syntax*>();
  if (!dtypes && !otherwise) fail(shapes, "the dtype of the output is missing: dtype=\"float32\"");
  auto dtype_of_output = [&](size_t i) { return of.empty() ? *otherwise : dtype(*of[of.size() == 1 ? 0 : i]); };
  const Entity* known = is_name(shapes) ? lookup(shapes.text) : nullptr;
  if (known && known->expr && known->expr->type().is<ShapeType>() && of.size() <= 1) {
    TensorType result{*known->expr, dtype_of_output(0), known_rank(known->expr->type()), {}};
    return {make(std::move(result), span(shapes))};
  }
  bool nested = !shapes.children.empty() && is_list(*shapes.children[0]);
  if (nested) several = items(shapes);
  if (of.size() > 1 && of.size() != several.size()) fail(*dtypes, "{} dtypes for {} shapes", of.size(), several.size());
  std::vector<Type> result;
  for (size_t i = 0; i < several.size(); ++i)
    result.push_back(relaxc::tensor_type(graph_dims(*several[i]), dtype_of_output(i), span(*several[i])));
  return result;
}

// Reads the form of 2021, R.call_dps((n, 4), f, (x,)): the shape stands first, and the dtype is that of the input.
Value Parser::shape_first(const std::string& path, const Syntax& at) {
  Syntax call = at;
  call.children = {at.children[0], at.children[2], at.children[3], at.children[1]};
  return call_tir_form(path, call);
}

Value Parser::call_tir_form(const std::string& path, const Syntax& at) {
  const std::vector<std::string_view>& names = argument_names(path);
  auto position = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
  };
  bool sound = fits_signature(path, at);
  const Syntax& function = required(at, 0, "func");
  bool makes_outputs = path == "R.call_tir" || path == "R.call_dps_packed";
  if (makes_outputs && is_list(function) && positional(at) == 3) return shape_first(path, at);
  const Syntax* dtypes = keyword(at, "dtype");
  const Syntax* third = arg(at, 2, "shape");
  bool bare_shape =
      early_ && third && is_list(*third) && !third->children.empty() && type_name(*third->children[0]).empty();
  bool early = (dtypes || bare_shape) && makes_outputs;
  // Until 2023 R.call_tir called kernels by their names, too.
  bool names_kernel = function.kind == SyntaxKind::kString && !declared_.contains(string(function));
  bool packed = path == "R.call_dps_packed" || (path == "R.call_tir" && names_kernel);
  Call call{packed ? op_ref(ops::kCallDpsPacked) : op_ref("relax." + path.substr(2)), {}, {}, {}};
  call.args.push_back(called_program(function, packed, early));
  const Syntax& inputs = required(at, 1, "args");
  Expr given = as_argument(inputs);
  if (!sound) throw Failed();
  // One tensor is accepted in place of a tuple of one.
  if (!given.type().is<TupleType>()) given = tuple({given}, span(inputs));
  std::vector<Expr> scalars = packed ? std::vector<Expr>() : take_scalars(given);
  call.args.push_back(given);
  const Syntax* outputs = arg(at, position("out_sinfo"), early ? "shape" : "out_sinfo");
  if (!outputs) outputs = keyword(at, "sinfo_args");
  if (!outputs) fail(at, "the output type is missing: out_sinfo=R.Tensor((n, 4), dtype=\"float32\")");
  const Tuple* written = given.as<Tuple>();
  std::optional<DType> of_input =
      written && !written->items.empty() ? tensor_dtype(written->items[0].type()) : std::nullopt;
  call.type_args = early ? early_outputs(*outputs, dtypes, of_input) : read_each(items(*outputs), &Parser::type);
  if (const Syntax* more = arg(at, position("tir_vars"), "tir_vars"); !is_none(more)) {
    call.args.push_back(tir_vars(*more));
    if (!scalars.empty()) fail(*more, "scalar arguments stand both in args and in tir_vars");
  } else if (!scalars.empty()) {
    call.args.push_back(shape_expr(std::move(scalars), span(inputs)));
  }
  call_tir_attributes(path, at, call);
  return typed_call(std::move(call), at);
}

// Reads a tensor program of the module, or (packed) the name of a kernel. Early texts name both without a prefix.
Expr Parser::called_program(const Syntax& at, bool packed, bool early) {
  // Until 2023 a text in quotes named a program of the module, too.
  const Expr* named = at.kind == SyntaxKind::kString && !packed ? module_.find(string(at)) : nullptr;
  const std::string* bare = named && named->is<PrimFunc>() ? function_named(string(at))
                            : early && is_name(at)         ? function_named(at.text)
                                                           : nullptr;
  bool quoted = packed && at.kind == SyntaxKind::kString;
  Expr program = bare ? global_var(*bare, declared_.at(*bare)) : quoted ? callee(at) : expr(at);
  // A variable may be bound to an external function.
  for (const BindingBlock& block : body_->blocks) {
    for (const Binding& b : block.bindings) {
      if (packed && same_node(b.var, program) && b.value.is<ExternFunc>()) program = b.value;
    }
  }
  bool right = program.is<GlobalVar>() || (packed && program.is<ExternFunc>());
  if (!right)
    fail(at, "expected {}", packed ? "the name of a kernel in quotes" : "a tensor program of the module: cls.f");
  return program;
}

Expr Parser::tir_vars(const Syntax& at) {
  Expr value = as_argument(at);
  if (const Tuple* several = value.as<Tuple>())
    value = shape_expr(map_each(several->items, [&](const Expr& item) { return graph_dim(item, at); }), span(at));
  if (!value.is<ShapeExpr>()) fail(at, "expected R.shape([...])");
  return value;
}

// Reads the other arguments as attributes.
void Parser::call_tir_attributes(const std::string& path, const Syntax& at, Call& call) {
  constexpr std::string_view kRead[] = {"func", "args", "out_sinfo", "tir_vars", "shape", "dtype"},
                             kTypes = "sinfo_args";
  const std::vector<std::string_view>& names = argument_names(path);
  for (size_t i = 0; i < names.size(); ++i) {
    const Syntax* value = std::ranges::find(kRead, names[i]) == std::end(kRead) ? arg(at, i, names[i]) : nullptr;
    if (!is_none(value)) call.attrs.set(std::string(names[i]), attr_value(*value));
  }
  for (const Keyword& keyword : at.keywords) {
    std::string_view name = canonical_keyword(keyword.name);
    if (name != kTypes && std::ranges::find(names, name) == names.end())
      call.attrs.set(std::string(keyword.name), attr_value(*keyword.value));
  }
  if (const AttrValue* indices = call.attrs.find(attr_names::kInplaceIndices); indices && indices->as<int64_t>())
    call.attrs.set(attr_names::kInplaceIndices, AttrList{*indices});
}

// ---- Operators and other forms

Tensor converted(const Tensor& data, DType dtype) {
  if (data.dtype() == dtype) return data;
  Tensor result = Tensor::empty(data.shape(), dtype);
  bool has_float = dtype.is_float() || data.dtype().is_float();
  for (int64_t i = 0; i < data.size(); ++i)
    has_float ? result.set_double(i, data.as_double(i)) : result.set_int(i, data.as_int(i));
  return result;
}

Value Parser::relax_call(const std::string& form, const Syntax& at) {
  if (auto value = form_value(form, at)) return *value;
  if (early_ && form == "R.builtin.alloc_tensor" && positional(at) == 1 && at.keywords.empty()) {  // of float32 in 2021
    Syntax call = at;
    call.children.push_back(syntax_of(std::string("float32"), at));
    return relax_call(form, call);
  }
  bool shape_first =
      form == "R.memory.alloc_tensor" && positional(at) > 2 && is_list(*at.children[2]) && !is_list(*at.children[3]);
  if (shape_first) {  // until 2023: storage, shape, offset
    Syntax call = at;
    std::iter_swap(call.children.begin() + 2, call.children.begin() + 3);
    return relax_call(form, call);
  }
  if (const OpRow* row = ops_.find("relax." + form.substr(2))) return operator_call(*row, at);
  if (is_type_name(form)) fail(*at.children[0], "'{}' is a type; expected a value", form);
  fail({*at.children[0], near_form(form)}, "unknown operator '{}'", form);
}

// Reads a value that is written as a call.
Value Parser::value_form(const std::string& form, const Syntax& at) {
  if (form == "R.const") return constant(at);
  if (form == "R.dtype") return {make(DTypeImm{dtype(at)}, object_type(), span(at))};
  if (form == "R.ExternFunc") return {external_function(at)};
  if (form == "I.Op" || form == "I.Op.get") return {op_ref(string(required(at, 0, "name")))};
  if (form == "R.emit_te") return te_->emit(at);
  if (form == "R.match_cast") fail(at, "{} stands alone on the right of '='", form);
  const Syntax& given = required(at, 0, "value");
  if (form == "R.shape" && positional(at) > 1) {  // shape(n, 4) in papers
    Syntax dims(SyntaxKind::kTuple, at);
    dims.children.assign(at.operands().begin(), at.operands().end());
    return {shape_expr(graph_dims(dims), span(at))};
  }
  if (form == "R.shape") return {shape_expr(graph_dims(given), span(at))};
  if (form == "R.str") return {string_imm(string(given), span(at))};
  if (form == "R.emit" || form == "T.meta_var") return eval(given);  // Python computes the latter before the program
  return {scalar_value(given).expr};                                 // R.prim_value
}

Value Parser::tuple_form(const std::string& form, const Syntax& at) {
  if (form == "R.TupleGetItem")
    return tuple_item(as_argument(required(at, 0, "tuple_value")), required(at, 1, "index"), at);
  // relax.Tuple([x, y]) takes a list, R.tuple(x, y) the items.
  bool is_whole = form == "R.Tuple" && positional(at) == 1 && is_list(*at.children[1]);
  std::vector<const Syntax*> parts =
      is_whole ? items(*at.children[1]) : std::vector(at.operands().begin(), at.operands().end());
  return {bounded_tuple(read_each(parts, &Parser::as_argument), at)};
}

// Reads R.dist.const(value, R.DTensor(...)).
Value Parser::distributed_form(const std::string&, const Syntax& at) {
  const Syntax& stated = required(at, 1, "struct_info");
  Type placed = type(stated);
  const DTensorType* spread = placed.as<DTensorType>();
  if (!spread) fail(stated, "expected R.DTensor(...)");
  Syntax plain(SyntaxKind::kCall, at);
  plain.children = {at.children[0], &required(at, 0, "value")};
  Expr value = constant(plain).expr;
  const Tensor& data = value.as<Constant>()->data;
  const std::vector<Expr>*have = known_shape(value.type()), *want = known_shape(spread->tensor);
  auto same = [](const Expr& a, const Expr& b) { return structural_equal(a, b); };
  if (want && !std::ranges::equal(*have, *want, same))
    fail(stated, "the shape of the constant is ({})", joined(data.shape()));
  return {make(Constant{converted(data, tensor_dtype(spread->tensor).value_or(data.dtype()))}, placed, span(at))};
}

AttrValue Parser::attribute(const OpAttr& attr, const Syntax& at) {
  std::string_view name = attr.name;
  if (name == "dst_vdevice") return vdevice_name(at);
  if (name == "device_mesh") return to_attr(device_mesh(at));
  if (name == "placement") return placement(at);
  if (at.kind == SyntaxKind::kLambda) return index_map(at);
  return attr_value(callee_path(at) == "R.const" ? required(at, 0, "value") : at);
}

// Reads an argument in the form that the input requires: a dtype by its name, a shape as a tuple of numbers and dims.
Expr Parser::operator_input(const OpInput* input, const Syntax& at) {
  std::string_view name = input && at.kind == SyntaxKind::kString ? input->name : "";
  if (name == "dtype") return make(DTypeImm{dtype(at)}, object_type(), span(at));
  if (name == "func") return extern_func(string(at), span(at));
  OpInput::Form form = input ? input->form : OpInput::Form::kAny;
  auto is_dim = [&](const Expr& value, const Syntax& item) {
    const PrimType* scalar = value.type().as<PrimType>();
    bool integer = scalar && scalar->dtype.is_integral() && scalar->dtype.lanes == 1;
    if (form == OpInput::Form::kShape && scalar && !integer)
      fail(item, "expected an integer dim, got {}", to_string(scalar->dtype));
    return integer;
  };
  if (form != OpInput::Form::kAny && callee_path(at) == "R.shape" && positional(at) < 2) {
    const Syntax& dims = required(at, 0, "value");
    bool is_empty = is_list(dims) && dims.children.empty() && form == OpInput::Form::kShape;
    return is_empty ? shape_expr({}, span(at)) : operator_input(input, dims);
  }
  const bool is_scalar_shape = is_list(at) && at.children.empty() && input && std::string_view(input->name) == "shape";
  if (is_scalar_shape) return shape_expr({}, span(at));
  if (!is_list(at) || at.children.empty()) {
    Expr value = as_argument(at);
    return form == OpInput::Form::kShape && is_dim(value, at) ? shape_expr({graph_dim(value, at)}, span(at)) : value;
  }
  bool dims_only = form != OpInput::Form::kScalars;
  std::vector<Expr> items;
  std::vector<const Syntax*> places;
  for (const Syntax* item : at.children) {
    bool boxed = callee_path(*item) == "R.prim_value";
    std::vector<Expr> spread = item->kind == SyntaxKind::kStarred ? spread_items(*item)
                               : boxed                            ? std::vector{expr(*item)}
                                                                  : std::vector{as_argument(*item)};
    for (const Expr& each : spread) {
      items.push_back(each);
      places.push_back(item);
      dims_only = dims_only && (!boxed || form == OpInput::Form::kShape) && is_dim(each, *item);
    }
  }
  if (!dims_only) return tuple(std::move(items), span(at));
  for (size_t i = 0; i < items.size(); ++i) items[i] = graph_dim(items[i], *places[i]);
  return shape_expr(std::move(items), span(at));
}

// Returns true for the list of R.assert_op(c, [x, y], "format"): it holds the arguments of the format, each an input.
static bool is_format_list(const OpInput& input, const Syntax& value) {
  return std::string_view(input.name) == "format_args" && is_list(value);
}

// Returns the syntax of each input and attribute, which are given by position or by name, in this order; null where one
// is left out. The further items of a variadic input follow.
std::vector<const Syntax*> Parser::operator_arguments(const OpRow& row, const Syntax& at, bool& sound) {
  std::vector<std::string> names;
  for (const OpInput& input : row.inputs) names.emplace_back(input.name);
  for (const OpAttr& attr : row.attrs) names.emplace_back(attr.name);
  std::vector<const Syntax*> result(names.size());
  size_t inputs = row.inputs.size(), given = positional(at);
  bool variadic = inputs > 0 && row.inputs.back().arity == OpInput::Arity::kVariadic &&
                  !(given >= inputs && is_format_list(row.inputs.back(), *at.children[inputs]));
  for (size_t i = 0; i < given; ++i) {
    const Syntax* value = at.children[i + 1];
    if (variadic && i >= inputs) {
      result.push_back(value);
    } else if (i < names.size()) {
      result[i] = value;
    } else {
      report(*value, "{} takes at most {} arguments", row.name, names.size());
      sound = false;
    }
  }
  for (const Keyword& keyword : at.keywords) {
    bool may_state = row.name == ops::kSequenceMake || row.name == ops::kOptionalNone;
    if (canonical_keyword(keyword.name) == "sinfo_args" && (may_state || is_none(keyword.value))) continue;
    size_t i = static_cast<size_t>(std::ranges::find(names, keyword.name) - names.begin());
    if (i < names.size() && !result[i]) {
      result[i] = keyword.value;
      continue;
    }
    // Until 2022 a convolution stated the size of its kernel, which is that of the weight.
    if (keyword.name == "kernel_size" && row.name.starts_with("relax.nn.conv")) continue;
    if (i == names.size() && early_ && is_none(keyword.value)) continue;  // relay's nn.matmul(x, y, units=None)
    sound = false;
    if (i < names.size()) {
      report(*keyword.value, "argument '{}' is given twice", keyword.name);
    } else {
      report({keyword, nearest(keyword.name, names)}, "{} has no argument '{}'", row.name, keyword.name);
    }
  }
  return result;
}

// Returns the argument that TVM's function puts where one is left out before another is given.
static std::optional<Expr> left_out(const OpRow& row, std::string_view input, std::vector<Expr>& before) {
  enum class Filler : uint8_t { kTrue, kFalse, kNone, kFirst, kRange };
  constexpr std::tuple<std::string_view, std::string_view, Filler> kFillers[] = {
      {"relax.arange", "end", Filler::kRange},
      {"relax.eye", "m", Filler::kFirst},
      {"relax.memory.view", "shape", Filler::kNone},
      {"relax.memory.view", "dtype", Filler::kNone},
      {"relax.unique", "sorted", Filler::kTrue},
      {"relax.unique", "return_index", Filler::kFalse},
      {"relax.unique", "return_inverse", Filler::kFalse},
      {"relax.unique", "return_counts", Filler::kFalse}};
  auto found = std::ranges::find_if(
      kFillers, [&](const auto& each) { return std::get<0>(each) == row.name && std::get<1>(each) == input; });
  if (found == std::end(kFillers)) return std::nullopt;
  switch (std::get<2>(*found)) {
    case Filler::kTrue:
    case Filler::kFalse:
      return bool_imm(std::get<2>(*found) == Filler::kTrue);
    case Filler::kNone:
      return tuple({});
    case Filler::kFirst:
      return before.at(0);
    case Filler::kRange:  // R.arange(n, step=2) begins at 0
      return std::exchange(before.at(0), int_imm(0, dtype_of(before.at(0))));
  }
  return std::nullopt;
}

// TVM's function of attention_var_len takes the longest query before the starts of the keys, which may be left out
// together with the longest key. Its printer writes the starts first.
static void order_sequences(Call& call) {
  std::vector<Expr>& args = call.args;
  if (args.size() < 5 || known_rank(args[4].type()) != 0) return;
  if (args.size() == 5) args.insert(args.end(), {args[3], args[4]});
  std::swap(args[4], args[5]);
}

Value Parser::operator_call(const OpRow& row, const Syntax& at) {
  Call call{op_ref(row.name), {}, {}, {}};
  bool sound = true;
  std::vector<const Syntax*> arguments = operator_arguments(row, at, sound);
  size_t inputs = row.inputs.size(), named = inputs + row.attrs.size();
  // The errors of every argument are reported.
  auto read_input = [&](const OpInput* input, const Syntax& value) {
    sound &= guarded([&] {
      if (input && is_format_list(*input, value)) {
        for (const Syntax* item : value.children) call.args.push_back(as_argument(*item));
        return;
      }
      size_t position = input ? static_cast<size_t>(input - row.inputs.data()) : 0;
      while (sound && call.args.size() < position) {
        std::optional<Expr> filler = left_out(row, row.inputs[call.args.size()].name, call.args);
        if (!filler) fail(value, "argument '{}' before it is missing", row.inputs[call.args.size()].name);
        call.args.push_back(*filler);
      }
      call.args.push_back(operator_input(input, value));
    });
  };
  for (size_t i = 0; i < inputs; ++i) {
    bool may_be_none = i >= positional(at) || row.inputs[i].arity == OpInput::Arity::kOptional;
    bool left_out = !arguments[i] || (may_be_none && is_none(arguments[i]));
    if (!left_out) read_input(&row.inputs[i], *arguments[i]);
  }
  for (size_t i = named; i < arguments.size(); ++i) read_input(nullptr, *arguments[i]);
  for (size_t i = inputs; i < named; ++i) {
    const OpAttr& attr = row.attrs[i - inputs];
    if (arguments[i]) sound &= guarded([&] { call.attrs.set(attr.name, attribute(attr, *arguments[i])); });
  }
  set_type_args(keyword(at, "sinfo_args"), call);
  if (!sound) throw Failed();
  if (row.name == ops::kAttentionVarLen) order_sequences(call);
  // Until 2023 batch_norm was that of inference.
  if (row.name == "relax.nn.batch_norm" && before_purity_ && !call.attrs.has("training"))
    call.attrs.set("training", false);
  if (row.name == ops::kReshape && call.args.size() > 1) complete_reshape(call, at);
  return typed_call(std::move(call), at);
}

// Replaces a reshape's dims of -1 (the rest of the elements) and 0 (the input's dim at the position; for an input
// without elements a dim of size 0) by their values.
void Parser::complete_reshape(Call& call, const Syntax& at) {
  const ShapeExpr* shape = call.args[1].as<ShapeExpr>();
  auto is_zero = [](const Expr& dim) { return is_int(dim, 0); };
  auto stands_for_another = [&](const Expr& dim) { return is_int(dim, -1) || is_zero(dim); };
  if (!shape || std::ranges::none_of(shape->values, stands_for_another)) return;
  const std::vector<Expr>* from = known_shape(call.args[0].type());
  bool literal = !from || std::ranges::any_of(*from, is_zero);
  std::vector<Expr> copied = shape->values;
  for (size_t d = 0; d < copied.size() && !literal; ++d) {
    if (!is_zero(copied[d])) continue;
    if (d >= from->size()) fail(at, "the dim of 0 at {} copies no dim: x has rank {}", d, from->size());
    copied[d] = (*from)[d];
  }
  const Span place = call.args[1].span();
  call.args[1] = shape_expr(std::move(copied), place);
  Type type = infer_call_type(call, span(at), ops_);
  const std::vector<Expr>* dims = known_shape(type);
  if (!dims) fail(at, "the dim of -1 is not determined: the shape of x is not known");
  call.args[1] = shape_expr(*dims, place);
}

}  // namespace relaxc::text
