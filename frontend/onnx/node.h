// The view that a converter has of one ONNX node: inputs, attributes, the opset, and the means to build.
#pragma once
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "ir/arith.h"
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/known_values.h"
#include "ops/onnx_converter.h"

namespace relaxc::onnx_import {

class GraphImporter;
struct ConverterRow;

// An ONNX value as the importer knows it: an expression (of a tensor, or of a sequence, optional or map that only the
// run knows), or a sequence whose items are known.
struct ValueData;
using Value = std::shared_ptr<ValueData>;

// Strings that are moved: positions in a pool, which is any tensor of strings.
struct MovedStrings {
  Value positions;
  Expr pool;
};

struct ValueData {
  std::optional<Expr> tensor = {};           // a leaf
  std::optional<MovedStrings> strings = {};  // there is no tensor of them until an operator needs it
  bool is_sequence = false;
  std::vector<Value> items = {};       // of a sequence
  bool is_none = false;                // an optional without a value
  std::optional<Type> item_type = {};  // of a value that is not there: an item of an empty sequence, or of an optional
  bool poisoned = false;               // its node failed; the failure is reported already
  std::string source = {};             // of a poisoned value: "nothing implements node 'gelu'"
  const Builder* home = nullptr;       // the builder of the graph to which `tensor` belongs; others do not cache it

  // Returns nullopt for a value that has no expression yet, and for a poisoned one.
  std::optional<Type> type() const {
    if (tensor) return tensor->type();
    return strings ? std::optional(type_of_moved(*strings)) : std::nullopt;
  }
  static Type type_of_moved(const MovedStrings& strings);
};
// Returns "a tensor", "a sequence", "an empty optional".
std::string kind_text(const ValueData& value);
inline Value make_value(ValueData data) { return std::make_shared<ValueData>(std::move(data)); }
// Returns whether it is a tensor of strings.
bool is_text(const Value& value);
using Outputs = std::vector<Value>;

// An attribute for Node::standard().
struct OnnxAttribute {
  const char* name;
  std::variant<int64_t, double, std::string, std::vector<int64_t>> value;
};
inline constexpr int64_t kNewestOpset = 1000;
// Returns the newest version of ai.onnx that changes or adds an operator of the table.
int64_t newest_opset();

class Node {
 public:
  Node(GraphImporter& graph, const onnx::NodeProto& proto, const ConverterRow& row, int64_t opset,
       std::vector<Value> inputs, const Span& span);

  const std::string& op_type() const { return proto_.op_type(); }
  const ConverterRow& row() const { return row_; }
  const onnx::NodeProto& proto() const { return proto_; }
  const Span& span() const { return span_; }
  int64_t opset() const { return opset_; }
  template <class... Args>
  [[noreturn]] void fail(FormatString<Args...> pattern, const Args&... args) const {
    relaxc::fail(span_, pattern, args...);
  }
  template <class... Args>
  [[noreturn]] void unsupported(FormatString<Args...> pattern, const Args&... args) const {
    relaxc::fail_unsupported(span_, pattern, args...);
  }

  // Says that `what`, which operand's dims tell, decides the rank of the result, and how to give it: `dims` is an
  // example.
  [[noreturn]] void fail_open_rank(const Expr& operand, const char* what, const char* dims) const;

