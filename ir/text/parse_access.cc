// Reads brackets and dots: elements, ranges and properties of buffers, tensors and tuples.
#include <algorithm>
#include <limits>

#include "ir/arith.h"
#include "ir/intrinsics.h"
#include "ir/text/parsing.h"
#include "ir/text/python_value.h"

namespace relaxc::text {

std::optional<Buffer> Parser::named_buffer(const Syntax& at) {
  if (at.kind == SyntaxKind::kAttribute && at.text == "data") return named_buffer(*at.children[0]);
  const Entity* entity = is_name(at) ? lookup(at.text) : nullptr;
  bool names = entity && entity->expr && entity->expr->type().is<BufferType>();
  return names ? std::optional(cast<Var>(*entity->expr)) : std::nullopt;
}

Expr elem_offset(const Buffer& buffer, const Span& span) {
  const BufferType& type = buffer_type(buffer);
  if (type.elem_offset) return *type.elem_offset;
  return type.offset_factor == 0 ? int_imm(0, kInt32) : intrinsic(kBufferElemOffset, {buffer}, kInt32, span);
}

// Reads A.data, A.elem_offset, A.shape[i], A.strides[i]. A.dtype is read where a dtype is expected.
std::optional<Value> Parser::buffer_property(const Syntax& at) {
  bool indexed = at.kind == SyntaxKind::kSubscript;
  const Syntax& access = head_of(at);
  if (access.kind != SyntaxKind::kAttribute) return std::nullopt;
  std::optional<Buffer> owner = named_buffer(*access.children[0]);
  if (!owner) return std::nullopt;
  const BufferType& type = buffer_type(*owner);
  if (indexed && (access.text == "shape" || access.text == "strides")) {
    if (positional(at) != 1) fail(at, "expected one index, got {}", positional(at));
    const std::vector<Expr>& numbers = access.text == "shape" ? type.shape : type.strides;
    int64_t index = constant_int(*at.children[1]), count = std::ssize(numbers);
    if (index < -count || index >= count)
      fail(at, "index {} is out of range for the {} {} of buffer '{}'", index, count, access.text, (*owner)->name);
    return Value{numbers[static_cast<size_t>(index < 0 ? index + count : index)]};
  }
  if (indexed) return std::nullopt;
  if (access.text == "data") return Value{type.data.value_or(buffer_data(*owner, span(at)))};
  return access.text == "elem_offset" ? std::optional(Value{elem_offset(*owner, span(at))}) : std::nullopt;
}

// Reads x.ndim, x.shape[i], x.strides[i], x.dtype.bits of a tensor: their values are known when the program runs.
std::optional<Value> Parser::tensor_property(const Syntax& at) {
  constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
      {"dtype.bits", "relax.inspect.tensor_dtype_bits"},
      {"dtype.code", "relax.inspect.tensor_dtype_code"},
      {"dtype.type_code", "relax.inspect.tensor_dtype_code"},
      {"dtype.lanes", "relax.inspect.tensor_dtype_lanes"},
      {"ndim", "relax.inspect.tensor_ndim"},
      {"shape", "relax.inspect.tensor_shape_i"},
      {"strides", "relax.inspect.tensor_stride_i"},
      {"byte_offset", "relax.inspect.tensor_byte_offset"},
      {"elem_offset", "relax.inspect.tensor_elem_offset"}};
  bool indexed = at.kind == SyntaxKind::kSubscript;
  const Syntax& access = head_of(at);
  if (!in_graph_ || access.kind != SyntaxKind::kAttribute) return std::nullopt;
  const Syntax* owner = access.children[0];
  bool of_dtype = owner->kind == SyntaxKind::kAttribute && owner->text == "dtype";
  if (of_dtype) owner = owner->children[0];
  std::string name = (of_dtype ? "dtype." : "") + std::string(access.text);
  const std::string_view* op = row_of(kProperties, name);
  const Entity* entity = is_name(*owner) ? lookup(owner->text) : nullptr;
  bool is_tensor = entity && entity->expr && entity->expr->type().is<TensorType>();
  if (name == "shape" && is_tensor && !indexed) return typed_call(OpName{"relax.shape_of"}, {*entity->expr}, at);
  bool takes_axis = name == "shape" || name == "strides";
  if (!op || !is_tensor || takes_axis != indexed) return std::nullopt;
  const std::vector<Expr>* dims = at.text == kKnownDim ? known_shape(entity->expr->type()) : nullptr;
  if (dims) {
    int64_t index = constant_int(*at.children[1]), count = std::ssize(*dims);
    if (index < -count || index >= count) fail(at, "dim {} of a tensor of rank {}", index, count);
    return Value{(*dims)[static_cast<size_t>(index < 0 ? index + count : index)]};
  }
  std::vector<Expr> args = {*entity->expr};
  if (positional(at) > 1) fail(at, "expected one index, got {}", positional(at));
  if (indexed) args.push_back(adapt(scalar_value(*at.children[1]), kInt64, *at.children[1]));
  return typed_call(OpName{*op}, std::move(args), at);
}

