// Reads assignments of a tensor program by the left side of '=': variables, axes, buffers, elements of buffers,
// scalars.
#include <algorithm>

#include "ir/kinds.h"
#include "ir/text/parsing.h"

namespace relaxc::text {

// Reads n = T.int64() and m, n = T.int64(), T.int64().
bool Parser::define_free_vars(const Line& line) {
  if (!line.value) return false;
  std::vector<const Syntax*> targets = items(*line.target), values = items(*line.value);
  if (values.empty()) return false;
  std::vector<Type> dtypes;
  for (const Syntax* value : values) {
    if (value->kind != SyntaxKind::kCall) return false;
    for (const Keyword& keyword : value->keywords) {
      if (keyword.name != "is_size_var") return false;
    }
    std::string path = dotted(*value->children[0]);
    // The forms are T.var("int64"), and T.Var("n", "int64") whose name is that on the left.
    size_t at = path == "T.var" ? 1 : path == "T.Var" || path == "T.SizeVar" ? 2 : 0;
    if (line.annotation && at == 0) return false;
    if (path == "T.handle" || (at > 0 && positional(*value) == at)) {
      dtypes.push_back(at > 0 ? prim_type(dtype(*value->children[at])) : type(*value));
      continue;
    }
    auto parsed = path.starts_with("T.") && positional(*value) == 0 ? parse_dtype(std::string_view(path).substr(2))
                                                                    : std::nullopt;
    if (!parsed) return false;
    dtypes.push_back(prim_type(*parsed));
  }
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    std::string var_name = name_of_target(*targets[i]);
    const Entity* known = lookup(var_name);
    if (known && known->is_dim && known->expr) {
      if (dtype_of(*known->expr) != dtypes[i].as<PrimType>()->dtype)
        fail(*targets[i], "'{}' is {} in the signature", var_name, to_string(dtype_of(*known->expr)));
      continue;
    }
    VarRef var = make_var(var_name, dtypes[i], span(*targets[i]));
    undefined_.insert(var.get());
    define(var_name, var);
  }
  return true;
}

bool Parser::define_axis(const Line& line) {
  if (!line.value || line.value->kind != SyntaxKind::kCall) return false;
  const Syntax& call = *line.value;
  std::string path = dotted(*call.children[0]);
  if (!path.starts_with("T.axis.")) return false;
  if (blocks_.size() < 2) fail(line, "axes belong into a block: with T.block(\"name\"):");
  if (!blocks_.back()->at_head) fail(line, "axes stand before the statements of a block");
  const Syntax* stated = keyword(call, "dtype");
  std::optional<DType> axis_dtype = stated ? std::optional(dtype(*stated)) : std::nullopt;
  if (path == "T.axis.remap") {
    remap_axes(line, call, axis_dtype);
    return true;
  }
  std::optional<IterKind> kind = iter_kind(std::string_view(path).substr(7));  // after T.axis.
  if (!kind) {
    std::optional<std::string> near =
        nearest(path, {"T.axis.spatial", "T.axis.reduce", "T.axis.scan", "T.axis.opaque", "T.axis.remap"});
    fail_with_hint(*call.children[0], fmt::format("unknown kind of axis '{}'", path.substr(7)), near.value_or(""));
  }
  std::vector<const Syntax*> targets = items(*line.target);
  if (targets.size() != 1) fail(line, "one name per axis; got {}", targets.size());
  const Syntax& dom = required(call, 0, "dom");
  const Syntax& binding = required(call, 1, "binding");
  Value value = eval(binding);
  if (!value.expr.type().is<PrimType>()) fail(binding, "expected a scalar");
  Range domain = axis_domain(dom, value.literal ? default_int_ : dtype_of(value.expr));
  Expr position = value.literal ? adapt(value, dtype_of(domain.extent), binding) : value.expr;
  add_axis(*targets[0], domain, axis_dtype, *kind, position);
  return true;
}

void Parser::add_axis(const Syntax& target, Range domain, std::optional<DType> dtype, IterKind kind, Expr value) {
  std::vector<IterVar>& axes = blocks_.back()->block.iter_vars;
  std::string var_name = name_of_target(target);
  for (const IterVar& other : axes) {
    if (other.var->name == var_name && var_name != "_") fail(target, "axis '{}' is given twice", var_name);
  }
  if (dtype) domain.extent = cast_to(domain.extent, *dtype);
  DType type = dtype_of(domain.extent);
  domain.min = cast_to(domain.min, type);
  VarRef var = make_var(var_name, prim_type(type), span(target));
  axes.push_back({var, std::move(domain), kind, std::move(value)});
  define(var_name, var);
}