  // ---- Inputs. An absent optional input has an empty name or is beyond the end.
  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Value& value(size_t i) const;
  // Return an input, or all of them, as tensor expressions. A sequence is an error.
  Expr tensor(size_t i);
  std::vector<Expr> tensors() {
    return map_each(int_range(0, std::ssize(inputs_)), [&](size_t i) { return tensor(i); });
  }
  Expr tensor(const Value& value);
  // Returns an input of any kind as a leaf.
  Expr leaf(const Value& value);
  Expr leaf(size_t i) { return leaf(value(i)); }
  // Returns the value of an operator that takes or gives other values than tensors. Dims of a tensor are measured.
  Value container_op(const std::string& name, std::vector<Expr> args, Attrs attrs = {});
  std::optional<Expr> optional_tensor(size_t i);
  Type type(size_t i) const;
  std::vector<Expr> shape(size_t i) const;
  int64_t rank(size_t i) const { return std::ssize(shape(i)); }
  // Returns a dim of an input. The model decides the rank, so a rank that is too small is an error.
  Expr dim(size_t i, size_t d) const {
    std::vector<Expr> dims = shape(i);
    if (d >= dims.size()) fail("input {} has rank {}, expected at least {}", i, dims.size(), d + 1);
    return dims[d];
  }
  // Returns the number of elements of a list; a scalar counts as one.
  Expr length_of(const std::vector<Expr>& dims) const {
    if (dims.size() > 1) fail("a list has rank {}, expected 0 or 1", dims.size());
    return dims.empty() ? int_imm(1) : dims[0];
  }
  // Returns the axes of input 0 from `first` on.
  std::vector<int64_t> all_axes(int64_t first = 0) const;
  DType dtype(size_t i) const;
  // Returns the elements of an integer tensor when all are constants. A list of length 0 is known without its contents.
  std::optional<std::vector<int64_t>> constant_ints(size_t i) const;
  // Returns the tensor behind a constant (initializer, Constant node, or constant contents).
  std::optional<Tensor> constant(size_t i);
  // Returns integer elements as scalars, read at run time if need be. Their number must be known; rank 0 counts as one.
  std::vector<Expr> ints(size_t i);
  // Returns those of a list whose length is `count`, as the rest of the node says. The run checks a length that the
  // model leaves open; without a count such a list is unsupported.
  std::vector<Expr> ints(size_t i, std::optional<int64_t> count);
  // Returns `most` integers of a list of at most that length; `otherwise` stands for each that it lacks at its end.
  std::vector<Expr> ints_up_to(const Value& list, int64_t most, int64_t otherwise);
  // Returns the length of a list if it is known; a scalar counts as one.
  std::optional<int64_t> known_length(size_t i) { return as_int(simplify(length_of(shape(i)))); }
  std::optional<int64_t> known_length(const Expr& list) { return as_int(simplify(length_of(shape_of(list)))); }
  // Gives a list the length that it has to have; the run checks it where the model leaves it open.
  Expr with_length(const Expr& list, int64_t count);
  Expr scalar_int(size_t i);
  std::vector<Expr> ints_of(const Value& value);

  // ---- Attributes. A converter may read only those that its row lists. `otherwise` is the operator's default; an
  // attribute that has none is read behind has_attr().
  bool has_attr(const char* name) const { return find_attr(name) != nullptr; }
  int64_t attr_int(const char* name, int64_t otherwise);
  double attr_float(const char* name, double otherwise);
  std::string attr_string(const char* name, std::string otherwise);
  std::optional<std::vector<int64_t>> attr_ints(const char* name);
  // Returns `count` numbers, each of which is `otherwise` when the attribute is absent.
  std::vector<int64_t> attr_ints(const char* name, size_t count, int64_t otherwise);
  std::vector<double> attr_floats(const char* name);
  std::vector<std::string> attr_strings(const char* name);
  std::optional<Tensor> attr_tensor(const char* name);
  std::optional<Tensor> attr_sparse_tensor(const char* name);  // with its zeros
  const onnx::GraphProto& attr_graph(const char* name);
  const onnx::TypeProto& attr_type(const char* name);
  DType attr_dtype(const char* name, DType otherwise);
  int64_t required_int(const char* name);
  std::vector<int64_t> required_ints(const char* name);
  // Returns the defaults of those that were read, and that the node leaves out.
  const Attrs& defaults() const { return defaults_; }
  // Checks an axis; an error reads "axis is 7, expected -2 to 1".
  int64_t axis(int64_t value, int64_t rank, const char* what = "axis") const;