// Returns the memory that A.data or the pointer of an allocation addresses: scalars in one dim. Where the buffer has
// another form, as in texts of 2020 to 2022, it is a view, which the statement that is being read gets before it.
Buffer Parser::addressed(const Syntax& at, size_t num_indices) {
  Buffer whole = buffer(at);
  const Entity* entity = is_name(at) ? lookup(at.text) : nullptr;
  const BufferType& type = buffer_type(whole);
  bool is_pointer = !entity || entity->form == Entity::Form::kPointer;
  if (!is_pointer || !out_ || num_indices != 1 || (type.shape.size() == 1 && type.dtype.lanes == 1)) return whole;
  BufferType flat{};
  flat.dtype = type.dtype.with_lanes(1);
  Expr count = int_imm(type.dtype.lanes, kInt32);
  for (const Expr& dim : type.shape) count = count * cast_to(dim, kInt32);
  flat.shape = {simplify(count)};
  flat.scope = type.scope;
  flat.data = type.data.value_or(buffer_data(whole, span(at)));
  VarRef view = make_var(whole->name + "_flat", make(std::move(flat), span(at)), span(at));
  out_->push_back(make(AllocBuffer{view, {}}, span(at)));
  return view;
}

// Returns the condition under which lanes are accessed; nullopt for a mask that is True in all of them.
std::optional<Expr> Parser::lane_mask(const Syntax* at) {
  if (is_none(at) || at->text == "True") return std::nullopt;
  Expr mask = condition(*at);
  const Broadcast* same = mask.as<Broadcast>();
  return is_int(same ? same->value : mask, 1) ? std::nullopt : std::optional(mask);
}

Buffer Parser::buffer(const Syntax& at) {
  if (auto named = named_buffer(at)) return *named;
  Expr value = expr(at);
  if (!value.is<Var>() || !value.type().is<BufferType>()) fail(at, "expected a buffer");
  return cast<Var>(value);
}

// Returns the extent of [min, end) such that the printer's spelling of the end reads back unchanged.
Expr Parser::extent_of(const Expr& min, const Expr& end, const Syntax& at) {
  auto first = as_int(min), last = as_int(end);
  if (first == 0) return end;
  if (first && last) return int_imm(*last - *first, dtype_of(end), span(at));
  const Binary* sum = end.as<Binary>();
  if (sum && sum->op == BinaryOp::kAdd && structural_equal(sum->a, min)) return sum->b;
  return simplify(end - min);
}

Range Parser::slice(const Syntax& at) {
  auto is_position = [](const Expr& e) { return dtype_of(e).is_integral() && dtype_of(e).lanes == 1; };
  if (at.kind != SyntaxKind::kSlice) {
    Expr index = scalar(at);
    if (!is_position(index)) fail(at, "expected an integer, got {}", to_string(dtype_of(index)));
    return {index, int_imm(1, dtype_of(index))};
  }
  if (!at.children[1]) fail(at, "expected the end of the range");
  Value min = at.children[0] ? eval(*at.children[0]) : Value{int_imm(0, default_int_), true},
        end = eval(*at.children[1]);
  match_operands(min, end, at);
  if (!is_position(min.expr)) fail(at, "expected integers, got {}", to_string(dtype_of(min.expr)));
  return {min.expr, extent_of(min.expr, end.expr, at)};
}

// Returns the value of a name that means several: of `i` in `for i in T.grid(m, n)`, also as *i; null for other syntax.
// Returns the items that a slice such as [:-1] takes.
std::vector<Expr> Parser::sliced(const std::vector<Expr>& items, const Syntax& slice) {
  int64_t size = std::ssize(items);
  if (slice.children[2]) fail(slice, "a slice has no step here");
  auto end = [&](size_t i, int64_t otherwise) {
    int64_t position = slice.children[i] ? constant_int(*slice.children[i]) : otherwise;
    return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
  };
  int64_t first = end(0, 0), last = std::max(first, end(1, size));
  return {items.begin() + first, items.begin() + last};
}

