// Reads assignments of a tensor program: to variables, axes, buffers, elements of buffers, scalars.
#include <algorithm>

#include "ir/text/parse_te.h"

namespace relaxc::text {

// Returns the type of the variable that T.int64(), T.handle(...), T.var("int64") or T.Var("n", "int64") makes.
std::optional<Type> Parser::free_var_type(const Syntax& at, bool annotated) {
  std::string path = callee_path(at);
  if (std::ranges::any_of(at.keywords, [](const Keyword& each) { return each.name != "is_size_var"; }))
    return std::nullopt;
  size_t stated = path == "T.var" ? 1 : path == "T.Var" || path == "T.SizeVar" ? 2 : 0;
  bool only_name = path == "T.var" && positional(at) == 1 && at.children[1]->kind == SyntaxKind::kString &&
                   !parse_dtype(string(*at.children[1]));
  if (only_name) return prim_type(kInt32);  // te.var("n")
  if (stated > 0)
    return positional(at) == stated ? std::optional(prim_type(dtype(*at.children[stated]))) : std::nullopt;
  if (path.ends_with(".sym_var") && positional(at) == 0) return prim_type(kInt64);
  if (annotated || !path.starts_with("T.")) return std::nullopt;
  if (path == "T.handle") return type(at);
  std::optional<DType> scalar = positional(at) == 0 ? parse_dtype(std::string_view(path).substr(2)) : std::nullopt;
  return scalar ? std::optional(prim_type(*scalar)) : std::nullopt;
}

// Reads n = T.int64() and m, n = T.int64(), T.int64().
bool Parser::define_free_vars(const Line& line) {
  if (!line.value) return false;
  std::vector<const Syntax*> targets = items(*line.target), values = items(*line.value);
  std::vector<std::optional<Type>> types =
      map_each(values, [&](const Syntax* value) { return free_var_type(*value, line.annotation != nullptr); });
  if (std::ranges::none_of(types, [](const std::optional<Type>& made) { return made.has_value(); })) return false;
  if (targets.size() != values.size()) fail(line, "{} names for {} values", targets.size(), values.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!types[i]) {  // 16 in n, c = T.int64(), T.int64(16)
      Expr number = scalar(*values[i]);
      if (!as_int(number)) fail(*values[i], "expected a variable such as T.int64(), or a number");
      define(name_of_target(*targets[i]), number);
      continue;
    }
    const Entity* known = lookup(name_of_target(*targets[i]));
    if (!known || !known->is_dim || !known->expr) {
      add_undefined(define_var(*targets[i], *types[i]));
    } else if (DType stated = dtype_of(*known->expr);
               stated != types[i]->as<PrimType>()->dtype && !callee_path(*values[i]).ends_with(".sym_var")) {
      fail(*targets[i],
           "'{}' is {} in the signature; leave this line out, or declare the buffer by T.handle and T.match_buffer",
           targets[i]->text, to_string(stated));
    }
  }
  return true;
}

bool Parser::define_axis(const Line& line) {
  const Syntax& call = *line.value;
  std::string path = callee_path(call);
  if (!path.starts_with("T.axis.")) return false;
  if (blocks_.size() < 2) fail(line, "axes belong in a block: with T.block(\"name\"):");
  if (!blocks_.back()->at_head) fail(line, "axes stand before the statements of a block");
  const Syntax* stated = keyword(call, "dtype");
  std::optional<DType> axis_dtype = stated ? std::optional(dtype(*stated)) : std::nullopt;
  std::vector<const Syntax*> targets = items(*line.target);
  if (path == "T.axis.remap") {
    remap_axes(targets, call, axis_dtype);
    return true;
  }
  std::optional<IterKind> kind = kind_named(kIterKinds, std::string_view(path).substr(7));  // after T.axis.
  if (!kind) fail({*call.children[0], near_form(path)}, "unknown kind of axis '{}'", path.substr(7));
  if (targets.size() != 1) fail(line, "one name per axis; got {}", targets.size());
  const Syntax &dom = required(call, 0, "dom"), &binding = required(call, 1, "binding");
  Value value = scalar_value(binding);
  Range domain = axis_domain(dom, value.literal ? default_int_ : dtype_of(value.expr));
  Expr position = value.literal ? adapt(value, dtype_of(domain.extent), binding) : value.expr;
  add_axis(*targets[0], domain, axis_dtype, *kind, position);
  return true;
}

