#include <algorithm>

#include "ir/text/parsing.h"

namespace relaxc::text {

Expr Parser::quoted_dim(const Syntax& at, DType otherwise) {
  std::string error, content = unquote(at.text, error);
  if (!error.empty()) fail(at, "{}", error);
  // The content stands in the file, one quote in from the string's start.
  size_t prefix = std::min(at.text.find_first_of("\"'"), at.text.size()) + 1;
  size_t length = at.text.size() > prefix ? at.text.size() - prefix - 1 : 0;
  std::string_view inner = at.text.substr(prefix, length);
  if (inner != content) fail(at, "expected an expression without escapes");
  size_t before = diagnostics_.all().size();
  const Syntax* parsed =
      parse_expression(Source{origin_, inner, at.line, at.column + static_cast<uint32_t>(prefix)}, tree_, diagnostics_);
  if (!parsed || diagnostics_.all().size() > before) throw Failed();
  // Names that nothing defines become dims.
  std::vector<const Syntax*> work = {parsed};
  while (!work.empty()) {
    const Syntax* node = work.back();
    work.pop_back();
    if (!node) continue;
    if (node->kind == SyntaxKind::kName && !lookup(node->text) && !prefixes_.contains(node->text)) {
      VarRef var = make_var(std::string(node->text), prim_type(otherwise), span(*node));
      scopes_.back().insert_or_assign(std::string(node->text), Entity{var, false, true});
    }
    work.insert(work.end(), node->children.begin(), node->children.end());
  }
  return scalar(*parsed, otherwise);
}

Expr Parser::dim(const Syntax& at, DType otherwise) {
  if (at.kind == SyntaxKind::kString) return quoted_dim(at, otherwise);
  if (at.kind == SyntaxKind::kName && quoted_ && !lookup(at.text)) {
    fail_with_hint(at, fmt::format("undefined dim '{}'; in a signature a new dim stands in quotes", at.text),
                   fmt::format("\"{}\"", at.text));
  }
  Value value = eval(at);
  if (!value.expr.type().is<PrimType>()) fail(at, "expected a dim");
  Expr result = value.literal ? adapt(value, otherwise, at) : value.expr;
  DType got = dtype_of(result);
  if (!got.is_integral() || got.lanes != 1) fail(at, "expected an integer dim, got {}", to_string(got));
  if (auto known = as_int(result); known && *known < 0) fail(at, "a dim of {}; dims are not negative", *known);
  return result;
}

std::vector<Expr> Parser::dims(const Syntax& at, DType otherwise) {
  if (at.kind != SyntaxKind::kTuple && at.kind != SyntaxKind::kList && at.kind != SyntaxKind::kInt &&
      at.kind != SyntaxKind::kName && at.kind != SyntaxKind::kBinary && at.kind != SyntaxKind::kCall)
    fail(at, "expected a tuple of dims");
  std::vector<Expr> result;
  for (const Syntax* item : items(at)) result.push_back(dim(*item, otherwise));
  return result;
}

// shape, dtype, and the keywords that T.Buffer, T.match_buffer, T.alloc_buffer and T.decl_buffer share.
BufferType Parser::buffer_type_of(const Syntax& call, size_t first) {
  check_keywords(call, {"shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor",
                        "buffer_type", "axis_separators", "annotations", "logical_scope", "layout"});
  BufferType type{};
  type.dtype = kFloat32;
  if (const Syntax* stated = arg(call, first + 1, "dtype")) type.dtype = dtype(*stated);
  type.shape = dims(required(call, first, "shape"), kInt32);
  if (positional(call) > first + 2) fail(*call.children[first + 3], "expected shape and dtype, then keyword arguments");
  if (const Syntax* data = keyword(call, "data"); data && data->text != "None")
    fail(*data, "buffers over a pointer (data=) are not supported yet");
  const Syntax* strides = keyword(call, "strides");
  if (strides && strides->text != "None") {
    for (const Syntax* item : items(*strides)) type.strides.push_back(dim(*item, kInt32));
    if (!type.strides.empty() && type.strides.size() != type.shape.size())
      fail(*strides, "{} strides for {} dims", type.strides.size(), type.shape.size());
  }
  const Syntax* offset = keyword(call, "elem_offset");
  if (offset && offset->text != "None") type.elem_offset = dim(*offset, kInt32);
  if (const Syntax* scope = keyword(call, "scope")) type.scope = string(*scope);
  if (const Syntax* align = keyword(call, "align")) {
    int64_t bytes = constant_int(*align);
    if (bytes != -1) type.data_alignment = bytes;
  }
  if (const Syntax* factor = keyword(call, "offset_factor")) type.offset_factor = constant_int(*factor);
  return type;
}

Type Parser::tensor_type_of(const Syntax* call, const Syntax& at) {
  TensorType result{};
  result.ndim = -1;
  if (!call) return make(std::move(result), span(at));
  check_keywords(*call, {"shape", "dtype", "ndim", "vdevice"});
  const Syntax* shape = arg(*call, 0, "shape");
  const Syntax* stated = arg(*call, 1, "dtype");
  // R.Tensor("float32") gives the dtype alone; a quoted name is a dim only inside of a tuple.
  if (shape && shape->kind == SyntaxKind::kString && !stated) std::swap(shape, stated);
  if (shape && shape->text != "None") {
    Entity const* known = shape->kind == SyntaxKind::kName ? lookup(shape->text) : nullptr;
    bool is_shape_var = known && known->expr && known->expr->type().is<ShapeType>();
    if (is_shape_var) {
      result.shape = *known->expr;
      result.ndim = known_rank(known->expr->type());
    } else {
      if (shape->kind != SyntaxKind::kTuple && shape->kind != SyntaxKind::kList)
        fail(*shape, "expected a tuple of dims: R.Tensor((n, 4), dtype=...)");
      std::vector<Expr> values = dims(*shape, kInt64);
      result.ndim = static_cast<int64_t>(values.size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = cast_to(values[i], kInt64, span(*shape));
      result.shape = shape_expr(std::move(values), span(*shape));
    }
  }
  if (stated && stated->text != "None" && !(stated->kind == SyntaxKind::kString && string(*stated).empty()))
    result.dtype = dtype(*stated);
  if (const Syntax* rank = keyword(*call, "ndim")) {
    int64_t ndim = constant_int(*rank);
    if (ndim < -1) fail(*rank, "a rank of {}", ndim);
    if (result.shape && result.ndim >= 0 && ndim != result.ndim)
      fail(*rank, "ndim is {}, but the shape has {} dims", ndim, result.ndim);
    result.ndim = ndim;
  }
  if (const Syntax* device = keyword(*call, "vdevice")) result.vdevice = string(*device);
  return make(std::move(result), span(at));
}

Type Parser::callable_type(const Syntax& at) {
  check_keywords(at, {"params", "ret", "purity", "derive_func"});
  FuncType result{std::nullopt, object_type(), true};
  // Dims that the params introduce belong to this type alone.
  NameScope scope(*this);
  if (const Syntax* params = arg(at, 0, "params"); params && params->text != "None") {
    result.params.emplace();
    for (const Syntax* param : items(*params)) result.params->push_back(type(*param));
  } else {
    result.pure = false;
  }
  if (const Syntax* ret = arg(at, 1, "ret")) result.result = type(*ret);
  if (const Syntax* purity = arg(at, 2, "purity")) result.pure = constant_bool(*purity);
  return make(std::move(result), span(at));
}

std::optional<Type> Parser::try_type(const Syntax& at) {
  const Syntax* call = at.kind == SyntaxKind::kCall ? &at : nullptr;
  if (at.kind == SyntaxKind::kConstant && at.text == "None") return tuple_type({});
  std::string path = dotted(call ? *at.children[0] : at);
  if (path == "R.Tensor") return tensor_type_of(call, at);
  if (path == "R.Object") return object_type();
  if (path == "R.Callable") {
    if (call) return callable_type(at);
    return make(FuncType{std::nullopt, object_type(), false}, span(at));
  }
  if (path == "R.PackedFunc") return make(FuncType{std::nullopt, object_type(), false}, span(at));
  if (path == "R.Tuple") {
    std::vector<Type> types;
    if (call) {
      std::vector<const Syntax*> parts(at.children.begin() + 1, at.children.end());
      if (parts.size() == 1 && (parts[0]->kind == SyntaxKind::kList || parts[0]->kind == SyntaxKind::kTuple))
        parts.assign(parts[0]->children.begin(), parts[0]->children.end());
      for (const Syntax* part : parts) types.push_back(type(*part));
    }
    return make(TupleType{std::move(types)}, span(at));
  }
  if (path == "R.Shape") {
    if (!call) return shape_type_of_rank(-1);
    check_keywords(at, {"values", "ndim"});
    if (const Syntax* values = arg(at, 0, "values")) {
      std::vector<Expr> result;
      for (const Syntax* item : items(*values)) result.push_back(cast_to(dim(*item, kInt64), kInt64));
      return shape_type(std::move(result));
    }
    const Syntax* rank = keyword(at, "ndim");
    return shape_type_of_rank(rank ? constant_int(*rank) : -1);
  }
  if (path == "R.Prim") {
    if (!call) fail(at, "expected a dtype: R.Prim(\"int64\")");
    check_keywords(at, {"dtype", "value"});
    if (const Syntax* value = keyword(at, "value")) return prim_type(dtype_of(dim(*value, kInt64)));
    return prim_type(dtype(required(at, 0, "dtype")));
  }
  if (path.starts_with("T.")) {
    if (auto parsed = parse_dtype(std::string_view(path).substr(2))) return prim_type(*parsed);
    if (path == "T.Buffer" && call) return make(buffer_type_of(at, 0), span(at));
  }
  return std::nullopt;
}

Type Parser::type(const Syntax& at) {
  if (auto result = try_type(at)) return *result;
  const Syntax& named = at.kind == SyntaxKind::kCall ? *at.children[0] : at;
  std::string path = dotted(named);
  std::optional<std::string> near =
      path.empty() ? std::nullopt
                   : nearest(path, {"R.Tensor", "R.Object", "R.Callable", "R.Tuple", "R.Shape", "R.Prim", "T.Buffer",
                                    "T.handle", "T.int64", "T.int32", "T.float32", "T.bool"});
  fail_with_hint(at, path.empty() ? "expected a type" : fmt::format("unknown type '{}'", path), near.value_or(""));
}

}  // namespace relaxc::text