// Reads vi, vj, vk = T.axis.remap("SSR", [i, j, k])
void Parser::remap_axes(const Line& line, const Syntax& call, std::optional<DType> dtype) {
  std::vector<const Syntax*> targets = items(*line.target);
  const Syntax& kinds = required(call, 0, "kinds");
  std::string letters = string(kinds);
  std::vector<const Syntax*> bindings = items(required(call, 1, "bindings"));
  if (letters.size() != bindings.size())
    fail(call, "{} letters for {} loop variables", letters.size(), bindings.size());
  if (targets.size() != bindings.size()) fail(line, "{} names for {} axes", targets.size(), bindings.size());
  size_t unknown = letters.find_first_not_of("SR");
  if (unknown != std::string::npos)
    fail(kinds, "unknown axis kind '{}'; expected S (spatial) or R (reduce)", letters[unknown]);
  for (size_t i = 0; i < letters.size(); ++i) {
    Expr value = scalar(*bindings[i]);
    auto loop = loops_.find(value.get());
    if (loop == loops_.end()) fail(*bindings[i], "expected a loop variable");
    add_axis(*targets[i], loop->second, dtype, letters[i] == 'S' ? IterKind::kSpatial : IterKind::kReduce, value);
  }
}

// Reads an extent, (min, max) or T.Range(min, max). A bare number takes the dtype of the axis's value.
Range Parser::axis_domain(const Syntax& at, DType wanted) {
  auto bound = [&](const Syntax& end) {
    Value value = eval(end);
    if (!value.expr.type().is<PrimType>()) fail(end, "expected a scalar");
    Expr result = value.literal && wanted.is_integral() ? adapt(value, wanted, end) : value.expr;
    if (!dtype_of(result).is_integral()) fail(end, "expected an integer, got {}", to_string(dtype_of(result)));
    return result;
  };
  std::string path = at.kind == SyntaxKind::kCall ? dotted(*at.children[0]) : "";
  bool is_range = (path == "T.Range" || path == "I.Range") && positional(at) == 2;
  if (!is_list(at) && !is_range) {
    Expr extent = bound(at);
    return {int_imm(0, dtype_of(extent)), extent};
  }
  std::vector<const Syntax*> ends(at.children.begin() + (is_range ? 1 : 0), at.children.end());
  if (ends.size() != 2) fail(at, "expected (min, max)");
  Value min{bound(*ends[0])}, max{bound(*ends[1])};
  match_operands(min, max, at);
  return {min.expr, extent_of(min.expr, max.expr, at)};
}

// Reads A = T.match_buffer(a, ...), where `a` is a handle param.
void Parser::match_param(const Line& line, const Syntax& call) {
  const Syntax& handle = required(call, 0, "param");
  auto it = handle.kind == SyntaxKind::kName ? handles_.find(handle.text) : handles_.end();
  if (it == handles_.end()) fail(handle, "expected a parameter of type T.handle, or a region of a buffer");
  VarRef& param = *params_[it->second];
  if (param.type().is<BufferType>()) fail(handle, "'{}' is matched twice", handle.text);
  std::string buffer_name = name_of_target(*line.target);
  VarRef var = make_var(buffer_name, make(buffer_type_of(call, 1), span(*line.value)), span(*line.target));
  visit_children(var.type(), [&](const NodeRef& number, Slot) { undefined_.erase(number.get()); });
  param = var;
  define(buffer_name, var);
}

