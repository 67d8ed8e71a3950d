// Control flow. If becomes a branch of the graph (or one of its sides, when the condition is known). Loop and Scan are
// unrolled when their trip count is known.
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

constexpr int64_t kMostIterations = 1024;

// Makes one branch as a SeqExpr of its outputs.
Expr branch(Node& n, const onnx::GraphProto& graph) {
  Builder builder(n.graph().context().ops);
  builder.set_span(n.span());
  GraphImporter body(n.graph(), builder);
  std::vector<Expr> results;
  for (const Value& value : body.import_subgraph(graph)) {
    if (value->poisoned) throw CompileError({});  // reported where it failed
    if (value->is_sequence || value->is_none) n.unsupported("a branch that gives a sequence or an optional");
    results.push_back(body.tensor_of(value, n.span()));
  }
  return builder.finish(results.size() == 1 ? results[0] : tuple(results));
}

// Returns the type that the results of both branches have. Dims that differ are left unknown.
Type common_type(Node& n, const Type& a, const Type& b) {
  if (structural_equal(a, b)) return a;
  if (const TupleType *x = a.as<TupleType>(), *y = b.as<TupleType>(); x && y && x->items.size() == y->items.size()) {
    std::vector<Type> items;
    for (size_t i = 0; i < x->items.size(); ++i) items.push_back(common_type(n, x->items[i], y->items[i]));
    return tuple_type(std::move(items));
  }
  if (!a.is<TensorType>() || !b.is<TensorType>() || tensor_dtype(a) != tensor_dtype(b))
    n.fail("the branches have different types");
  int64_t rank = known_rank(a);
  if (rank < 0 || rank != known_rank(b)) n.unsupported("branches of different ranks, {} and {}", rank, known_rank(b));
  return tensor_type_of_rank(rank, tensor_dtype(a));
}
// Gives a tensor with unknown dims new variables for them, which are measured when the model runs.
Expr with_measured_dims(Node& n, const Expr& x) {
  if (known_shape(x.type()) || known_rank(x.type()) < 0) return x;
  std::vector<Expr> dims;
  for (int64_t d = 0; d < known_rank(x.type()); ++d) {
    VarRef dim = make_dim(fmt::format("d{}", d));
    n.graph().context().analyzer.bind(dim, Interval{0, std::numeric_limits<int64_t>::max()});
    dims.push_back(dim);
  }
  return n.match_cast(x, tensor_type(std::move(dims), tensor_dtype(x.type())));
}

// Returns the flag, when it is known.
std::optional<int64_t> known_flag(const Value& value) {
  return value->contents ? value->contents->only_int() : std::nullopt;
}

Outputs if_node(Node& n) {
  const onnx::GraphProto &then_graph = n.attr_graph("then_branch"), &else_graph = n.attr_graph("else_branch");
  if (then_graph.output_size() != else_graph.output_size())
    n.fail("the branches have {} and {} outputs", then_graph.output_size(), else_graph.output_size());
  if (auto known = known_flag(n.value(0)))
    return GraphImporter(n.graph(), n.builder()).import_subgraph(*known ? then_graph : else_graph);
  Expr condition = n.bound(n.reshape(n.tensor(0), {}));
  Expr then_branch = branch(n, then_graph), else_branch = branch(n, else_graph);
  Type type = common_type(n, then_branch.type(), else_branch.type());
  Builder& b = n.builder();
  bool main = &b == n.graph().context().main_builder;
  if (main) b.end_dataflow({});
  Expr result = b.emit(make(If{condition, then_branch, else_branch}, type, n.span()));
  if (main) b.begin_dataflow();
  if (then_graph.output_size() == 1) return {n.of(with_measured_dims(n, result))};
  Outputs outputs;
  for (int i = 0; i < then_graph.output_size(); ++i)
    outputs.push_back(n.of(with_measured_dims(n, b.emit(tuple_get(result, i)))));
  return outputs;
}