  // ---- Building
  Builder& builder();
  GraphImporter& graph() { return graph_; }
  // Returns the result, of which graph().known() tells the contents, as far as they are known.
  Expr op(const std::string& name, std::vector<Expr> args, Attrs attrs = {});
  template <HasFields T>
  Expr op(const std::string& name, std::vector<Expr> args, const T& attrs) {
    return op(name, std::move(args), write_attrs(attrs));
  }
  // Returns the outputs of an operator of ai.onnx on these inputs, nullopt for an absent one. Its attributes are this
  // node's, as far as the operator has them, and `attributes`, which win. Output i of this node is that of `places[i]`;
  // none: they are the same.
  Outputs standard_outputs(const char* op_type, const std::vector<std::optional<Expr>>& inputs,
                           const std::vector<OnnxAttribute>& attributes = {}, int64_t opset = kNewestOpset,
                           const std::vector<int>& places = {});
  Expr standard(const char* op_type, const std::vector<std::optional<Expr>>& inputs,
                const std::vector<OnnxAttribute>& attributes = {}, int64_t opset = kNewestOpset) {
    return tensor(standard_outputs(op_type, inputs, attributes, opset).at(0));
  }
  // Gives the tensor a type that says more about it.
  Expr match_cast(const Expr& x, Type type, const char* hint = "");
  // Binds a compound scalar to a variable, so that expressions over it stay short.
  Expr named(const Expr& scalar, const char* hint);
  Value of(Expr expr) const;
  Value of(const KnownTensor& contents);
  Value sequence(std::vector<Value> items, std::optional<Type> item_type = {}) const;
  Expr scalar(double value, DType dtype) const;  // a constant tensor of rank 0
  Expr simplify(const Expr& expr) const;
  bool provably_equal(const Expr& a, const Expr& b) const;
  bool same_dims(const std::vector<Expr>& a, const std::vector<Expr>& b) const;
  // Returns the least value that the int64 scalar can take, as far as it is known.
  int64_t least_value(const Expr& e) const;
  // Returns whether a dim that is not known is 1 or the other: because it is at most 1, or has met the other before.
  bool gives_way(const Expr& dim, const Expr& other) const;
  // Requires a == b when the model runs. It is an error now when they are constants that differ.
  void require_equal(const Expr& a, const Expr& b, const char* what);
  // Requires a <= b in the same way.
  void require_at_most(const Expr& a, const Expr& b, const char* what);
  void require_nonzero(const Expr& a, const char* what);
  // Broadcasts shapes by numpy's rule. A dim gives way to another, such as min(n, 1) of the last row x[-1:]. Other
  // symbolic dims that meet are required to be equal, or give way to the size that both stretch to (broadcast.cc).
  std::vector<Expr> broadcast(std::vector<Expr> a, std::vector<Expr> b);
  // Repeats x along dims that give way to the broadcast shape: operators themselves stretch dims of a known 1 only.
  Expr stretched(const Expr& x, const std::vector<Expr>& shape);
  // Returns x with each dim that may be 1 stretched to that of the shape, which is a fact and does not give way: a
  // scale to the dims of the data.
  Expr stretched_into(const Expr& x, const std::vector<Expr>& shape, const char* what);

  // These are common compositions of operators. Operands broadcast and have equal dtypes.
  Expr binary(const char* name, const Expr& a, const Expr& b);
  Expr add(const Expr& a, const Expr& b) { return binary("add", a, b); }
  Expr sub(const Expr& a, const Expr& b) { return binary("subtract", a, b); }
  Expr mul(const Expr& a, const Expr& b) { return binary("multiply", a, b); }
  Expr div(const Expr& a, const Expr& b) { return binary("divide", a, b); }
  Expr scaled(const Expr& x, double factor) { return factor == 1 ? x : mul(x, scalar_like(factor, x)); }
  Expr scalar_like(double value, const Expr& x) const { return scalar(value, dtype_of_tensor(x)); }
  Expr clip(const Expr& x, double low, double high);  // of floats
  Expr cast(const Expr& x, DType dtype);
  Expr reshape(const Expr& x, const std::vector<Expr>& shape);
  Expr transpose(const Expr& x, const std::vector<int64_t>& axes);
  Expr broadcast_to(const Expr& x, const std::vector<Expr>& shape);
  // Returns x[begin:end] along an axis, with 0 <= begin <= end <= dim.
  Expr slice(const Expr& x, int64_t axis, const Expr& begin, const Expr& end);
  // Returns x[..., index, ...] without that axis, and x with a new axis of size 1.
  Expr pick(const Expr& x, int64_t axis, const Expr& index);
  Expr pick(const Expr& x, int64_t axis, int64_t index) { return pick(x, axis, int_imm(index)); }
  Expr with_new_axis(const Expr& x, int64_t axis);
  Expr reduce(const char* name, const Expr& x, const std::vector<int64_t>& axes, bool keepdims);
  // Returns the first items of an operator's several results.
  Outputs items_of(const Expr& tuple, int64_t count);
  const std::vector<Expr>& shape_of(const Expr& x) const;
  // Returns one dim, counted from the end if `d` is negative. A rank that lacks it is an error.
  const Expr& dim_of(const Expr& x, int64_t d) const;
  DType dtype_of_tensor(const Expr& x) const;