// Reads W = T.match_buffer(A[0:16, j], (16,), strides=[s]). Variables that nothing else defines get their values from
// the source.
void Parser::window(const Line& line, const Syntax& call, const Syntax& source) {
  BufferRegion matched = region(source);
  const BufferType& from = buffer_type(matched.buffer);
  BufferType type{};
  if (arg(call, 1, "shape")) {
    type = buffer_type_of(call, 1);
    if (!arg(call, 2, "dtype")) type.dtype = from.dtype;
  } else {
    type.dtype = from.dtype;
    for (const Range& range : matched.ranges) type.shape.push_back(range.extent);
  }
  if (type.dtype != from.dtype)
    fail(call, "a window of {} on '{}', which holds {}", to_string(type.dtype), matched.buffer->name,
         to_string(from.dtype));
  size_t rank = type.shape.size(), ranges = matched.ranges.size();
  for (size_t d = 0; d < rank && d < ranges; ++d) {
    auto own = as_int(type.shape[rank - 1 - d]), of = as_int(matched.ranges[ranges - 1 - d].extent);
    if (own && of && *own != *of) fail(call, "a window of {} elements on a region of {}", *own, *of);
  }
  MatchBuffer result{std::move(matched),
                     make_var(name_of_target(*line.target), make(std::move(type), span(call)), span(*line.target)),
                     {}};
  visit_children(result.buffer.type(), [&](const NodeRef& number, Slot) {
    if (undefined_.erase(number.get())) result.defines.push_back(cast<Var>(number));
  });
  define(result.buffer->name, result.buffer);
  blocks_.back()->block.match_buffers.push_back(std::move(result));
}

namespace {

// The forms that make a buffer: allocations of a block, or of the statements after them. With data= they are views of
// existing memory.
struct AllocForm {
  std::string_view path;
  bool is_cell = false;         // one element that is assigned by its name
  const char* scope = nullptr;  // when fixed
};
constexpr AllocForm kAllocForms[] = {{"T.alloc_buffer"},
                                     {"T.sblock_alloc_buffer"},
                                     {"T.decl_buffer"},
                                     {"T.Buffer"},
                                     {"T.alloc_local", false, "local"},
                                     {"T.alloc_shared", false, "shared"},
                                     {"T.alloc_scalar", true},
                                     {"T.local_scalar", true, "local"},
                                     {"T.shared_scalar", true, "shared"}};

}  // namespace

bool Parser::define_buffer(const Line& line, std::vector<Stmt>& out) {
  if (!line.value || line.value->kind != SyntaxKind::kCall) return false;
  const Syntax& call = *line.value;
  std::string path = dotted(*call.children[0]);
  BlockState& state = *blocks_.back();
  if (path == "T.match_buffer") {
    const Syntax& source = required(call, 0, "param");
    if (source.kind != SyntaxKind::kSubscript) {
      match_param(line, call);
      return true;
    }
    if (blocks_.size() < 2 || !state.at_head) fail(line, "a window of a buffer stands at the head of a block");
    window(line, call, source);
    return true;
  }
  auto form = std::find_if(std::begin(kAllocForms), std::end(kAllocForms),
                           [&](const AllocForm& row) { return row.path == path; });
  if (form == std::end(kAllocForms)) return false;
  std::string buffer_name = name_of_target(*line.target);
  BufferType buffer_type = form->is_cell ? cell_type(call) : buffer_type_of(call, 0);
  bool says_scope = form->is_cell && arg(call, 1, "scope");
  if (form->scope && !says_scope) buffer_type.scope = form->scope;
  bool is_view = buffer_type.data.has_value();
  VarRef var = make_var(buffer_name, make(std::move(buffer_type), span(call)), span(*line.target));
  const Syntax* notes = keyword(call, "annotations");
  Attrs annotations = is_none(notes) ? Attrs() : attrs(*notes);
  define(buffer_name, var);
  if (form->is_cell) scopes_.find_here(buffer_name)->form = Entity::Form::kCell;
  // Before 0.24, T.alloc_buffer belongs to the enclosing block, wherever it stands; later it is a statement.
  bool in_block = (path == "T.alloc_buffer" || path == "T.sblock_alloc_buffer") && !is_view;
  bool hoists = in_block && (path == "T.sblock_alloc_buffer" || !mutable_scalars_);
  if (!in_block) body_starts();
  Stmt allocation = make(AllocBuffer{var, std::move(annotations)}, span(line));
  if (hoists && blocks_.size() == 1) {
    root_allocations_.push_back(allocation);
  } else if (hoists && allocation.as<AllocBuffer>()->annotations.empty()) {
    state.block.alloc_buffers.push_back(var);
  } else {
    out.push_back(allocation);
  }
  return true;
}