Value stacked(Node& n, const std::vector<Value>& slices, int64_t axis) {
  std::vector<Expr> parts;
  for (const Value& slice : slices) {
    Expr x = n.tensor(slice);
    axis = n.axis(axis, std::ssize(n.shape_of(x)) + 1);
    parts.push_back(n.with_new_axis(x, axis));
  }
  return n.of(join(n, parts, axis));
}

// Inlines one iteration. An error in it has been reported where it is.
std::vector<Value> run_body(Node& n, const onnx::GraphProto& body, const std::vector<Value>& arguments) {
  std::vector<Value> results = GraphImporter(n.graph(), n.builder()).import_subgraph(body, arguments);
  for (const Value& value : results) {
    if (value->poisoned) throw CompileError({});
  }
  return results;
}
Outputs loop_node(Node& n) {
  const onnx::GraphProto& body = n.attr_graph("body");
  std::optional<int64_t> trips;
  if (n.has(0)) {
    auto known = n.constant_ints(0);
    if (!known) n.unsupported("a trip count that is known at run time only");
    if (known->size() != 1) n.fail("the trip count has {} elements, expected 1", known->size());
    trips = (*known)[0];
  }
  std::optional<int64_t> condition = n.has(1) ? known_flag(n.value(1)) : 1;
  size_t carried = n.inputs() > 2 ? n.inputs() - 2 : 0;
  if (body.input_size() != static_cast<int>(carried) + 2) n.fail("the body has {} inputs", body.input_size());
  int scans = body.output_size() - 1 - static_cast<int>(carried);
  if (scans < 0) n.fail("the body has {} outputs", body.output_size());
  Outputs state;
  for (size_t i = 0; i < carried; ++i) state.push_back(n.value(i + 2));
  std::vector<std::vector<Value>> slices(static_cast<size_t>(scans));
  for (int64_t i = 0; !trips || i < *trips; ++i) {
    if (!condition) n.unsupported("a loop condition that is known at run time only");
    if (!*condition) break;
    if (i >= kMostIterations) n.unsupported("a loop of more than {} iterations", kMostIterations);
    std::vector<Value> arguments = {n.of(KnownTensor{kInt64, {}, {int_imm(i)}}),
                                    n.of(KnownTensor{kBool, {}, {bool_imm(true)}})};
    arguments.insert(arguments.end(), state.begin(), state.end());
    std::vector<Value> results = run_body(n, body, arguments);
    condition = known_flag(results[0]);
    for (size_t k = 0; k < carried; ++k) state[k] = results[k + 1];
    for (size_t k = 0; k < slices.size(); ++k) slices[k].push_back(results[carried + 1 + k]);
  }
  for (const auto& list : slices) {
    if (list.empty()) n.unsupported("scan outputs of a loop that runs no iteration");
    state.push_back(stacked(n, list, 0));
  }
  return state;
}

// Imports a Scan. Sequences are cut along an axis, and each step's slices and the carried state go through the body.
class Scan {
 public:
  explicit Scan(Node& n) : n_(n), body_(n.attr_graph("body")), batched_(n.opset() < 9) {
    size_t first = batched_ ? 1 : 0;
    scanned_ = static_cast<size_t>(n.required_int("num_scan_inputs"));
    if (n.inputs() < first + scanned_) n.fail("{} inputs for {} scan inputs", n.inputs(), scanned_);
    carried_ = n.inputs() - first - scanned_;
    if (body_.output_size() < static_cast<int>(carried_)) n.fail("the body has {} outputs", body_.output_size());
    scan_outputs_ = static_cast<size_t>(body_.output_size()) - carried_;
    if (batched_ && n.has(0)) n.unsupported("sequence lengths");
    auto later = [&](const char* name, size_t count) {
      return batched_ ? Ints(count, 0) : n.attr_ints(name, count, 0);
    };
    in_axes_ = later("scan_input_axes", scanned_);
    in_reversed_ = n.attr_ints(batched_ ? "directions" : "scan_input_directions", scanned_, 0);
    out_axes_ = later("scan_output_axes", scan_outputs_);
    out_reversed_ = later("scan_output_directions", scan_outputs_);
    for (size_t k = 0; k < carried_; ++k) state_.push_back(n.value(first + k));
    for (size_t k = 0; k < scanned_; ++k) sequences_.push_back(n.tensor(first + carried_ + k));
  }