const Tuple* Parser::named_tuple(const Syntax& at) {
  const Syntax& named = at.kind == SyntaxKind::kStarred ? *at.children[0] : at;
  bool is_slice = named.kind == SyntaxKind::kSubscript && named.children.size() == 2 &&
                  named.children[1]->kind == SyntaxKind::kSlice && !named.children[1]->children[2];
  if (const Tuple* whole = is_slice ? named_tuple(*named.children[0]) : nullptr) {  // i[:-1]
    slices_.push_back(tuple(sliced(whole->items, *named.children[1])));
    return slices_.back().as<Tuple>();
  }
  bool is_sum = in_te_ && named.kind == SyntaxKind::kBinary && named.text == "+";
  if (is_sum) {  // i[:-1] + (j, k)
    std::vector<Expr> items;
    for (const Syntax* part : named.children) {
      const Tuple* several = named_tuple(*part);
      if (!several && !is_list(*part)) return nullptr;
      std::vector<Expr> own = several ? several->items : read_each(part->children, &Parser::scalar);
      items.insert(items.end(), own.begin(), own.end());
    }
    slices_.push_back(tuple(std::move(items)));
    return slices_.back().as<Tuple>();
  }
  const Entity* entity = is_name(named) ? lookup(named.text) : nullptr;
  return entity && entity->expr ? entity->expr->as<Tuple>() : nullptr;
}

// Returns the items between the brackets, one per dim; A[()] has none, A[(i, j)] has two. `what`: "ranges".
std::vector<const Syntax*> Parser::index_items(const Buffer& buffer, const Syntax& at, const char* what) {
  std::vector<const Syntax*> result(at.operands().begin(), at.operands().end());
  if (result.size() == 1 && result[0]->kind == SyntaxKind::kTuple) result = items(*result[0]);
  size_t rank = buffer_type(buffer).shape.size(), count = 0;
  for (const Syntax* item : result) count += named_tuple(*item) ? named_tuple(*item)->items.size() : 1;
  bool is_flat = flat_indices_ && count == 1 && result.size() == 1 && result[0]->kind != SyntaxKind::kSlice;
  if (count != rank && !is_flat) fail(at, "buffer '{}' has {} dims, got {} {}", buffer->name, rank, count, what);
  return result;
}

std::vector<Range> Parser::ranges(const Buffer& buffer, const Syntax& at) {
  std::vector<Range> result;
  for (const Syntax* item : index_items(buffer, at, "ranges")) {
    if (const Tuple* several = named_tuple(*item)) {
      for (const Expr& index : several->items) result.push_back({index, int_imm(1, dtype_of(index))});
      continue;
    }
    const Expr& dim = buffer_type(buffer).shape[result.size()];
    bool whole = item->kind == SyntaxKind::kSlice && !item->children[0] && !item->children[1];
    result.push_back(whole ? whole_range(dim) : slice(*item));
  }
  return result;
}

// Reads a slice as an index: a vector of positions, or one position.
Expr Parser::slice_index(const Syntax& at) {
  Range range = slice(at);
  Expr one = int_imm(1, dtype_of(range.min));
  auto scalable = scalable_lanes(range.extent);
  if (scalable && !at.children[2]) return ramp(range.min, one, *scalable, span(at));
  auto count = as_int(range.extent);
  int64_t stride = at.children[2] ? constant_int(*at.children[2]) : 1;
  if (!count || stride == 0 || *count == 0 || (*count > 0) != (stride > 0))
    fail(at, "expected a slice of a constant number of elements, from 1");
  constexpr int64_t kFar = int64_t{1} << 62;  // std::abs is defined for it, and so many lanes are an error all the same
  int64_t distance = std::clamp(*count, -kFar, kFar), step = std::clamp(stride, -kFar, kFar);
  int64_t lanes = (std::abs(distance) - 1) / std::abs(step) + 1;  // an element that begins before the end counts
  if (lanes > 4096) fail(at, "a slice has at most 4096 elements, got {}", lanes);
  return lanes == 1 ? range.min : ramp(range.min, int_imm(stride, dtype_of(range.min)), lanes, span(at));
}