  // ---- Outputs
  size_t outputs() const { return static_cast<size_t>(proto_.output_size()); }
  // Returns the rank of an output as the model declares it, or as its later nodes imply it.
  std::optional<int64_t> output_rank(size_t i) const;
  bool has_output(size_t i) const { return i < outputs() && !proto_.output(static_cast<int>(i)).empty(); }

 private:
  void check_ranks(const std::vector<Expr>& args) const;
  // Returns the size of two dims of which one may be 1 when the model runs.
  Expr size_of_meeting(const Expr& a, const Expr& b);
  Expr sized_op(const OpRow& row, const std::vector<Expr>& args, const Attrs& attrs);
  const onnx::AttributeProto* find_attr(std::string_view name) const;
  // Returns the attribute, which must be there and have this type.
  const onnx::AttributeProto& required(const char* name, onnx::AttributeProto::AttributeType type);
  template <class T>
  T default_of(const char* name, T value) {
    defaults_.set(name, value);
    return value;
  }

  GraphImporter& graph_;
  const onnx::NodeProto& proto_;
  const ConverterRow& row_;
  int64_t opset_;
  std::vector<Value> inputs_;
  Span span_;
  Attrs defaults_ = {};
};

// Converts a node as a plug-in's row says.
Outputs convert_custom(Node& n, const OnnxConverter& converter);

// Is the advice for a rank that nothing tells, such as that of the items of a sequence.
inline constexpr const char* kRankRemedy =
    "declare the shape in the model, or give the type of the graph input that it comes from: --type "
    "'NAME=float32[n, 4]', or for a sequence --type 'NAME=sequence(float32[n, 4])'";

inline constexpr int kAny = 1 << 20;
// Converts a node to its outputs. A function that returns an expression gives the only output; its second parameter, if
// it has one, is the node's first input, and its third one is `op`: {arg_reduce, "argmax"}.
struct Converter : std::variant<Outputs (*)(Node&), Expr (*)(Node&), Expr (*)(Node&, const Expr& x),
                                Expr (*)(Node&, const Expr& x, const char* op), const OnnxConverter*> {
  using variant::variant;
  Converter(Expr (*function)(Node&, const Expr&, const char*), const char* op) : variant(function), op(op) {}
  Converter(const OnnxConverter& custom) : variant(&custom) {}
  Outputs operator()(Node& n) const {
    if (auto* custom = std::get_if<const OnnxConverter*>(this)) return convert_custom(n, **custom);
    if (auto* outputs = std::get_if<0>(this)) return (*outputs)(n);
    if (auto* output = std::get_if<1>(this)) return {n.of((*output)(n))};
    auto* of_input = std::get_if<2>(this);
    return {n.of(of_input ? (*of_input)(n, n.tensor(0)) : std::get<3>(*this)(n, n.tensor(0), op))};
  }

  // Returns whether the function gives an expression, as those of the operators with one output do.
  bool has_one_output() const { return index() == 1 || index() == 2 || index() == 3; }

  const char* op = "";  // the operator in which rows that share the function differ
};
// The table has one row per operator, and one more for each opset that changed its meaning.
struct ConverterRow {
  std::string_view op_type;
  int64_t since;  // the first opset of this form
  int least_inputs, most_inputs;
  Converter convert;
  const char* attributes = "";  // the names that a node may have, separated by spaces; some do not matter for inference
  const char* domain = "";
  uint32_t may_be_empty = 0;     // bit i: input i, one of the least, may have an empty name
  const char* why_refused = "";  // why no node of it can be compiled, and what to do; empty where one can
  int64_t removed_in = 0;        // the opset that no longer has it; 0 where there is none