void Parser::add_axis(const Syntax& target, Range domain, std::optional<DType> dtype, IterKind kind, Expr value,
                      const std::string& suffix) {
  std::vector<IterVar>& axes = blocks_.back()->block.iter_vars;
  std::string name = name_of_target(target) + suffix;
  bool known = std::ranges::any_of(axes, [&](const IterVar& other) { return other.var->name == name; });
  if (known && name != "_") fail(target, "axis '{}' is given twice", name);
  if (dtype) domain.extent = cast_to(domain.extent, *dtype);
  domain.min = cast_to(domain.min, dtype_of(domain.extent));
  VarRef var = make_var(name, prim_type(dtype_of(domain.extent)), span(target));
  if (suffix.empty()) define(name, var);
  axes.push_back({var, std::move(domain), kind, std::move(value)});
}

// Reads vi, vj, vk = T.axis.remap("SSR", [i, j, k])
void Parser::remap_axes(const std::vector<const Syntax*>& targets, const Syntax& call, std::optional<DType> dtype) {
  const Syntax& kinds = required(call, 0, "kinds");
  std::string letters = string(kinds);
  std::vector<const Syntax*> bindings = items(required(call, 1, "bindings"));
  std::vector<Expr> values;
  for (const Syntax* binding : bindings) {
    const Tuple* several = named_tuple(*binding);
    if (!several) values.push_back(scalar(*binding));
    if (several) values.insert(values.end(), several->items.begin(), several->items.end());
  }
  if (letters.size() != values.size()) fail(call, "{} letters for {} loop variables", letters.size(), values.size());
  bool together = targets.size() == 1 && values.size() > 1;  // v = T.axis.remap("SS", [i, j])
  if (!together && targets.size() != values.size()) fail(call, "{} names for {} axes", targets.size(), values.size());
  auto row_of = [](char letter) { return std::ranges::find(kIterKinds, letter, &IterKindRow::letter); };
  for (char letter : letters)
    if (row_of(letter) == std::end(kIterKinds))
      fail(kinds, "unknown axis kind '{}'; expected S (spatial) or R (reduce)", letter);
  std::vector<Expr> axes;
  for (size_t i = 0; i < letters.size(); ++i) {
    auto loop = loops_.find(values[i].get());
    if (loop == loops_.end()) fail(*bindings[std::min(i, bindings.size() - 1)], "expected a loop variable");
    add_axis(*targets[together ? 0 : i], loop->second, dtype, row_of(letters[i])->kind, values[i],
             together ? fmt::format("_{}", i) : "");
    axes.push_back(blocks_.back()->block.iter_vars.back().var);
  }
  if (together) define(name_of_target(*targets[0]), tuple(std::move(axes), span(*targets[0])));
}

// Reads an extent, (min, max) or T.Range(min, max). A bare number takes the dtype of the axis's value.
Range Parser::axis_domain(const Syntax& at, DType wanted) {
  auto bound = [&](const Syntax& end) {
    Value value = scalar_value(end);
    Expr result = value.literal && wanted.is_integral() ? adapt(value, wanted, end) : value.expr;
    if (!dtype_of(result).is_integral()) fail(end, "expected an integer, got {}", to_string(dtype_of(result)));
    return result;
  };
  std::string path = callee_path(at);
  bool is_range = (path == "T.Range" || path == "I.Range") && positional(at) == 2;
  if (!is_list(at) && !is_range) return whole_range(bound(at));
  std::span<const Syntax* const> ends = is_range ? at.operands() : std::span(at.children);
  if (ends.size() != 2) fail(at, "expected (min, max)");
  Value min{bound(*ends[0])}, max{bound(*ends[1])};
  match_operands(min, max, at);
  return {min.expr, extent_of(min.expr, max.expr, at)};
}