  Outputs convert() {
    if (!batched_) return run(state_, sequences_);
    auto batch = as_int(n_.shape_of(sequences_.at(0)).at(0));
    if (!batch || *batch < 1 || *batch > 64) n_.unsupported("a scan over a batch that is symbolic or large");
    std::vector<std::vector<Value>> results;
    for (int64_t b = 0; b < *batch; ++b) {
      auto state = [&](const Value& value) { return n_.of(n_.pick(n_.tensor(value), 0, b)); };
      auto part = [&](const Expr& sequence) { return n_.pick(sequence, 0, b); };
      std::vector<Value> states = map_each(state_, state);
      std::vector<Value> one = run(std::move(states), map_each(sequences_, part));
      results.resize(one.size());
      for (size_t k = 0; k < one.size(); ++k) results[k].push_back(one[k]);
    }
    return map_each(results, [&](const std::vector<Value>& list) { return stacked(n_, list, 0); });
  }

 private:
  using Ints = std::vector<int64_t>;

  int64_t length_of(const std::vector<Expr>& sequences) {
    std::optional<int64_t> length;
    for (size_t k = 0; k < scanned_; ++k) {
      std::vector<Expr> shape = n_.shape_of(sequences[k]);
      in_axes_[k] = n_.axis(in_axes_[k], std::ssize(shape));
      auto size = as_int(shape[in_axes_[k]]);
      if (!size) n_.unsupported("a scan over a symbolic dim; make it constant with --dim");
      if (length && *length != *size) n_.fail("scan inputs of length {} and {}", *length, *size);
      length = size;
    }
    if (!length || *length > kMostIterations || *length == 0) n_.unsupported("a scan of {} steps", length.value_or(0));
    return *length;
  }
  // Runs the steps for one batch element, or for the only one. Returns the last state, then the stacked outputs.
  std::vector<Value> run(std::vector<Value> state, const std::vector<Expr>& sequences) {
    int64_t length = length_of(sequences);
    std::vector<std::vector<Value>> slices(scan_outputs_);
    for (int64_t i = 0; i < length; ++i) {
      std::vector<Value> arguments = state;
      for (size_t k = 0; k < scanned_; ++k)
        arguments.push_back(n_.of(n_.pick(sequences[k], in_axes_[k], in_reversed_[k] ? length - 1 - i : i)));
      std::vector<Value> results = run_body(n_, body_, arguments);
      for (size_t k = 0; k < carried_; ++k) state[k] = results[k];
      for (size_t k = 0; k < scan_outputs_; ++k) {
        auto& list = slices[k];
        list.insert(out_reversed_[k] ? list.begin() : list.end(), results[carried_ + k]);
      }
    }
    for (size_t k = 0; k < scan_outputs_; ++k) state.push_back(stacked(n_, slices[k], out_axes_[k]));
    return state;
  }

  Node& n_;
  const onnx::GraphProto& body_;
  bool batched_;  // before opset 9: a leading axis of independent sequences, after the optional lengths
  size_t scanned_, carried_, scan_outputs_;
  Ints in_axes_, in_reversed_, out_axes_, out_reversed_;
  std::vector<Value> state_;
  std::vector<Expr> sequences_;
};
Outputs scan_node(Node& n) { return Scan(n).convert(); }

}  // namespace

std::vector<ConverterRow> control_converters() {
  constexpr const char* kScan =
      "body directions num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions";
  return {
      {"If", 1, 1, 1, if_node, "else_branch then_branch"},
      {"Loop", 1, 2, kAny, loop_node, "body", "", 0b11},
      {"Scan", 8, 1, kAny, scan_node, kScan, "", 0b1},
      {"Scan", 9, 1, kAny, scan_node, kScan},
  };
}

}  // namespace relaxc::onnx_import
