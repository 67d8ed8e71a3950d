// Random ONNX graphs: 3 to 12 nodes over about 110 operators, three symbolic dims, and the inputs to run them with.
//
// A dim is its size under each of three bindings of the symbolic dims, so the generator needs no symbolic arithmetic:
// an operator's shape rule is applied three times. A value carries the interval that its elements lie in, the power of
// two that they are multiples of, and a bound on the rounding error of any reasonable implementation. An element is
// exact when the error is 0; operators that jump (Floor, ArgMax, comparisons) get exact operands only, so that two
// right implementations cannot differ by more than the bound, and the bound is the tolerance.
#pragma once
#include <onnx/onnx_pb.h>  // with ONNX_ML, as the library of relaxc is built

#include <array>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "vm/tensor.h"

namespace relaxc::test::onnx_graphs {

inline constexpr int kBindings = 3;

struct Dim {
  std::array<int64_t, kBindings> sizes;
  bool is_static = true;    // known to whoever reads the model; else it depends on a symbolic dim
  std::string symbol = {};  // when it is one

  Dim(int64_t size) : sizes{size, size, size} {}  // NOLINT: a number is a dim
  friend bool operator==(const Dim& a, const Dim& b) { return a.sizes == b.sizes; }
  bool is(int64_t size) const { return is_static && sizes[0] == size; }
  int64_t least() const { return std::min({sizes[0], sizes[1], sizes[2]}); }
  int64_t most() const { return std::max({sizes[0], sizes[1], sizes[2]}); }
};
using Shape = std::vector<Dim>;

struct Range {
  double low = -2, high = 2;
  double step = 0.125;  // every element is a multiple of it, while it is exact
  double error = 0;
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  bool exact() const { return error == 0; }
};
inline const Range kIntegers = {-5, 5, 1, 0}, kFlags = {0, 1, 1, 0}, kPositive = {0.125, 2.125, 0.125, 0};

struct Value {
  std::string name;
  DType dtype;
  Shape shape;
  Range range;
  bool is_constant = false;
};

struct Graph {
  uint64_t seed = 0;
  onnx::ModelProto model;
  std::map<std::string, Value> values;  // by name; inputs, constants and results
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Tensor> given;  // of a graph that was shrunk: its inputs, under a single binding
  int bindings() const { return given.empty() ? kBindings : 1; }

  // The contents depend on the seed, the input's name and the binding only, unless they are given.
  std::vector<Tensor> make_inputs(int binding) const;
  // Writes model.onnx and test_data_set_<binding>/input_<i>.pb.
  void write(const std::string& folder) const;
  // One line per input, node and output.
  std::string print() const;
};

Graph make_graph(uint64_t seed);
// Declares the inputs and outputs of graph.inputs and graph.outputs in the model, and drops nodes and initializers that
// the outputs do not need.
void finish(Graph& graph);

// Thrown while drawing a node that cannot be added; what the attempt added is taken back.
struct Unfit {};

using Attrs = std::vector<onnx::AttributeProto>;
onnx::AttributeProto attribute(const std::string& name, int64_t value);
onnx::AttributeProto attribute(const std::string& name, int value);
onnx::AttributeProto attribute(const std::string& name, double value);
onnx::AttributeProto attribute(const std::string& name, const char* value);
onnx::AttributeProto attribute(const std::string& name, const std::vector<int64_t>& values);

class Generator {
 public:
  explicit Generator(uint64_t seed);
  Graph generate();

  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return static_cast<double>(random_() % 10000) < probability * 10000; }
  template <class T>
  T one_of(std::vector<T> choices) {
    return choices[random_() % choices.size()];
  }
  int opset() const { return opset_; }
  static void need(bool condition) {
    if (!condition) throw Unfit{};
  }

  // An existing value that satisfies the condition, or a new one of this dtype and a rank in the interval.
  Value value(const std::function<bool(const Value&)>& condition, DType dtype, int64_t least_rank, int64_t most_rank,
              const Range& range = {});
  Value float_value(int64_t least_rank, int64_t most_rank) {
    return value([&](const Value& v) { return v.dtype.is_float() && fits(v, least_rank, most_rank); }, float_dtype(),
                 least_rank, most_rank);
  }
  Value any_value(int64_t least_rank, int64_t most_rank);
  static bool fits(const Value& value, int64_t least_rank, int64_t most_rank) {
    auto rank = static_cast<int64_t>(value.shape.size());
    return rank >= least_rank && rank <= most_rank;
  }
  // A new graph input or initializer.
  Value tensor(DType dtype, Shape shape, const Range& range = {});
  // An operand that broadcasts with the value: an existing one, or a new one.
  Value partner(const Value& other, const Range& range);
  // A shape-like operand: an initializer or a Constant node, or nodes that compute it from the shapes of values.
  std::string ints(const std::vector<int64_t>& numbers);
  std::string dims(const Shape& shape);
  std::string scalar(DType dtype, double number);
  DType float_dtype();
  DType any_dtype();
  Dim new_dim();
  Shape new_shape(int64_t rank);
  int64_t axis_of(const Value& value) { return draw(0, static_cast<int64_t>(value.shape.size()) - 1); }
  // The axis, sometimes counted from the end.
  int64_t written(int64_t axis, const Value& value) {
    return chance(0.4) ? axis - static_cast<int64_t>(value.shape.size()) : axis;
  }

  struct Result {
    DType dtype;
    Shape shape;
    Range range;
  };
  std::vector<Value> emit_many(const std::string& op, const std::vector<std::string>& inputs, Attrs attrs,
                               std::vector<Result> results);
  Value emit(const std::string& op, const std::vector<std::string>& inputs, Attrs attrs, DType dtype, Shape shape,
             const Range& range) {
    return emit_many(op, inputs, std::move(attrs), {{dtype, std::move(shape), range}})[0];
  }
  // Returns the range rounded to the dtype. Throws Unfit when a value could overflow or be mostly rounding error.
  static Range rounded(Range range, DType dtype);
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }
  Graph& graph() { return graph_; }

 private:
  bool add_node();
  std::string of_shape(const Dim& dim);
  onnx::GraphProto& proto() { return *graph_.model.mutable_graph(); }

  std::mt19937_64 random_;
  int opset_;
  int next_ = 0;
  std::vector<Dim> symbols_;
  Graph graph_;
  std::vector<std::string> order_;        // values that a node may read
  std::set<std::string> results_, used_;  // of nodes; those that another node reads
};

// Draws one node, or a few, of that operator.
struct Operator {
  const char* name;
  int since;  // the first opset that has this form
  std::function<void(Generator& g, const char* name)> draw;
};
std::vector<Operator> elementwise_operators();
std::vector<Operator> reduction_operators();
std::vector<Operator> layout_operators();
std::vector<Operator> index_operators();
std::vector<Operator> network_operators();
std::vector<Operator> control_operators();
std::vector<Operator> newer_operators();
const std::vector<Operator>& operators();

int64_t most_elements(const Shape& shape);
bool has_zero(const Shape& shape);
Shape broadcast(const Shape& a, const Shape& b);  // Unfit when they do not
template <class F>
Dim map_dim(const Dim& dim, F f) {
  Dim result = dim;
  result.symbol.clear();
  for (int64_t& size : result.sizes) size = f(size);
  return result;
}
Dim combine(const Dim& a, const Dim& b, const std::function<int64_t(int64_t, int64_t)>& f);
Dim product(const Shape& shape, size_t begin, size_t end);
Range joined(const Range& a, const Range& b);

}  // namespace relaxc::test::onnx_graphs