// Reads A = T.match_buffer(a, ...), where `a` is a handle param.
void Parser::match_param(const Syntax& target, const Syntax& call) {
  const Syntax& handle = required(call, 0, "param");
  auto it = is_name(handle) ? handles_.find(handle.text) : handles_.end();
  if (it == handles_.end()) require_defined(handle);
  if (it == handles_.end()) fail(handle, "expected a parameter of type T.handle, or a region of a buffer");
  VarRef& param = *params_[it->second];
  if (param.type().is<BufferType>()) fail(handle, "'{}' is matched twice", handle.text);
  param = define_var(target, make(buffer_type_of(call, 1), span(call)));
  visit_children(param.type(), [&](const NodeRef& number, Slot) { undefined_.erase(number.get()); });
}

// Reads W = T.match_buffer(A[0:16, j], (16,), strides=[s]). Undefined variables get their values from the source.
void Parser::window(const Syntax& target, const Syntax& call, const Syntax& source) {
  BufferRegion matched = region(source);
  const BufferType& from = buffer_type(matched.buffer);
  BufferType type{};
  bool says_shape = arg(call, 1, "shape");
  if (says_shape) type = buffer_type_of(call, 1);
  if (!says_shape || !arg(call, 2, "dtype")) type.dtype = from.dtype;
  if (!says_shape) type.shape = map_each(matched.ranges, &Range::extent);
  if (type.dtype != from.dtype)
    fail(call, "the window is of {}, but '{}' holds {}", to_string(type.dtype), matched.buffer->name,
         to_string(from.dtype));
  size_t rank = type.shape.size(), ranges = matched.ranges.size();
  if (rank > ranges) fail(call, "the window has {} dims, its region has {}", rank, ranges);
  for (size_t d = 0; d < ranges - rank; ++d) {
    auto of = as_int(matched.ranges[d].extent);
    if (of && *of != 1) fail(call, "the window has {} dims, and dim {} of its region has {} elements", rank, d, *of);
  }
  for (size_t d = 0; d < rank && d < ranges; ++d) {
    auto has = as_int(type.shape[rank - 1 - d]), of = as_int(matched.ranges[ranges - 1 - d].extent);
    if (has && of && *has != *of) fail(call, "the window has {} elements where its region has {}", *has, *of);
  }
  MatchBuffer result{std::move(matched), define_var(target, make(std::move(type), span(call))), {}};
  visit_children(result.buffer.type(), [&](const NodeRef& number, Slot) {
    if (undefined_.erase(number.get())) result.defines.push_back(cast<Var>(number));
  });
  blocks_.back()->block.match_buffers.push_back(std::move(result));
}

namespace {

// The forms that make a buffer: an allocation or, with data=, a view of existing memory.
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
                                     {"T.alloc_cell", true, "local"},
                                     {"T.alloc_scalar", true, "local"},
                                     {"T.local_scalar", true, "local"},
                                     {"T.shared_scalar", true, "shared"}};

}  // namespace

