// Sequences and optionals. Those of which the import knows each item are lists, and operators on them leave no trace;
// others are values of the run.
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/loop.h"
#include "ir/op_names.h"

namespace relaxc::onnx_import {

namespace {

// Returns the sequence in input i. One whose items are known is a list; another one is a value of the run.
const Value& sequence_in(Node& n, size_t i) {
  if (kind_text(*n.value(i)) != "a sequence") n.fail("input {} is {}, expected a sequence", i, kind_text(*n.value(i)));
  return n.value(i);
}
// Returns the position in input i, from -length to `last`, if both are known. A negative one counts from the end.
std::optional<int64_t> position(Node& n, size_t i, const Value& sequence, int64_t last) {
  auto known = n.constant_ints(i);
  if (!sequence->is_sequence || !known || known->size() != 1) return std::nullopt;
  int64_t at = (*known)[0], length = std::ssize(sequence->items);
  if (at < -length || at > last) n.fail("position {} is out of range for a sequence of {}", at, length);
  return at < 0 ? at + length : at;
}

Outputs construct(Node& n) {
  std::vector<Value> items;
  for (size_t i = 0; i < n.inputs(); ++i) items.push_back(n.value(i));
  return {n.sequence(std::move(items))};
}
Outputs empty(Node& n) { return {n.sequence({}, tensor_type_of_rank(-1, n.attr_dtype("dtype", kFloat32)))}; }
Outputs insert(Node& n) {
  const Value& sequence = sequence_in(n, 0);
  int64_t length = std::ssize(sequence->items);
  auto at = n.has(2) ? position(n, 2, sequence, length) : sequence->is_sequence ? std::optional(length) : std::nullopt;
  if (at) {
    std::vector<Value> items = sequence->items;
    items.insert(items.begin() + *at, n.value(1));
    return {n.sequence(std::move(items))};
  }
  std::vector<Expr> args = {n.leaf(0), n.leaf(1)};
  if (n.has(2)) args.push_back(n.scalar_int(2));
  return {n.container_op("sequence.insert", std::move(args))};
}
Outputs erase(Node& n) {
  const Value& sequence = sequence_in(n, 0);
  int64_t last = std::ssize(sequence->items) - 1;
  if (sequence->is_sequence && last < 0) n.fail("the sequence is empty");
  auto at = n.has(1) ? position(n, 1, sequence, last) : sequence->is_sequence ? std::optional(last) : std::nullopt;
  if (at) {
    std::vector<Value> items = sequence->items;
    items.erase(items.begin() + *at);
    return {n.sequence(std::move(items), n.value(0)->item_type)};
  }
  std::vector<Expr> args = {n.leaf(0)};
  if (n.has(1)) args.push_back(n.scalar_int(1));
  return {n.container_op("sequence.erase", std::move(args))};
}
Outputs at(Node& n) {
  const Value& sequence = sequence_in(n, 0);
  if (auto at = position(n, 1, sequence, std::ssize(sequence->items) - 1))
    return {sequence->items.at(static_cast<size_t>(*at))};
  return {n.container_op("sequence.at", {n.leaf(0), n.scalar_int(1)})};
}
Outputs length(Node& n) {
  const Value& sequence = sequence_in(n, 0);
  Expr count =
      sequence->is_sequence ? int_imm(std::ssize(sequence->items)) : n.builder().op("sequence.length", {n.leaf(0)});
  return {n.of(KnownTensor{kInt64, {}, {count}})};
}

constexpr const char* kSumOfLengths = "sum of the split lengths and size of the axis";

// Returns what all elements of a list of any length are, where ConstantOfShape has made it.
std::optional<int64_t> filling(Node& n, const Expr& list) {
  for (const Binding& made : n.builder().since(0)) {
    if (made.var.get() != list.get() || op_name(made.value) != "relax.full") continue;
    const Constant* fill = made.value.as<Call>()->args.at(1).as<Constant>();
    return fill ? std::optional(fill->data.as_int(0)) : std::nullopt;
  }
  return std::nullopt;
}

// Splits as the run decides, into parts of one length or of listed lengths. torch's repeat_interleave lists one length
// for all parts, of which then the shape is known.
Value split_at_run_time(Node& n, const Expr& x, int64_t axis, bool keepdims) {
  Expr lengths = !n.has(1) ? int_imm(1) : n.rank(1) == 0 ? n.scalar_int(1) : n.cast(n.tensor(1), kInt64);
  const bool is_list = n.has(1) && n.rank(1) == 1;
  if (auto part = is_list ? filling(n, n.tensor(1)) : std::nullopt; part && *part > 0) {
    n.require_equal(n.simplify(n.shape(1)[0] * *part), n.shape(0)[axis], kSumOfLengths);
    lengths = int_imm(*part);
  }
  return n.container_op("sequence.split", {x, lengths}, write_attrs(SequenceSplitAttrs{axis, keepdims}));
}
// A scalar split is the length of each part, a list has the lengths of all parts, and without a split they are 1.
Outputs split_to_sequence(Node& n) {
  Expr x = n.tensor(0);
  int64_t axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  bool keepdims = n.attr_int("keepdims", 1) != 0;
  auto dim = as_int(n.shape(0)[axis]);
  if (n.has(1) && n.rank(1) > 1) n.fail("the split has rank {}, expected 0 or 1", n.rank(1));
  bool listed = n.has(1) && n.rank(1) == 1;
  if (n.has(1)) keepdims = true;
  auto known = n.has(1) ? n.constant_ints(1) : std::vector<int64_t>{1};
  constexpr int64_t kMostParts = 32;  // more are no list of values, but one value of the run
  bool is_text = n.dtype(0).is_string();
  if (!known || known->empty() || is_text || std::ssize(*known) > kMostParts || (!dim && !listed))
    return {split_at_run_time(n, x, axis, keepdims)};
  std::vector<Expr> lengths = map_each(*known, [](int64_t length) { return int_imm(length); });
  if (!listed) {
    int64_t part = known->front();
    if (part < 1) n.fail("the split length is {}", part);
    if (*dim > part * kMostParts) return {split_at_run_time(n, x, axis, keepdims)};
    lengths.clear();
    for (int64_t begin = 0; begin < *dim; begin += part) lengths.push_back(int_imm(std::min(part, *dim - begin)));
  }
  std::vector<Value> items;
  Expr begin = int_imm(0);
  for (const Expr& part : lengths) {
    Expr end = n.simplify(begin + part);
    items.push_back(n.of(keepdims ? n.slice(x, axis, begin, end) : n.pick(x, axis, as_int(begin).value())));
    begin = end;
  }
  n.require_equal(begin, n.shape(0)[axis], kSumOfLengths);
  return {n.sequence(std::move(items))};
}
// Joins the items of a sequence that the run knows. Dims that all items have stay known.
Expr joined_items(Node& n, int64_t axis, bool new_axis) {
  const Type type = n.leaf(0).type();
  const Type& item = type.as<SequenceType>()->item;
  if (known_rank(item) < 0) n.unsupported("the rank of the sequence's items is not known; {}", kRankRemedy);
  axis = n.axis(axis, known_rank(item) + (new_axis ? 1 : 0));
  Expr whole = n.builder().op("sequence.concat", {n.leaf(0)}, SequenceConcatAttrs{axis, new_axis});
  std::vector<std::optional<Expr>> dims;
  if (const std::vector<Expr>* known = known_shape(item)) {
    dims.assign(known->begin(), known->end());
    if (new_axis) dims.insert(dims.begin() + axis, std::nullopt);
    dims[axis] = std::nullopt;
  }
  return with_measured_dims(n, whole, dims, "joined");
}
Expr concat_from_sequence(Node& n) {
  const Value& sequence = sequence_in(n, 0);
  bool new_axis = n.attr_int("new_axis", 0) != 0;
  auto first = sequence->is_sequence && !sequence->items.empty() ? sequence->items[0]->type() : std::nullopt;
  bool is_text = first && tensor_dtype(*first) == DType::string();
  if (!sequence->is_sequence || is_text) return joined_items(n, n.required_int("axis"), new_axis);
  const std::vector<Value>& items = sequence->items;
  if (items.empty()) n.fail("the sequence is empty");
  std::vector<Expr> tensors;
  int64_t rank = std::ssize(n.shape_of(n.tensor(items[0]))) + (new_axis ? 1 : 0);
  int64_t axis = n.axis(n.required_int("axis"), rank);
  for (const Value& item : items) {
    Expr x = n.tensor(item);
    tensors.push_back(new_axis ? n.with_new_axis(x, axis) : x);
  }
  return join(n, tensors, axis);
}

bool is_open_optional(const Value& value) {
  auto type = value->type();
  return !value->is_sequence && !value->is_none && type && type->is<OptionalType>();
}
Outputs optional(Node& n) {
  if (n.has(0)) return {n.value(0)};
  std::optional<Type> item;
  if (n.has_attr("type")) item = type_of_declared(n.graph().context(), n.attr_type("type"), "type", n.span());
  return {make_value({.is_none = true, .item_type = item, .home = &n.builder()})};
}
Outputs has_element(Node& n) {
  if (!n.has(0) || !is_open_optional(n.value(0)))
    return {n.of(KnownTensor{kBool, {}, {bool_imm(n.has(0) && !n.value(0)->is_none)}})};
  Builder& b = n.builder();
  return {n.of(b.op("scalar_to_tensor", {b.op("optional.has", {n.leaf(0)})}, DTypeAttrs{kBool}))};
}
Outputs get_element(Node& n) {
  if (n.value(0)->is_none) n.fail("the optional is empty");
  if (!is_open_optional(n.value(0))) return {n.value(0)};
  return {n.container_op("optional.get", {n.leaf(0)})};
}

}  // namespace

Expr GraphImporter::leaf_of(const Value& value, const Span& span) {
  if (!value->is_sequence && !value->is_none) return value->tensor ? *value->tensor : tensor_of(value, span);
  if (value->tensor) return *value->tensor;
  std::vector<Type> stated;
  if (value->items.empty()) stated.push_back(value->item_type.value_or(object_type()));
  std::vector<Expr> items = map_each(value->items, [&](const Value& item) { return leaf_of(item, span); });
  Call call{op_ref(value->is_none ? ops::kOptionalNone : ops::kSequenceMake), std::move(items), {}, stated};
  Type type = infer_call_type(call, span, context_.ops);
  Expr expr = builder_.emit(make(std::move(call), type, span), value->is_none ? "none" : "sequence");
  if (value->home == &builder_) value->tensor = expr;
  return expr;
}

Expr GraphImporter::tensor_of(const Value& value, const Span& span) {
  if (value->strings && !value->tensor) {
    Expr whole = builder_.op("string.take", {value->strings->pool, tensor_of(value->strings->positions, span)});
    if (value->home == &builder_) value->tensor = whole;
    return whole;
  }
  if (!value->tensor || is_container(value->tensor->type())) fail(span, "expected a tensor, got {}", kind_text(*value));
  return *value->tensor;
}

std::vector<ConverterRow> sequence_converters() {
  return {
      {"SequenceConstruct", 11, 1, kAny, construct},
      {"SequenceEmpty", 11, 0, 0, empty, "dtype"},
      {"SequenceInsert", 11, 2, 3, insert},
      {"SequenceErase", 11, 1, 2, erase},
      {"SequenceAt", 11, 2, 2, at},
      {"SequenceLength", 11, 1, 1, length},
      {"SplitToSequence", 11, 1, 2, split_to_sequence, "axis keepdims"},
      {"ConcatFromSequence", 11, 1, 1, concat_from_sequence, "axis new_axis"},
      {"Optional", 15, 0, 1, optional, "type"},
      {"OptionalHasElement", 15, 0, 1, has_element},
      {"OptionalGetElement", 15, 1, 1, get_element},
  };
}

}  // namespace relaxc::onnx_import