std::vector<Expr> Parser::indices(const Buffer& buffer, const Syntax& at) {
  std::vector<Expr> result;
  std::vector<const Syntax*> items = index_items(buffer, at, "indices");
  for (const Syntax* item : items) {
    if (const Tuple* several = named_tuple(*item)) {
      result.insert(result.end(), several->items.begin(), several->items.end());
      continue;
    }
    Expr index = item->kind == SyntaxKind::kSlice ? slice_index(*item) : scalar(*item);
    if (in_te_ && dtype_of(index).is_bool()) index = cast_to(index, kInt32, span(*item));
    if (!dtype_of(index).is_integral()) fail(*item, "expected an integer index, got {}", to_string(dtype_of(index)));
    if (dtype_of(index).lanes > 1 && item != items.back()) fail(*item, "only the last index may be a vector");
    result.push_back(index);
  }
  const std::vector<Expr>& dims = buffer_type(buffer).shape;
  if (result.size() == dims.size()) return result;
  Expr rest = result[0];
  result.assign(dims.size(), rest);
  for (size_t d = dims.size(); d-- > 0;) {
    Expr dim = cast_to(dims[d], dtype_of(rest));
    result[d] = d == 0 ? rest : floor_mod(rest, dim);
    rest = floor_div(rest, dim);
  }
  return result;
}

int index_lanes(const std::vector<Expr>& indices) { return indices.empty() ? 1 : dtype_of(indices.back()).lanes; }

Syntax Parser::element_at(const Syntax& call, const Syntax& pointer, const Syntax& indices) const {
  return subscript_of(call, pointer, items(indices));
}
Syntax Parser::subscript_of(const Syntax& call, const Syntax& object, std::span<const Syntax* const> indices) const {
  Syntax result(SyntaxKind::kSubscript, call);
  result.children.push_back(&object);
  result.children.insert(result.children.end(), indices.begin(), indices.end());
  return result;
}

void Parser::widen_last(std::vector<Expr>& indices, int lanes, const Span& span) {
  if (lanes < 2 || indices.empty() || dtype_of(indices.back()).lanes != 1) return;
  indices.back() = ramp(indices.back(), int_imm(1, dtype_of(indices.back())), lanes, span);
}

Value Parser::load(const Buffer& buffer, const Syntax& at) {
  return {relaxc::load(buffer, indices(buffer, at), span(at))};
}

Value Parser::subscript(const Syntax& at) {
  // The printer writes metadata["relax.expr.Constant"][0] in place of a large constant.
  const Syntax* root = &at;
  while (root->kind == SyntaxKind::kSubscript) root = root->children[0];
  if (is_name(*root) && root->text == "metadata" && !lookup("metadata")) return metadata_constant(at);
  if (auto property = buffer_property(at)) return *property;
  if (auto property = tensor_property(at)) return *property;
  bool is_pointer = at.children[0]->kind == SyntaxKind::kAttribute;
  if (auto named = named_buffer(*at.children[0]))
    return load(is_pointer ? addressed(*at.children[0], positional(at)) : *named, at);
  if (in_te_ && at.children[0]->kind == SyntaxKind::kSubscript) {  // A[i][j]
    const Syntax& inner = *at.children[0];
    auto tensor = named_buffer(*inner.children[0]);
    bool is_slice = tensor && positional(inner) < buffer_type(*tensor).shape.size();
    Syntax element(SyntaxKind::kSubscript, at);
    element.children.assign(inner.children.begin(), inner.children.end());
    element.children.insert(element.children.end(), at.children.begin() + 1, at.children.end());
    if (is_slice || inner.children[0]->kind == SyntaxKind::kSubscript) return subscript(element);
  }
  Value object = eval(*at.children[0]);
  if (object.expr.type().is<BufferType>()) return load(cast<Var>(object.expr), at);
  if (const TupleType* type = object.expr.type().as<TupleType>(); type || in_graph_) {
    if (positional(at) != 1) fail(at, "expected one index");
    return tuple_item(in_graph_ ? leaf(object, at) : object.expr, *at.children[1], at);
  }
  fail(at, "expected a buffer before '['");
}

Value Parser::tuple_item(const Expr& whole, const Syntax& index_at, const Syntax& at) {
  int64_t index = constant_int(index_at);
  const TupleType* type = whole.type().as<TupleType>();
  if (!type && !whole.type().is<ObjectType>()) fail(at, "only tuples have items");
  int64_t size = type ? static_cast<int64_t>(type->items.size()) : std::numeric_limits<int32_t>::max();
  if (index < 0 && !in_graph_ && type) index += size;  // a tuple of Python, such as te's indices
  if (index < 0 || index >= size) fail(at, "index {} is out of range for a tuple of {} items", index, size);
  const Tuple* known = in_graph_ ? nullptr : whole.as<Tuple>();
  return {known ? known->items[static_cast<size_t>(index)] : tuple_get(whole, index, span(at))};
}

}  // namespace relaxc::text
