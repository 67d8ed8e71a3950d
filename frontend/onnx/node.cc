#include "frontend/onnx/node.h"

#include <algorithm>
#include <ranges>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/loop.h"
#include "frontend/onnx/run_time_axes.h"
#include "ir/constants.h"
#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "ir/type_relation.h"
#include "ops/run_sizes.h"

namespace relaxc::onnx_import {

using onnx::AttributeProto;

namespace {

struct AttributeKind {
  AttributeProto::AttributeType type;
  const char* name;
  bool (*is_set)(const AttributeProto&);
};
constexpr AttributeKind kAttributeKinds[] = {
    {AttributeProto::FLOAT, "float", [](const AttributeProto& a) { return a.has_f(); }},
    {AttributeProto::INT, "int", [](const AttributeProto& a) { return a.has_i(); }},
    {AttributeProto::STRING, "string", [](const AttributeProto& a) { return a.has_s(); }},
    {AttributeProto::TENSOR, "tensor", [](const AttributeProto& a) { return a.has_t(); }},
    {AttributeProto::SPARSE_TENSOR, "sparse tensor", [](const AttributeProto& a) { return a.has_sparse_tensor(); }},
    {AttributeProto::TYPE_PROTO, "type", [](const AttributeProto& a) { return a.has_tp(); }},
    {AttributeProto::GRAPH, "graph", [](const AttributeProto& a) { return a.has_g(); }},
    {AttributeProto::FLOATS, "floats", [](const AttributeProto& a) { return a.floats_size() > 0; }},
    {AttributeProto::STRINGS, "strings", [](const AttributeProto& a) { return a.strings_size() > 0; }},
    {AttributeProto::INTS, "ints", [](const AttributeProto&) { return true; }}};
const char* type_name(AttributeProto::AttributeType type) {
  auto kind = std::ranges::find(kAttributeKinds, type, &AttributeKind::type);
  return kind == std::end(kAttributeKinds) ? "another type" : kind->name;
}
// Returns the attribute's type, which models before IR version 2 leave out.
AttributeProto::AttributeType type_of_attribute(const AttributeProto& a) {
  if (a.type() != AttributeProto::UNDEFINED) return a.type();
  return std::ranges::find_if(kAttributeKinds, [&](const AttributeKind& kind) { return kind.is_set(a); })->type;
}

}  // namespace

Node::Node(GraphImporter& graph, const onnx::NodeProto& proto, const ConverterRow& row, int64_t opset,
           std::vector<Value> inputs, const Span& span)
    : graph_(graph), proto_(proto), row_(row), opset_(opset), inputs_(std::move(inputs)), span_(span) {}

// ---- Inputs ---------------------------------------------------------------------------------------------------------

const Value& Node::value(size_t i) const {
  if (!has(i)) fail("input {} is missing", i);
  return inputs_[i];
}
Expr Node::tensor(const Value& value) { return graph_.tensor_of(value, span_); }
Expr Node::tensor(size_t i) { return tensor(value(i)); }

Type Node::type(size_t i) const {
  std::optional<Type> type = value(i)->type();
  if (type && !is_container(*type)) return *type;
  fail("expected a tensor, got {}", kind_text(*value(i)));
}
std::vector<Expr> Node::shape(size_t i) const {
  Type known = type(i);
  const std::vector<Expr>* dims = known_shape(known);
  if (!dims) unsupported("the rank of input {} is not known; {}", i, kRankRemedy);
  return *dims;
}
DType Node::dtype(size_t i) const {
  auto dtype = tensor_dtype(type(i));
  if (!dtype) unsupported("the dtype of input {} is not known", i);
  return *dtype;
}
const std::vector<Expr>& Node::shape_of(const Expr& x) const {
  const std::vector<Expr>* dims = known_shape(x.type());
  if (!dims) unsupported("the rank of a tensor is not known; {}", kRankRemedy);
  return *dims;
}
const Expr& Node::dim_of(const Expr& x, int64_t d) const {
  const std::vector<Expr>& shape = shape_of(x);
  const int64_t rank = std::ssize(shape), at = d < 0 ? d + rank : d;
  if (at < 0 || at >= rank) fail("a tensor has rank {}, expected at least {}", rank, d < 0 ? -d : d + 1);
  return shape[static_cast<size_t>(at)];
}
DType Node::dtype_of_tensor(const Expr& x) const { return tensor_dtype(x.type()).value_or(kFloat32); }

// Returns whether the type is a list of integers that has no elements in any run.
static bool is_list_of_none(const Type& type) {
  const std::vector<Expr>* dims = known_shape(type);
  auto dtype = tensor_dtype(type);
  return dims && dims->size() == 1 && is_int(dims->front(), 0) && dtype && dtype->is_integral();
}
std::optional<std::vector<int64_t>> Node::constant_ints(size_t i) const {
  const Value& x = value(i);
  if (const KnownTensor* known = graph_.known(x)) return as_ints(known->elements);
  const Constant* constant = x->tensor ? x->tensor->as<Constant>() : nullptr;
  if (x->tensor && !constant && is_list_of_none(x->tensor->type())) return std::vector<int64_t>{};
  if (!constant || constant->data.size() > 4096 || !constant->data.dtype().is_integral()) return std::nullopt;
  std::vector<int64_t> result;
  for (int64_t k = 0; k < constant->data.size(); ++k) result.push_back(constant->data.as_int(k));
  return result;
}
std::optional<Tensor> Node::constant(size_t i) {
  const Value& x = value(i);
  const Constant* constant = x->tensor ? x->tensor->as<Constant>() : nullptr;
  return constant ? std::optional(constant->data) : std::nullopt;
}

std::vector<Expr> Node::ints_of(const Value& x) {
  if (const KnownTensor* known = graph_.known(x)) {
    for (const Expr& element : known->elements) {
      if (!dtype_of(element).is_int()) fail("expected integers, got {}", to_string(known->dtype));
    }
    return known->elements;
  }
  Expr expr = tensor(x);
  const std::vector<Expr>& dims = shape_of(expr);
  DType dtype = dtype_of_tensor(expr);
  if (!dtype.is_integral() && !dtype.is_bool()) fail("expected integers, got {}", to_string(dtype));
  if (dims.size() > 1) fail("a shape-like input has rank {}, expected 1", dims.size());
  auto length = dims.empty() ? 1 : as_int(simplify(dims[0]));
  if (!length) fail_open_rank(expr, "the length of a list", "[3]");
  std::vector<Expr> result;
  const Constant* constant = expr.as<Constant>();
  constexpr int64_t kMostRead = 32;  // elements that are read at run time; the largest rank of a result
  if (!constant && *length > kMostRead)
    unsupported("a shape-like input of {} elements, more than {}", *length, kMostRead);
  for (int64_t k = 0; k < *length; ++k) {
    result.push_back(constant ? int_imm(constant->data.as_int(k))
                              : builder().op("inspect.tensor_item", {expr}, write_attrs(TensorItemAttrs{k}), "item"));
  }
  if (!constant)
    graph_.context().known.set(expr, {dtype, dims.empty() ? std::vector<int64_t>() : std::vector{*length}, result});
  return result;
}
Expr Node::named(const Expr& scalar, const char* hint) {
  Expr simple = simplify(scalar);
  if (simple.is<IntImm>() || simple.is<Var>()) return simple;
  return builder().emit(simple, hint);
}
std::vector<Expr> Node::ints(size_t i) { return ints_of(value(i)); }
std::vector<Expr> Node::ints(size_t i, std::optional<int64_t> count) {
  bool is_open = count && !graph_.known(value(i)) && !known_length(i);
  return is_open ? ints_of(of(with_length(tensor(i), *count))) : ints(i);
}
std::vector<Expr> Node::ints_up_to(const Value& x, int64_t most, int64_t otherwise) {
  Expr list = cast(tensor(x), kInt64);
  if (graph_.known(x) || known_length(list)) {
    std::vector<Expr> known = ints_of(x);
    if (std::ssize(known) > most) fail("a list has {} elements, expected at most {}", known.size(), most);
    known.resize(static_cast<size_t>(most), int_imm(otherwise));
    return known;
  }
  require_at_most(dim_of(list, 0), int_imm(most), "length of a list and rank");
  Expr rest =
      relaxc::constant(Tensor::of<int64_t>({most}, kInt64, std::vector<int64_t>(static_cast<size_t>(most), otherwise)));
  return ints_of(of(slice(op("concat", {tuple({list, rest})}, ConcatAttrs{0}), 0, int_imm(0), int_imm(most))));
}
Expr Node::with_length(const Expr& list, int64_t count) {
  const std::vector<Expr>& dims = shape_of(list);
  if (dims.size() != 1 || as_int(dims[0])) return list;
  require_equal(dims[0], int_imm(count), "length of a list, which the rest of the node decides");
  return match_cast(list, tensor_type({int_imm(count)}, dtype_of_tensor(list)));
}
std::optional<int64_t> Node::output_rank(size_t i) const {
  return has_output(i) ? inferred_rank(graph_.context(), proto_.output(static_cast<int>(i))) : std::nullopt;
}
Expr Node::scalar_int(size_t i) {
  Value x = value(i);
  if (dtype(i).is_float()) {
    if (auto known = constant(i); known && known->size() == 1)
      return int_imm(static_cast<int64_t>(known->as_double(0)));
    x = of(cast(tensor(i), kInt64));
  }
  if (!graph_.known(x) && known_rank(*x->type()) == 1) x = of(with_length(tensor(x), 1));
  std::vector<Expr> elements = ints_of(x);
  if (elements.size() != 1) fail("input {} has {} elements, expected 1", i, elements.size());
  return elements[0];
}

// ---- Attributes -----------------------------------------------------------------------------------------------------

bool ConverterRow::has_attribute(std::string_view name) const {
  auto is_name = [&](auto word) { return std::ranges::equal(word, name); };
  return std::ranges::any_of(std::views::split(std::string_view(attributes), ' '), is_name);
}

const AttributeProto* Node::find_attr(std::string_view name) const {
  RELAXC_CHECK(row_.has_attribute(name), "the row of {} since opset {} does not list attribute '{}'", row_.op_type,
               row_.since, name);
  return find_item(proto_.attribute(), name, &AttributeProto::name);
}
const AttributeProto& Node::required(const char* name, AttributeProto::AttributeType type) {
  const AttributeProto* a = find_attr(name);
  if (!a) fail("attribute '{}' is missing", name);
  AttributeProto::AttributeType have = type_of_attribute(*a);
  if (have != type) fail("attribute '{}' has type {}, expected {}", name, type_name(have), type_name(type));
  return *a;
}
int64_t Node::required_int(const char* name) { return required(name, AttributeProto::INT).i(); }
std::vector<int64_t> Node::required_ints(const char* name) {
  const AttributeProto& a = required(name, AttributeProto::INTS);
  return {a.ints().begin(), a.ints().end()};
}
int64_t Node::attr_int(const char* name, int64_t otherwise) {
  return has_attr(name) ? required_int(name) : default_of(name, otherwise);
}
double Node::attr_float(const char* name, double otherwise) {
  if (has_attr(name)) return required(name, AttributeProto::FLOAT).f();
  default_of(name, static_cast<double>(static_cast<float>(otherwise)));  // as a model stores it
  return otherwise;
}
std::string Node::attr_string(const char* name, std::string otherwise) {
  return has_attr(name) ? required(name, AttributeProto::STRING).s() : default_of(name, std::move(otherwise));
}
std::optional<std::vector<int64_t>> Node::attr_ints(const char* name) {
  return has_attr(name) ? std::optional(required_ints(name)) : std::nullopt;
}
std::vector<int64_t> Node::attr_ints(const char* name, size_t count, int64_t otherwise) {
  if (!has_attr(name)) defaults_.set(name, AttrList(count, AttrValue(otherwise)));
  std::vector<int64_t> values = attr_ints(name).value_or(std::vector<int64_t>(count, otherwise));
  if (values.size() != count) fail("{} has {} numbers, expected {}", name, values.size(), count);
  return values;
}
std::vector<double> Node::attr_floats(const char* name) {
  if (!has_attr(name)) return {};
  const AttributeProto& a = required(name, AttributeProto::FLOATS);
  return {a.floats().begin(), a.floats().end()};
}
std::vector<std::string> Node::attr_strings(const char* name) {
  if (!has_attr(name)) return {};
  const AttributeProto& a = required(name, AttributeProto::STRINGS);
  return {a.strings().begin(), a.strings().end()};
}
std::optional<Tensor> Node::attr_tensor(const char* name) {
  if (!has_attr(name)) return std::nullopt;
  return ModelFile::tensor(graph_.context().file, required(name, AttributeProto::TENSOR).t(), span_);
}
std::optional<Tensor> Node::attr_sparse_tensor(const char* name) {
  if (!has_attr(name)) return std::nullopt;
  const AttributeProto& a = required(name, AttributeProto::SPARSE_TENSOR);
  return ModelFile::tensor(graph_.context().file, a.sparse_tensor(), span_);
}
const onnx::GraphProto& Node::attr_graph(const char* name) { return required(name, AttributeProto::GRAPH).g(); }
const onnx::TypeProto& Node::attr_type(const char* name) { return required(name, AttributeProto::TYPE_PROTO).tp(); }
DType Node::attr_dtype(const char* name, DType otherwise) {
  return has_attr(name) ? dtype_of_element_type(static_cast<int>(required_int(name)), span_) : otherwise;
}
int64_t Node::axis(int64_t value, int64_t rank, const char* what) const {
  if (value < -rank || value >= rank) fail("{} is {}, expected {} to {}", what, value, -rank, rank - 1);
  return value < 0 ? value + rank : value;
}

// ---- Building -------------------------------------------------------------------------------------------------------

static AttributeProto proto_of(const OnnxAttribute& attribute) {
  AttributeProto proto;
  proto.set_name(attribute.name);
  if (auto* i = std::get_if<int64_t>(&attribute.value)) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(*i);
  } else if (auto* f = std::get_if<double>(&attribute.value)) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*f));
  } else if (auto* s = std::get_if<std::string>(&attribute.value)) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(*s);
  } else {
    proto.set_type(AttributeProto::INTS);
    for (int64_t number : std::get<std::vector<int64_t>>(attribute.value)) proto.add_ints(number);
  }
  return proto;
}
Builder& Node::builder() { return graph_.builder(); }
// Makes the calls that count and fill. Sizes that follow from known tensors are known.
Expr Node::sized_op(const OpRow& row, const std::vector<Expr>& args, const Attrs& attrs) {
  auto size = [&](const Expr& sizes, int64_t i, const char* name) {
    if (const KnownTensor* known = graph_.known(of(sizes))) return known->elements.at(static_cast<size_t>(i));
    Expr item = builder().op("inspect.tensor_item", {sizes}, TensorItemAttrs{i}, name);
    graph_.context().analyzer.bind(relaxc::cast<Var>(item), Interval{0, INT64_MAX});
    return item;
  };
  return call_parts(row, args, attrs,
                    {.op = [&](const std::string& name, std::vector<Expr> operands,
                               const Attrs& same) { return op(name, std::move(operands), same); },
                     .item = [&](const Expr& tuple, int64_t i) -> Expr { return builder().emit(tuple_get(tuple, i)); },
                     .size = size});
}
// Kernels are for a rank. Without this check a pass would say so, in words of the graph IR.
void Node::check_ranks(const std::vector<Expr>& args) const {
  for (const Expr& arg : args) {
    const Type type = arg.type();
    const TupleType* tuple = type.as<TupleType>();
    for (const Type& item : tuple ? tuple->items : std::vector{type}) {
      if (item.is<TensorType>() && known_rank(item) < 0)
        unsupported("the rank of a tensor is not known; {}", kRankRemedy);
    }
  }
}
Expr Node::op(const std::string& name, std::vector<Expr> args, Attrs attrs) {
  const OpRow* row = builder().ops().find(ops::full_name(name));
  if (row && row->legalize) check_ranks(args);
  if (row && row->sizes) return sized_op(*row, args, attrs);
  Expr result = builder().op(name, std::move(args), std::move(attrs));
  const auto& [call, cast, var] = builder().last();
  const KnownTensor* found = graph_.context().known.learn(var, call, builder().ops(), graph_.context().analyzer);
  if (!found) return with_measured_dims(*this, result);
  if (auto numbers = found->as_tensor()) return relaxc::constant(*numbers, span_);
  KnownTensor contents = *found;
  for (Expr& element : contents.elements) {
    if (dtype_of(element).is_int()) element = named_if_long(*this, element, "dim");
  }
  graph_.context().known.set(result, std::move(contents));
  return result;
}
Outputs Node::standard_outputs(const char* op_type, const std::vector<std::optional<Expr>>& inputs,
                               const std::vector<OnnxAttribute>& attributes, int64_t opset,
                               const std::vector<int>& places) {
  const ConverterRow* row = find_converter("", op_type, opset);
  if (!row) unsupported("operator {} of ai.onnx, which it consists of", op_type);
  onnx::NodeProto proto;
  proto.set_op_type(op_type);
  if (places.empty()) *proto.mutable_output() = proto_.output();
  for (size_t i = 0; i < std::min(places.size(), outputs()); ++i) {
    while (proto.output_size() <= places[i]) proto.add_output();
    proto.set_output(places[i], proto_.output(static_cast<int>(i)));
  }
  auto is_given = [&](const AttributeProto& a) {
    return std::ranges::any_of(attributes, [&](const OnnxAttribute& given) { return a.name() == given.name; });
  };
  for (const AttributeProto& a : proto_.attribute()) {
    if (row->has_attribute(a.name()) && !is_given(a)) *proto.add_attribute() = a;
  }
  for (const OnnxAttribute& attribute : attributes) *proto.add_attribute() = proto_of(attribute);
  std::vector<Value> values;
  for (const std::optional<Expr>& input : inputs) values.push_back(input ? of(*input) : nullptr);
  while (!values.empty() && !values.back()) values.pop_back();
  Node node(graph_, proto, *row, opset, std::move(values), span_);
  Outputs all = row->convert(node), result;
  for (const auto& [name, value] : node.defaults()) {
    if (row_.has_attribute(name) && !has_attr(name.c_str())) defaults_.set(name, value);
  }
  if (places.empty()) return all;
  for (size_t i = 0; i < std::min(places.size(), outputs()); ++i)
    result.push_back(all.at(static_cast<size_t>(places[i])));
  return result;
}
Expr Node::match_cast(const Expr& x, Type type, const char* hint) {
  return builder().match_cast(x, std::move(type), hint);
}
Value Node::of(Expr expr) const { return make_value({.tensor = std::move(expr), .home = &graph_.builder()}); }
Value Node::of(const KnownTensor& contents) {
  KnownTensor simple = contents;
  for (Expr& element : simple.elements) element = simplify(element);
  Expr tensor = relaxc::tensor_of(simple, builder());
  if (!tensor.is<Constant>()) graph_.context().known.set(tensor, std::move(simple));
  return of(tensor);
}
Value Node::sequence(std::vector<Value> items, std::optional<Type> item_type) const {
  return make_value(
      {.is_sequence = true, .items = std::move(items), .item_type = std::move(item_type), .home = &graph_.builder()});
}
Expr Node::leaf(const Value& value) { return graph_.leaf_of(value, span_); }
Value Node::container_op(const std::string& name, std::vector<Expr> args, Attrs attrs) {
  return of(with_measured_dims(*this, builder().op(name, std::move(args), std::move(attrs))));
}
Expr Node::scalar(double value, DType dtype) const { return scalar_constant(value, dtype, span_); }
Expr Node::simplify(const Expr& expr) const {
  return dtype_of(expr).is_float() ? expr : graph_.context().analyzer.simplify(expr);
}
bool Node::provably_equal(const Expr& a, const Expr& b) const {
  return equal_dims(a, b, graph_.context().analyzer) == Verdict::kProven;
}
int64_t Node::least_value(const Expr& e) const { return graph_.context().analyzer.bounds(e).min; }
void Node::require_equal(const Expr& a, const Expr& b, const char* what) {
  Verdict verdict = equal_dims(a, b, graph_.context().analyzer);
  if (verdict == Verdict::kProven) return;
  Expr x = simplify(a), y = simplify(b);
  if (verdict == Verdict::kContradicted) fail("{}: {} and {}", what, print_expr(x), print_expr(y));
  graph_.require_equal(x, y, what);
}
void Node::require_at_most(const Expr& a, const Expr& b, const char* what) {
  const auto found = as_int(simplify(a)), most = as_int(simplify(b));
  if (found && most && *found > *most) fail("{}: {} is more than {}", what, *found, *most);
  require_equal(min(a, b), a, what);
}
void Node::require_nonzero(const Expr& a, const char* what) {
  if (as_int(simplify(a)) == 0) fail("{}: expected another number", what);
  require_equal(a, select(equal(a, int_imm(0)), int_imm(1), a), what);
}
bool Node::same_dims(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
  return std::ranges::equal(a, b, [&](const Expr& x, const Expr& y) { return provably_equal(x, y); });
}
Expr Node::binary(const char* name, const Expr& a, const Expr& b) {
  DType x = dtype_of_tensor(a), y = dtype_of_tensor(b);
  if (x != y) fail("inputs have dtypes {} and {}", to_string(x), to_string(y));
  std::vector<Expr> shape = broadcast(shape_of(a), shape_of(b));
  return op(name, {stretched(a, shape), stretched(b, shape)});
}
Expr Node::clip(const Expr& x, double low, double high) {
  DType dtype = dtype_of_tensor(x);
  if (!dtype.is_float()) fail("expected floats, got {}", to_string(dtype));
  return op("clip", {x, float_imm(low, dtype), float_imm(high, dtype)});
}
Expr Node::cast(const Expr& x, DType dtype) {
  DType from = dtype_of_tensor(x);
  if (from == dtype) return x;
  if (dtype.is_string()) return builder().op("string.from_numbers", {x});
  if (from.is_string()) return builder().op("string.to_numbers", {x}, CastAttrs{dtype});
  return op("astype", {x}, CastAttrs{dtype});
}
Expr Node::reshape(const Expr& x, const std::vector<Expr>& shape) {
  const std::vector<Expr>& from = shape_of(x);
  require_equal(product(from), product(shape), "element counts before and after a reshape");
  if (same_dims(from, shape)) return x;
  // Relax's reshape copies a dim for a 0; a result without elements can do without the data.
  auto is_empty = [](const std::vector<Expr>& dims) {
    return std::ranges::any_of(dims, [](const Expr& dim) { return is_int(dim, 0); });
  };
  if (is_empty(shape) && !is_empty(from)) return op("zeros", {shape_expr(shape)}, FillAttrs{dtype_of_tensor(x)});
  return op("reshape", {x, shape_expr(shape)});
}
Expr Node::transpose(const Expr& x, const std::vector<int64_t>& axes) {
  return op("permute_dims", {x}, AxesAttrs{axes});
}
Expr Node::broadcast_to(const Expr& x, const std::vector<Expr>& shape) {
  return same_dims(shape_of(x), shape) ? x : op("broadcast_to", {x, shape_expr(shape)});
}
Expr Node::slice(const Expr& x, int64_t axis, const Expr& begin, const Expr& end) {
  return op("strided_slice",
            {x, shape_expr({int_imm(axis)}), shape_expr({begin}), shape_expr({end}), shape_expr({int_imm(1)})},
            SliceAttrs{.assume_inbound = true});
}
Expr Node::pick(const Expr& x, int64_t axis, const Expr& index) {
  Expr slice = this->slice(x, axis, index, simplify(index + 1));
  return reshape(slice, without_item(shape_of(slice), axis));
}
Expr Node::with_new_axis(const Expr& x, int64_t axis) {
  const int64_t rank = std::ssize(shape_of(x));
  if (axis < 0 || axis > rank) fail("a tensor has rank {}, expected at least {}", rank, axis);
  return reshape(x, with_new_item(shape_of(x), axis, int_imm(1)));
}
Expr Node::reduce(const char* name, const Expr& x, const std::vector<int64_t>& axes, bool keepdims) {
  return axes.empty() ? x : op(name, {x}, ReduceAttrs{axes, keepdims});
}
Outputs Node::items_of(const Expr& tuple, int64_t count) {
  Outputs outputs;
  for (int64_t i = 0; i < count; ++i)
    outputs.push_back(of(with_measured_dims(*this, builder().emit(tuple_get(tuple, i)))));
  return outputs;
}
std::vector<int64_t> Node::all_axes(int64_t first) const { return int_range(first, rank(0)); }
std::optional<Expr> Node::optional_tensor(size_t i) { return has(i) ? std::optional(tensor(i)) : std::nullopt; }