bool Parser::define_buffer(const Syntax& target, const Syntax& call) {
  std::string path = callee_path(call);
  BlockState& state = *blocks_.back();
  if (path == "T.match_buffer") {
    const Syntax& source = required(call, 0, "param");
    bool is_window = source.kind == SyntaxKind::kSubscript;
    if (is_window && (blocks_.size() < 2 || !state.at_head))
      fail(target, "a window of a buffer stands at the head of a block");
    is_window ? window(target, call, source) : match_param(target, call);
    return true;
  }
  auto form = std::ranges::find(kAllocForms, path, &AllocForm::path);
  if (form == std::end(kAllocForms)) return false;
  BufferType buffer_type{};
  if (form->is_cell) {
    buffer_type.dtype = dtype(required(call, 0, "dtype"));
    buffer_type.shape = {int_imm(1, kInt32)};
  } else {
    // RFC 70 has the pointer first: T.decl_buffer(A.data, (256,), "float32").
    const Syntax* first = positional(call) > 1 ? call.children[1] : nullptr;
    bool is_early = first && first->kind == SyntaxKind::kAttribute && first->text == "data";
    Syntax ordered = call;
    if (is_early && positional(call) == 2) ordered.keywords.push_back({*first, "data", first});
    if (is_early) std::rotate(ordered.children.begin() + 1, ordered.children.begin() + 2, ordered.children.end());
    if (is_early && positional(call) == 2) ordered.children.pop_back();
    buffer_type = buffer_type_of(ordered, 0);
  }
  if (form->scope) buffer_type.scope = form->scope;
  bool has_first = path == "T.alloc_cell";  // with its first value, and a scope that is a thread's
  if (const Syntax* scope = form->is_cell && !has_first ? arg(call, 1, "scope") : nullptr)
    buffer_type.scope = string(*scope);
  bool is_view = buffer_type.data.has_value();
  const Entity* known = is_name(target) ? scopes_.find_here(target.text) : nullptr;
  if (known && known->expr && known->expr->type().is<BufferType>())
    fail(target, "'{}' is a buffer already; give this one another name", target.text);
  Attrs annotations = this->annotations(keyword(call, "annotations"));
  VarRef var = define_var(target, make(std::move(buffer_type), span(call)),
                          form->is_cell ? Entity::Form::kCell : Entity::Form::kValue);
  // Before 0.24, T.alloc_buffer belongs to the enclosing block, wherever it stands; later it is a statement.
  bool in_block = (path == "T.alloc_buffer" || path == "T.sblock_alloc_buffer") && !is_view;
  // Where a function has blocks, one that stands outside of all loops is memory of the root block still.
  bool of_root = has_blocks_ && blocks_.size() == 1 && statement_depth_ == 1;
  bool hoists = in_block && (path == "T.sblock_alloc_buffer" || !mutable_scalars_ || of_root);
  if (!in_block) body_starts();
  Stmt allocation = make(AllocBuffer{var, std::move(annotations)}, span(target));
  if (hoists && blocks_.size() == 1) {
    root_allocations_.push_back(allocation);
  } else if (hoists && allocation.as<AllocBuffer>()->annotations.empty()) {
    state.block.alloc_buffers.push_back(var);
  } else {
    out_->push_back(allocation);
  }
  const Syntax* first = has_first ? arg(call, 1, "init") : nullptr;
  if (!is_none(first)) assign_scalar(target, eval(*first), prim_type(relaxc::buffer_type(var).dtype), *first);
  return true;
}

