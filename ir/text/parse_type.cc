#include <algorithm>
#include <cmath>
#include <ranges>

#include "ir/text/parsing.h"
#include "support/joined.h"

namespace relaxc::text {

bool is_type_name(std::string_view path) {
  constexpr std::string_view kTypes[] = {"R.Callable", "R.DTensor",    "R.Map",    "R.Object",
                                         "R.Optional", "R.PackedFunc", "R.Prim",   "R.Sequence",
                                         "R.Shape",    "R.Tensor",     "T.Buffer", "T.handle"};
  return std::ranges::find(kTypes, path) != std::end(kTypes);
}

Expr Parser::quoted_dim(const Syntax& at, DType otherwise) {
  std::string error, content = unquote(at.text, error);
  if (!error.empty()) fail(at, "{}", error);
  // The content begins in the file one quote after the string's start.
  size_t prefix = std::min(at.text.find_first_of("\"'"), at.text.size()) + 1;
  size_t length = at.text.size() > prefix ? at.text.size() - prefix - 1 : 0;
  std::string_view inner = at.text.substr(prefix, length);
  if (inner != content) fail(at, "expected an expression without escapes");
  size_t before = diagnostics_.all().size();
  const Syntax* parsed = parse_expression(Source{origin_, inner, at.line, at.column + static_cast<uint32_t>(prefix)},
                                          *tree_, diagnostics_);
  if (!parsed || diagnostics_.all().size() > before) throw Failed();
  // Undefined names become dims.
  std::vector<const Syntax*> work = {parsed};
  while (!work.empty()) {
    const Syntax* node = work.back();
    work.pop_back();
    if (!node) continue;
    if (is_name(*node) && !lookup(node->text) && !prefixes_.contains(node->text))
      add_undefined(define_dim(node->text, otherwise, *node));
    work.insert(work.end(), node->children.begin(), node->children.end());
  }
  return adapt(scalar_value(*parsed), otherwise, *parsed);
}

VarRef Parser::define_dim(std::string_view name, DType dtype, const Place& at) {
  VarRef var = make_var(std::string(name), prim_type(dtype), span(at));
  scopes_.define(name, Entity{.expr = var, .is_dim = true});
  return var;
}

Expr Parser::dim(const Syntax& at, DType otherwise) {
  bool quoted = at.kind == SyntaxKind::kString;
  if (at.computed != 0) refuse_computed(at, at.computed);
  bool is_new = is_name(at) && !lookup(at.text);
  const DType* variable = is_new ? find_value(type_variables_, at.text) : nullptr;
  if (variable || (is_new && early_ && quoted_)) {
    bool has_dtype = variable && *variable != DType::void_() && !in_graph_;
    define_dim(at.text, has_dtype ? *variable : otherwise, at);
  } else if (is_new && quoted_) {
    fail({at, fmt::format("\"{}\"", at.text)}, "undefined dim '{}'; in a signature a new dim stands in quotes",
         at.text);
  }
  Value value = quoted ? Value{quoted_dim(at, otherwise)} : eval(at);
  if (!value.expr.type().is<PrimType>()) fail(at, "expected a dim");
  // te of Python divides: (N / 32, K).
  const FloatImm* real = value.literal && in_te_ ? value.expr.as<FloatImm>() : nullptr;
  if (real && real->value == std::floor(real->value) && std::abs(real->value) < 1e9)
    value.expr = int_imm(static_cast<int64_t>(real->value), otherwise);
  Expr dim = value.literal ? adapt(value, otherwise, at) : value.expr;
  DType got = dtype_of(dim);
  if (!got.is_integral() || got.lanes != 1) fail(at, "expected an integer dim, got {}", to_string(got));
  if (auto known = as_int(dim); known && *known < 0) fail(at, "expected a dim from 0, got {}", *known);
  return dim;
}

std::vector<Expr> Parser::dims(const Syntax& at, DType otherwise) {
  bool is_shape = at.kind == SyntaxKind::kAttribute && at.text == "shape";
  if (auto owner = is_shape ? named_buffer(*at.children[0]) : std::nullopt)
    return buffer_type(*owner).shape;  // A.shape
  const Entity* named = is_shape && is_name(*at.children[0]) ? lookup(at.children[0]->text) : nullptr;
  const std::vector<Expr>* known = named && named->expr ? known_shape(named->expr->type()) : nullptr;
  if (known) return *known;  // x.shape of a tensor
  if (const Tuple* several = named_tuple(at)) return several->items;
  bool is_slice =
      at.kind == SyntaxKind::kSubscript && at.children.size() == 2 && at.children[1]->kind == SyntaxKind::kSlice;
  if (is_slice) return sliced(dims(*at.children[0], otherwise), *at.children[1]);  // A.shape[:-1]
  if (is_call(at) && at.children[0]->text == "tuple" && positional(at) == 0) return {};
  bool is_dims =
      is_list(at) || at.kind == SyntaxKind::kInt || is_name(at) || at.kind == SyntaxKind::kBinary || is_call(at);
  if (!is_dims) require_defined(at);
  if (!is_dims) fail(at, "expected a tuple of dims");
  std::vector<Expr> result;
  for (const Syntax* item : items(at)) {
    if (item->kind != SyntaxKind::kStarred) {
      result.push_back(dim(*item, otherwise));
      continue;
    }
    std::vector<Expr> spread = dims(*item->children[0], otherwise);  // (*A.shape[:-1], n)
    result.insert(result.end(), spread.begin(), spread.end());
  }
  return result;
}

// Dims of a graph are int64; TVM rejects other dtypes, too.
Expr Parser::graph_dim(const Expr& dim, const Syntax& at) {
  DType got = dtype_of(dim);
  if (got == kInt64 || dim.is<IntImm>()) return cast_to(dim, kInt64);
  const Var* var = dim.as<Var>();
  std::string remedy = var ? fmt::format("declare '{}' as T.int64(), or as a parameter R.Prim(\"int64\")", var->name)
                           : "cast it: T.Cast(\"int64\", ...)";
  fail(at, "dims of a graph are int64, this one is {}; {}", to_string(got), remedy);
}
std::vector<Expr> Parser::graph_dims(const Syntax& at) {
  std::vector<Expr> result = dims(at, kInt64);
  std::vector<const Syntax*> places = items(at);
  places.resize(result.size(), &at);  // the dims of x.shape share one place
  for (size_t i = 0; i < result.size(); ++i) result[i] = graph_dim(result[i], *places[i]);
  return result;
}

// Reads the shape, the dtype, and the keywords that T.Buffer, T.match_buffer, T.alloc_buffer and T.decl_buffer share.
BufferType Parser::buffer_type_of(const Syntax& call, size_t first) {
  BufferType type{};
  type.dtype = kFloat32;
  if (const Syntax* stated = arg(call, first + 1, "dtype")) type.dtype = dtype(*stated);
  type.shape = dims(required(call, first, "shape"), kInt32);
  if (const Syntax* data = arg(call, first + 2, "data"); !is_none(data)) {
    type.data = scalar(*data);
    if (!dtype_of(*type.data).is_handle()) fail(*data, "expected a pointer, got {}", to_string(dtype_of(*type.data)));
  }
  // T.int32() in the place of a number is a new variable without a name.
  auto number = [&](const Syntax& item, const char* name) -> Expr {
    std::optional<Type> made = is_call(item) ? free_var_type(item, false) : std::nullopt;
    if (!made || !made->as<PrimType>()->dtype.is_integral()) return dim(item, kInt32);
    VarRef var = make_var(name, *made, span(item));
    add_undefined(var);
    return var;
  };
  if (const Syntax* strides = arg(call, first + 3, "strides"); !is_none(strides)) {
    std::set<std::string_view> texts;
    for (const Syntax* item : items(*strides)) {
      // Of ("stride", "stride") each is a variable.
      bool again = item->kind == SyntaxKind::kString && !texts.insert(item->text).second;
      if (again) type.strides.push_back(make_var(string(*item), prim_type(kInt32), span(*item)));
      if (again) add_undefined(type.strides.back());
      if (!again) type.strides.push_back(number(*item, "stride"));
    }
    if (!type.strides.empty() && type.strides.size() != type.shape.size())
      fail(*strides, "{} strides for {} dims", type.strides.size(), type.shape.size());
  }
  if (const Syntax* offset = arg(call, first + 4, "elem_offset"); !is_none(offset))
    type.elem_offset = number(*offset, "offset");
  if (const Syntax* scope = arg(call, first + 5, "scope")) type.scope = string(*scope);
  if (const Syntax* align = arg(call, first + 6, "align")) {
    int64_t bytes = constant_int(*align);
    if (bytes != -1) type.data_alignment = bytes;
  }
  if (const Syntax* factor = arg(call, first + 7, "offset_factor")) type.offset_factor = constant_int(*factor);
  if (const Syntax* kind = arg(call, first + 8, "buffer_type"); !is_none(kind)) {
    std::string text = string(*kind);
    if (text != "auto" && text != "auto_broadcast" && text != "default" && !text.empty())
      fail(*kind, "unknown kind of buffer '{}'; expected \"auto\" or \"default\"", text);
    type.auto_broadcast = text.starts_with("auto");
  }
  if (const Syntax* separators = arg(call, first + 9, "axis_separators"); !is_none(separators)) {
    for (const Syntax* item : items(*separators)) {
      int64_t axis = constant_int(*item);
      if (axis < 0 || axis > std::ssize(type.shape))
        fail(*item, "separator {} is out of range for a buffer of {} dims", axis, type.shape.size());
      type.axis_separators.push_back(axis);
    }
  }
  if (const Syntax* layout = keyword(call, "layout"); !is_none(layout) && string(*layout) != "default")
    report(unsupported(*layout), "buffers with a layout are not supported yet");
  return type;
}

Type Parser::tensor_type_of(const Syntax* call, const Syntax& at) {
  TensorType result{};
  result.ndim = -1;
  if (!call) return make(std::move(result), span(at));
  const Syntax* shape = arg(*call, 0, "shape");
  const Syntax* stated = arg(*call, 1, "dtype");
  // R.Tensor("float32") gives the dtype alone; a quoted name is a dim only inside a tuple.
  if (shape && shape->kind == SyntaxKind::kString && !stated) std::swap(shape, stated);
  if (!is_none(shape) && shape->text != "_") {
    const Entity* known = is_name(*shape) ? lookup(shape->text) : nullptr;
    if (known && known->expr && known->expr->type().is<ShapeType>()) {
      result.shape = *known->expr;
      result.ndim = known_rank(known->expr->type());
    } else {
      if (is_call(*shape) && callee_path(*shape) == "R.shape") shape = &required(*shape, 0, "value");
      if (is_name(*shape)) require_defined(*shape);
      if (!is_list(*shape) && shape->kind != SyntaxKind::kAttribute)
        fail(*shape, "expected a tuple of dims: R.Tensor((n, 4), dtype=...)");
      // In 2022 `_` stood for a dim that is not known: Tensor[(_, _), "float32"].
      bool is_open = is_list(*shape) && std::ranges::any_of(shape->children, [&](const Syntax* item) {
                       return is_name(*item) && item->text == "_" && !lookup("_");
                     });
      std::vector<Expr> values = is_open ? std::vector<Expr>() : graph_dims(*shape);
      result.ndim = is_open ? std::ssize(shape->children) : std::ssize(values);
      if (!is_open) result.shape = shape_expr(std::move(values), span(*shape));
    }
  }
  bool is_stated = !is_none(stated) && stated->text != "_";
  if (is_stated && !(stated->kind == SyntaxKind::kString && string(*stated).empty())) result.dtype = dtype(*stated);
  if (const Syntax* rank = keyword(*call, "ndim")) {
    int64_t ndim = constant_int(*rank);
    if (ndim < -1) fail(*rank, "expected a rank from -1, got {}", ndim);
    if (result.shape && result.ndim >= 0 && ndim != result.ndim)
      fail(*rank, "ndim is {}, but the shape has {} dims", ndim, result.ndim);
    result.ndim = ndim;
  }
  bool distributed = keyword(*call, "device_mesh") || type_name(at) == "R.DTensor";
  const Syntax* device = distributed ? nullptr : arg(*call, 2, "vdevice");
  if (!is_none(device)) result.vdevice = vdevice_name(*device);
  return make(std::move(result), span(at));
}

// Reads "S[0], R"; spaces do not count.
std::string Parser::placement(const Syntax& at) {
  std::string result;
  for (char c : string(at)) {
    if (c != ' ') result += c == ',' ? ", " : std::string(1, c);
  }
  return result;
}

// Reads R.DTensor((128, 64), "float32", "mesh[0]", "S[0], R").
Type Parser::dtensor_type(const Syntax& at) {
  DTensorType result{tensor_type_of(&at, at), {{}, {0}}, {}};
  if (const Syntax* mesh = arg(at, 2, "device_mesh")) result.mesh = device_mesh(*mesh);
  std::vector<std::string> items(result.mesh.shape.size(), "R");
  if (const Syntax* stated = arg(at, 3, "placement")) {
    items.clear();
    for (auto part : std::views::split(placement(*stated), std::string_view(", "))) {
      const std::string& item = items.emplace_back(part.begin(), part.end());
      bool split = item.size() > 3 && item.starts_with("S[") && item.back() == ']' &&
                   item.find_first_not_of("0123456789", 2) == item.size() - 1;
      if (item != "R" && !split) fail(*stated, "expected R or S[dim] in a placement, got '{}'", item);
    }
    if (items.size() != result.mesh.shape.size())
      fail(*stated, "{} items for a mesh of {} axes", items.size(), result.mesh.shape.size());
  }
  result.placement = joined(items);
  return make(std::move(result), span(at));
}

Type Parser::callable_type(const Syntax& at) {
  FuncType result{std::nullopt, object_type(), true};
  // Dims that the params introduce are local to this type.
  NameScope scope(scopes_);
  if (const Syntax* params = arg(at, 0, "params"); !is_none(params)) {
    result.params = read_each(items(*params), &Parser::type);
  } else {
    result.pure = false;
  }
  if (const Syntax* ret = arg(at, 1, "ret"); !is_none(ret)) result.result = type(*ret);
  if (const Syntax* purity = arg(at, 2, "purity"); !is_none(purity)) result.pure = constant_bool(*purity);
  if (const Syntax* derive = arg(at, 3, "derive_func"); !is_none(derive)) {
    if (result.params) fail(*derive, "the result's type is derived where no parameters are given");
    result.derive_func = string(*derive);
  }
  return make(std::move(result), span(at));
}

// Returns the name of a type: "R.Tensor". The forms of 2022 leave out the prefix and may have brackets.
std::string Parser::type_name(const Syntax& at) {
  const Syntax& named = head_of(at);
  constexpr std::string_view kEarly[] = {"Callable", "Object", "Shape", "Tensor", "Tuple"};
  if (!is_name(named) || lookup(named.text)) return dotted(named);
  if (named.text == "Buffer" || named.text == "handle") {
    bare_forms_ = true;
    return fmt::format("T.{}", named.text);
  }
  if (named.text.ends_with("StructInfo")) return canonical_form(fmt::format("R.{}", named.text));
  if (std::ranges::find(kEarly, named.text) == std::end(kEarly)) return dotted(named);
  early_ = true;
  return fmt::format("R.{}", named.text);
}

std::optional<Type> Parser::try_type(const Syntax& at) {
  const Syntax* call = &head_of(at) != &at ? &at : nullptr;
  if (at.kind == SyntaxKind::kConstant && at.text == "None") return tuple_type({});
  // x.struct_info is the type of a value.
  bool of_value = at.kind == SyntaxKind::kAttribute && (at.text == "struct_info" || at.text == "ty");
  if (of_value && dotted(at).empty()) return expr(*at.children[0]).type();
  std::string path = type_name(at);
  check_signature(path, at);
  if (path == "R.Tensor") return tensor_type_of(call, at);
  if (path == "R.Tuple") return tuple_type_of(call, at);
  if (path == "R.Shape") return shape_type_of(call, at);
  if (path == "R.Sequence" || path == "R.Optional" || path == "R.Map") return container_type(path, at);
  if (path == "R.DTensor" && call) return dtensor_type(at);
  if (path == "R.Callable" && call) return callable_type(at);
  if (path == "R.Callable" || path == "R.PackedFunc")
    return make(FuncType{std::nullopt, object_type(), false}, span(at));
  if (path == "R.Object") return object_type();
  if (path == "R.Void") return tuple_type({});  // of 2022
  if (path == "R.Prim" && !call) fail(at, "expected a dtype: R.Prim(\"int64\")");
  if (path == "R.Prim") return scalar_type_of(at);
  if (path == "T.handle" && call) {
    const Syntax* pointee = arg(at, 0, "dtype");
    const Syntax* scope = arg(at, 1, "storage_scope");
    if (is_none(pointee)) return prim_type(DType::handle());
    return pointer_type(dtype(*pointee), scope ? string(*scope) : "global");
  }
  if (path == "T.Buffer" && call) return make(buffer_type_of(at, 0), span(at));
  std::optional<DType> scalar = path.starts_with("T.") ? parse_dtype(std::string_view(path).substr(2)) : std::nullopt;
  return scalar ? std::optional(prim_type(*scalar)) : std::nullopt;
}

// Reads R.Tuple(a, b), R.Tuple([a, b]), R.Tuple.
Type Parser::tuple_type_of(const Syntax* call, const Syntax& at) {
  std::vector<const Syntax*> parts;
  if (call) parts.assign(call->operands().begin(), call->operands().end());
  if (parts.size() == 1 && is_list(*parts[0])) parts = items(*parts[0]);
  return make(TupleType{read_each(parts, &Parser::type)}, span(at));
}

// Reads R.Sequence(item), R.Optional(item), R.Map("int64", value).
Type Parser::container_type(std::string_view path, const Syntax& at) {
  if (&head_of(at) == &at)
    fail(at, "expected the type of what is in it: {}({}R.Tensor((n, 4), \"float32\"))", path,
         path == "R.Map" ? "\"int64\", " : "");
  if (path == "R.Map") return make(MapType{dtype(required(at, 0, "key")), type(required(at, 1, "value"))}, span(at));
  Type item = type(required(at, 0, "item"));
  if (path == "R.Sequence") return make(SequenceType{std::move(item)}, span(at));
  if (item.is<OptionalType>()) fail(at, "an optional is not optional in turn");
  return make(OptionalType{std::move(item)}, span(at));
}

// Reads R.Shape([n, 4]), R.Shape(ndim=2), R.Shape.
Type Parser::shape_type_of(const Syntax* call, const Syntax&) {
  if (!call) return shape_type_of_rank(-1);
  const Syntax *values = arg(*call, 0, "values"), *rank = arg(*call, 1, "ndim");
  if (!values) return shape_type_of_rank(rank ? constant_int(*rank) : -1);
  std::vector<Expr> result = graph_dims(*values);
  if (!is_none(rank) && constant_int(*rank) != std::ssize(result))
    fail(*rank, "ndim is {}, but the shape has {} dims", constant_int(*rank), result.size());
  return shape_type(std::move(result));
}

// Reads R.Prim("int64"), R.Prim(value=n).
Type Parser::scalar_type_of(const Syntax& call) {
  const Syntax* value = arg(call, 1, "value");
  const Syntax* stated = arg(call, 0, "dtype");
  if (is_none(value)) return prim_type(dtype(required(call, 0, "dtype")));
  Expr known = value->kind == SyntaxKind::kString ? quoted_dim(*value, kInt64) : scalar(*value);
  DType result = dtype_of(known);
  if (stated && dtype(*stated) != result)
    fail(*stated, "the value is {}, not {}", to_string(result), to_string(dtype(*stated)));
  return make(PrimType{result, {}, {}, known}, span(call));
}

// Returns the type of x in x.struct_info, as Python names it where it builds a function.
std::optional<Type> Parser::type_of_named(const Syntax& at) {
  constexpr std::string_view kProperties[] = {"struct_info", "struct_info_", "ty", "checked_type"};
  const bool is_type = at.kind == SyntaxKind::kAttribute && is_name(*at.children[0]) &&
                       std::ranges::find(kProperties, at.text) != std::end(kProperties);
  const Entity* entity = is_type ? lookup(at.children[0]->text) : nullptr;
  return entity && entity->expr ? std::optional(entity->expr->type()) : std::nullopt;
}

Type Parser::type(const Syntax& at) {
  if (auto result = type_of_named(at)) return *result;
  if (auto result = try_type(at)) return *result;
  std::string path = type_name(at);
  if (path.empty()) require_defined(at);
  if (path.empty()) fail(at, "expected a type");
  if (path == "T.Buffer") fail({at, {}, "write T.Buffer((n, 4), \"float32\")"}, "T.Buffer needs a shape");
  fail({head_of(at), near_form(path)}, "unknown type '{}'", path);
}

}  // namespace relaxc::text