namespace {

constexpr size_t kMostParts = 64, kGroup = 32;  // tensors of one kernel; and of one group, when there are more

// Binds the value to a variable, as an int64 scalar of the graph.
Expr bound(Node& n, const Expr& scalar, const char* hint) {
  return bounded(n, scalar, hint, {n.least_value(scalar), INT64_MAX});
}

// Makes the axis's dim a number or a variable, so that the kernels of equal groups are equal.
Expr with_named_dim(Node& n, const Expr& x, int64_t axis) {
  std::vector<Expr> shape = n.shape_of(x);
  Expr& dim = shape[axis];
  if (dim.is<IntImm>() || dim.is<Var>()) return x;
  dim = bound(n, dim, "joined");
  return n.match_cast(x, tensor_type(shape, n.dtype_of_tensor(x)));
}

bool is_long(const Expr& scalar) {
  constexpr int kMostOperands = 64;
  int operands = 0;
  walk(scalar, [&](const Var&) { ++operands; });
  return operands > kMostOperands;
}

}  // namespace

Type ValueData::type_of_moved(const MovedStrings& strings) {
  Type positions = *strings.positions->type();
  const std::vector<Expr>* shape = known_shape(positions);
  return shape ? tensor_type(*shape, DType::string()) : tensor_type_of_rank(known_rank(positions), DType::string());
}
std::string kind_text(const ValueData& value) {
  if (value.is_sequence || (value.tensor && value.tensor->type().is<SequenceType>())) return "a sequence";
  if (value.is_none) return "an empty optional";
  if (value.tensor && value.tensor->type().is<OptionalType>()) return "an optional";
  return value.tensor && value.tensor->type().is<MapType>() ? "a map" : "a tensor";
}