// Reads T.alloc_scalar("int32", scope)
BufferType Parser::cell_type(const Syntax& call) {
  BufferType result{};
  result.dtype = dtype(required(call, 0, "dtype"));
  result.shape = {int_imm(1, kInt32)};
  const Syntax* scope = arg(call, 1, "scope");
  result.scope = scope ? string(*scope) : "local";
  return result;
}

void Parser::store(const Syntax& target, const Syntax& value_at, std::optional<Value> value, std::vector<Stmt>& out) {
  Buffer destination = buffer(*target.children[0]);
  BufferStore payload{destination, int_imm(0), indices(destination, target), std::nullopt};
  if (!value) value = eval(value_at);
  const PrimType* value_type = value->expr.type().as<PrimType>();
  if (value_type && buffer_type(destination).dtype.lanes == 1)
    widen_last(payload.indices, value_type->dtype.lanes, span(target));
  int index_lanes = payload.indices.empty() ? 1 : dtype_of(payload.indices.back()).lanes;
  DType element = buffer_type(destination).dtype;
  DType wanted = element.with_lanes(element.lanes * index_lanes);
  if (!value_type) fail(value_at, "expected a scalar");
  payload.value = value->literal ? adapt(*value, wanted, value_at) : value->expr;
  DType got = dtype_of(payload.value);
  if (got.lanes == 1 && wanted.lanes > 1) {
    payload.value = broadcast(payload.value, wanted.lanes, span(value_at));
    got = dtype_of(payload.value);
  }
  if (got != wanted) {
    auto number = [](DType d) { return d.is_integral() || d.is_float(); };
    bool narrows = got.is_float() && !wanted.is_float();
    if (got.lanes != wanted.lanes || !number(got) || !number(wanted) || narrows) {
      report(value_at, "{} stored to '{}', which holds {}", to_string(got), destination->name, to_string(wanted))
          .notes.push_back(fmt::format("convert it: T.Cast(\"{}\", ...)", to_string(wanted)));
      throw Failed();
    }
    payload.value = cast_to(payload.value, wanted, span(value_at));
  }
  out.push_back(make(std::move(payload), span(target)));
}

void Parser::tir_assign(const Line& line, std::vector<Stmt>& out) {
  if (!line.value && mutable_scalars_ && line.annotation && line.target->kind == SyntaxKind::kName) {
    // x: T.int32 declares a scalar that is assigned later.
    Type stated = type(*line.annotation);
    if (!stated.is<PrimType>()) fail(*line.annotation, "expected a scalar type");
    body_starts();
    return declare_cell(*line.target, stated.as<PrimType>()->dtype, out);
  }
  if (!line.value) fail(line, "expected a value");
  if (names_module(line) || define_free_vars(line) || define_axis(line) || define_buffer(line, out)) return;
  body_starts();
  if (line.target->kind == SyntaxKind::kSubscript) return store(*line.target, *line.value, std::nullopt, out);
  if (line.target->kind == SyntaxKind::kTuple) return unpack_scalars(line, out);
  std::string var_name = name_of_target(*line.target);
  const Syntax& source = *line.value;
  bool is_bind = source.kind == SyntaxKind::kCall && dotted(*source.children[0]) == "T.bind";
  Value value = eval(is_bind ? required(source, 0, "value") : source);
  bool is_meta = source.kind == SyntaxKind::kCall && dotted(*source.children[0]) == "T.meta_var";
  if (value.expr.type().is<BufferType>() || (is_meta && value.expr.type().is<PrimType>())) {
    define(var_name, value.expr);  // another name for a buffer, or for a value that Python computed
    return;
  }
  if (!value.expr.type().is<PrimType>()) fail(*line.value, "expected a scalar");
  std::optional<Type> stated;
  if (line.annotation) {
    // x: T.let = e and x: T.let[T.int32] = e are later spellings.
    const Syntax* at = line.annotation;
    bool is_let = at->kind == SyntaxKind::kSubscript && dotted(*at->children[0]) == "T.Let" && at->children.size() == 2;
    if (is_let) at = at->children[1];
    if (dotted(*at) != "T.Let") stated = type(*at);
    const PrimType* prim = stated ? stated->as<PrimType>() : nullptr;
    if (stated && !prim) fail(*at, "expected a scalar type");
    if (prim) value = {adapt(value, prim->dtype, *line.value)};
    if (prim && dtype_of(value.expr) != prim->dtype)
      fail(*line.value, "'{}' is {}, got {}", var_name, to_string(prim->dtype), to_string(dtype_of(value.expr)));
  }
  const Entity* known = lookup(var_name);
  if (cells_.contains(var_name) || (known && known->form == Entity::Form::kCell))
    return assign_scalar(*line.target, value, out);
  VarRef var = make_var(var_name, stated.value_or(value.expr.type()), span(*line.target));
  out.push_back(make(Bind{var, value.expr}, span(line)));
  define(var_name, var);
}