  bool has_attribute(std::string_view name) const;
};
// Returns the rows of a group with their domain.
std::vector<ConverterRow> in_domain(const char* domain, std::vector<ConverterRow> rows);
// Makes the row of an operator that is known and refused by name.
ConverterRow refused_row(std::string_view op_type, int64_t since, const char* why);

// Converts the node to the operator of the same meaning.
Expr convert_directly(Node& n, const Expr& x, const char* op);

// Returns x as Cast converts it (frontend/onnx/quantize.cc): by the node's attributes 'saturate' and 'round_mode',
// which matter for floats of 8 bits.
Expr convert(Node& n, const Expr& x, DType dtype);

// Returns the convolution of x by the node's window attributes. x replaces input 0 of the node and has its shape.
Expr convolve(Node& n, const Expr& x, const Expr& weight);
// Returns the transposed convolution of input 0 by input 1 and the node's window attributes, where `pads` replace those
// of the node.
Expr convolve_transposed(Node& n, const std::optional<Expr>& bias, const std::optional<std::vector<Expr>>& pads);

// The groups of converters: `slice` is frontend/onnx/slice.cc, whose slice_converters() returns the rows.
// clang-format off
#define RELAXC_CONVERTER_GROUPS(X) \
  X(elementwise) X(layout) X(slice) X(index) X(create) X(image) X(detection) X(signal) X(random) X(linear_algebra) \
  X(convolution) X(normalization) X(training) X(gradient) X(reduction) X(quantize) X(sequence) X(control) X(recurrent) \
  X(attention) X(linear_attention) X(contrib) X(contrib_products) X(contrib_quantize) X(contrib_attention) \
  X(contrib_decoding) X(contrib_group_query) X(contrib_padding) X(contrib_experts) X(contrib_features) \
  X(contrib_refused) \
  X(strings) X(trees) X(linear_models) X(features) X(encoders) X(maps)
// clang-format on
#define RELAXC_ROW(group) std::vector<ConverterRow> group##_converters();
RELAXC_CONVERTER_GROUPS(RELAXC_ROW)
#undef RELAXC_ROW

// Returns all rows.
std::vector<ConverterRow> all_converters();
// Returns the converter for an operator at that opset, or null.
const ConverterRow* find_converter(const std::string& domain, const std::string& op_type, int64_t opset);
// Returns why a node of this domain has no converter, and what to do; "" where nothing is known of the domain.
std::string why_domain_is_unknown(std::string_view domain);
// Returns what a user can do about nodes that cannot be compiled: "give a kernel for it: ...".
std::string kernel_remedy(const std::string& domain, const std::string& op_type);

// Returns the same of a plug-in's rows, and such a row as one of the table.
const OnnxConverter* find_custom(std::span<const OnnxConverter> converters, const std::string& domain,
                                 const std::string& op_type, int64_t opset);
ConverterRow row_of(const OnnxConverter& converter);

// Returns a float32 tensor of rank 1.
Tensor float_list(const std::vector<double>& values);

// Binds a scalar expression of many operands to a variable, so that expressions over it stay short. A short expression
// stays as it is, so that more can be proven about it.
Expr named_if_long(Node& n, const Expr& scalar, const char* hint);

// Joins tensors. Thousands of them are joined, or cut, in groups of groups: no kernel then has all of them and no dim
// is a sum of thousands, because the code for either grows with the product of operands and depth.
Expr join(Node& n, const std::vector<Expr>& items, int64_t axis);
// Returns the pieces from offsets[i] to offsets[i + 1].
std::vector<Expr> cut(Node& n, const Expr& x, int64_t axis, const std::vector<Expr>& offsets);

}  // namespace relaxc::onnx_import