Tensor float_list(const std::vector<double>& values) {
  return Tensor::of<float>({std::ssize(values)}, kFloat32, {values.begin(), values.end()});
}

Expr named_if_long(Node& n, const Expr& scalar, const char* hint) {
  if (!is_long(scalar)) return scalar;
  Expr simple = n.simplify(scalar);
  return is_long(simple) ? bound(n, simple, hint) : simple;
}

Expr join(Node& n, const std::vector<Expr>& items, int64_t axis) {
  if (items.size() == 1) return items[0];
  if (items.size() <= kMostParts) return n.op("concat", {tuple(items)}, ConcatAttrs{axis});
  std::vector<Expr> groups;
  for (size_t first = 0; first < items.size(); first += kGroup) {
    auto begin = items.begin() + static_cast<int64_t>(first);
    auto end = items.begin() + static_cast<int64_t>(std::min(first + kGroup, items.size()));
    groups.push_back(with_named_dim(n, join(n, {begin, end}, axis), axis));
  }
  return join(n, groups, axis);
}

std::vector<Expr> cut(Node& n, const Expr& x, int64_t axis, const std::vector<Expr>& offsets) {
  size_t count = offsets.size() - 1;
  size_t parts = 1;  // pieces of one group
  while (count > kMostParts && (count + parts - 1) / parts > kGroup) parts *= kGroup;
  std::vector<Expr> result;
  for (size_t first = 0; first < count; first += parts) {
    size_t last = std::min(first + parts, count);
    Expr group = n.slice(x, axis, offsets[first], offsets[last]);
    if (parts == 1) {
      result.push_back(group);
      continue;
    }
    std::vector<Expr> inner;
    for (size_t i = first; i <= last; ++i) inner.push_back(n.simplify(offsets[i] - offsets[first]));
    std::vector<Expr> pieces = cut(n, group, axis, inner);
    result.insert(result.end(), pieces.begin(), pieces.end());
  }
  return result;
}

}  // namespace relaxc::onnx_import