// Reads m, n = A.shape, which gives the dims other names, and x, y = a + 1, b.
void Parser::unpack_scalars(const Line& line, std::vector<Stmt>& out) {
  std::vector<const Syntax*> targets = items(*line.target), values = items(*line.value);
  if (line.value->kind == SyntaxKind::kAttribute && line.value->text == "shape") {
    std::vector<Expr> shape = dims(*line.value, kInt32);
    if (shape.size() != targets.size()) fail(line, "{} names for {} dims", targets.size(), shape.size());
    for (size_t i = 0; i < targets.size(); ++i) define(name_of_target(*targets[i]), shape[i]);
    return;
  }
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  std::vector<Value> read;
  for (const Syntax* value : values) read.push_back(eval(*value));
  for (size_t i = 0; i < targets.size(); ++i) assign_scalar(*targets[i], read[i], out);
}

// Finds names that the function assigns again where they are visible.
void Parser::find_cells(const Lines& lines, std::set<std::string_view> visible) {
  for (const Line* line : lines) {
    bool assigns = line->kind == LineKind::kAssign || line->kind == LineKind::kAugmented;
    if (assigns && line->target->kind == SyntaxKind::kName) {
      bool again = !visible.insert(line->target->text).second || line->kind == LineKind::kAugmented;
      if (again) cells_.insert(std::string(line->target->text));
    }
    find_cells(line->body, visible);
    find_cells(line->otherwise, visible);
  }
}

void Parser::assign_scalar(const Syntax& target, Value value, std::vector<Stmt>& out) {
  std::string var_name = name_of_target(target);
  if (!value.expr.type().is<PrimType>()) fail(target, "expected a scalar");
  const Entity* known = lookup(var_name);
  bool assigned = known && known->form == Entity::Form::kCell;
  if (!assigned && !cells_.contains(var_name)) {
    VarRef var = make_var(var_name, value.expr.type(), span(target));
    out.push_back(make(Bind{var, value.expr}, span(target)));
    return define(var_name, var);
  }
  if (!assigned) {
    declare_cell(target, dtype_of(value.expr), out);
    known = lookup(var_name);
  }
  Buffer cell = cast<Var>(*known->expr);
  DType wanted = buffer_type(cell).dtype;
  Expr stored = value.literal ? adapt(value, wanted, target) : value.expr;
  if (dtype_of(stored) != wanted)
    fail(target, "'{}' is {}, got {}", var_name, to_string(wanted), to_string(dtype_of(stored)));
  out.push_back(relaxc::store(cell, stored, {int_imm(0, kInt32)}, span(target)));
}

void Parser::declare_cell(const Syntax& target, DType dtype, std::vector<Stmt>& out) {
  std::string var_name = name_of_target(target);
  Buffer cell = make_buffer(var_name, dtype, {int_imm(1, kInt32)}, "local", span(target));
  out.push_back(make(AllocBuffer{cell, {}}, span(target)));
  define(var_name, cell);
  scopes_.find_here(var_name)->form = Entity::Form::kCell;
}

Value Parser::augmented(const Line& line) {
  std::optional<BinaryOp> op = operator_of(line.text);
  Value a = eval(*line.target), b = eval(*line.value);
  auto is_float = [](const Value& value) {
    const PrimType* type = value.expr.type().as<PrimType>();
    return type && type->dtype.is_float();
  };
  if (!op || (*op == BinaryOp::kDiv && !is_float(a) && !is_float(b)))
    fail_with_hint(*line.value, fmt::format("'{}=' of integers is ambiguous", line.text), "//=");
  return binary(*op, a, b, *line.value, false);
}

}  // namespace relaxc::text