void Parser::store(const Syntax& target, const Syntax& value_at, std::optional<Value> value, const Syntax* mask) {
  Buffer destination = addressed(*target.children[0], positional(target));
  DType element = buffer_type(destination).dtype;
  BufferStore payload{destination, int_imm(0), indices(destination, target), std::nullopt};
  if (!value) value = eval(value_at);
  const PrimType* value_type = value->expr.type().as<PrimType>();
  if (value_type && element.lanes == 1) widen_last(payload.indices, value_type->dtype.lanes, span(target));
  DType wanted = element.with_lanes(element.lanes * index_lanes(payload.indices));
  if (!value_type) fail(value_at, "expected a scalar");
  bool is_real = value->literal && value->expr.is<FloatImm>() && wanted.is_integral();
  payload.value = value->literal && !is_real ? adapt(*value, wanted, value_at) : value->expr;
  if (dtype_of(payload.value).lanes == 1 && wanted.lanes > 1)
    payload.value = broadcast(payload.value, wanted.lanes, span(value_at));
  DType got = dtype_of(payload.value);
  auto is_number = [](DType d) { return d.is_integral() || d.is_float(); };
  if (got != wanted && got.lanes == wanted.lanes && got.is_float() && wanted.is_integral())
    diagnostics_
        .warning(span(value_at), "casting in BufferStore may lose precision: {} stored to '{}', which holds {}",
                 to_string(got), destination->name, to_string(wanted))
        .notes.push_back(fmt::format("say so: T.Cast(\"{}\", ...)", to_string(wanted)));
  if (got != wanted && (got.lanes != wanted.lanes || !is_number(got) || !is_number(wanted))) {
    Diagnostic& refusal =
        report(value_at, "{} stored to '{}', which holds {}", to_string(got), destination->name, to_string(wanted));
    if (!got.is_complex() && !wanted.is_complex())
      refusal.notes.push_back(fmt::format("convert it: T.Cast(\"{}\", ...)", to_string(wanted)));
    throw Failed();
  }
  payload.value = cast_to(payload.value, wanted, span(value_at));
  if (!is_none(mask)) payload.predicate = condition(*mask);
  out_->push_back(make(std::move(payload), span(target)));
}

void Parser::tir_assign(const Line& line) {
  if (!line.value && mutable_scalars_ && line.annotation && is_name(*line.target)) {
    // x: T.int32 declares a scalar that is assigned later.
    body_starts();
    return declare_cell(*line.target, scalar_type(*line.annotation).as<PrimType>()->dtype);
  }
  if (!line.value) fail(line, "expected a value");
  if (!line.text.empty()) fail(line, "an assignment has one target");
  if (names_module(line) || define_free_vars(line) || define_axis(line) || define_buffer(*line.target, *line.value) ||
      te_->in_program(line))
    return;
  if (callee_path(*line.value) != "T.meta_var") body_starts();
  if (line.target->kind == SyntaxKind::kSubscript) return store(*line.target, *line.value, std::nullopt);
  if (line.target->kind == SyntaxKind::kTuple) return unpack_scalars(line);
  std::string var_name = name_of_target(*line.target);
  const Syntax& source = *line.value;
  std::string path = callee_path(source);
  Value value = eval(path == "T.bind" ? required(source, 0, "value") : source);
  if (path == "T.comm_reducer") {  // of reducer.step(C[i], A[i, k])
    reducers_.insert_or_assign(var_name, &source);
    return define(var_name, value.expr);
  }
  if (value.expr.type().is<BufferType>() || (path == "T.meta_var" && value.expr.type().is<PrimType>()))
    return define(var_name, value.expr);  // another name for a buffer, or for a value that Python computed
  if (!value.expr.type().is<PrimType>()) fail(source, "expected a scalar");
  Type var_type = value.expr.type();
  if (line.annotation) {
    // x: T.let = e and x: T.let[T.int32] = e are later spellings.
    const Syntax* at = line.annotation;
    bool is_let = at->kind == SyntaxKind::kSubscript && dotted(*at->children[0]) == "T.Let" && positional(*at) == 1;
    if (is_let) at = at->children[1];
    if (dotted(*at) != "T.Let") {
      var_type = scalar_type(*at);
      DType stated = var_type.as<PrimType>()->dtype;
      value = {adapt(value, stated, source)};
      if (dtype_of(value.expr) != stated)
        fail(source, "'{}' is {}, got {}", var_name, to_string(stated), to_string(dtype_of(value.expr)));
    }
  }
  assign_scalar(*line.target, value, var_type, line);
}

Type Parser::scalar_type(const Syntax& at, const char* wanted) {
  Type stated = type(at);
  if (!stated.is<PrimType>()) fail(at, "expected {}", wanted);
  return stated;
}

}  // namespace relaxc::text
