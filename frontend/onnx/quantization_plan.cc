#include "frontend/onnx/quantization_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/lists.h"

namespace relaxc::onnx_import {

namespace {

// A value with a larger element is left in floats: 8 bits would hold nothing but that element. Masks of attention have
// -3e38.
constexpr double kGreatestElement = 1e9;

// A table with fewer elements takes little memory.
constexpr int64_t kLeastEmbedding = 1 << 14;

// An operator between products that can pass integers on.
struct Follower {
  const char* op_type;
  int operands;                     // that are quantized; 0: all
  bool has_scale_of_input = false;  // its results are elements of the first operand
  bool takes_floats = false;        // some of its operands may be quantized for it alone
};
constexpr Follower kFollowers[] = {
    {"Add", 2},
    {"Mul", 2},
    {"Concat", 0, false, true},
    {"Relu", 1},
    {"Clip", 1},
    {"AveragePool", 1},
    {"GlobalAveragePool", 1},
    {"MaxPool", 1, true},
    {"Reshape", 1, true},
    {"Transpose", 1, true},
    {"Flatten", 1, true},
    {"Squeeze", 1, true},
    {"Unsqueeze", 1, true},
    {"Slice", 1, true},
    {"DepthToSpace", 1, true},
    {"SpaceToDepth", 1, true},
};

class Planner {
 public:
  Planner(const QuantizationGraph& graph, const QuantizeSettings& settings,
          const std::map<std::string, ValueRange>* ranges)
      : graph_(graph), settings_(settings), ranges_(ranges), nodes_(graph.nodes()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Follower* row = follower(i);
      if (row && row->has_scale_of_input) moved_from_[nodes_[i].output(0)] = nodes_[i].input(0);
    }
  }

  QuantizationPlan plan() {
    for (size_t i = nodes_.size(); i-- > 0;) find_demand(i);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const std::string why = quantize(i);
      const bool is_of_floats =
          std::ranges::any_of(nodes_[i].output(), [&](const std::string& name) { return graph_.is_float(name); });
      if (!why.empty() && is_of_floats && !absorbed_.contains(i))
        plan_.left.push_back({graph_.name_of(i), nodes_[i].op_type(), why, is_product(nodes_[i])});
    }
    for (const auto& [node, weight] : plan_.quantized) {
      for (const std::string& name : operands(node)) want(name);
    }
    drop_limits();
    return std::move(plan_);
  }

 private:
  const Follower* follower(size_t node) const {
    const onnx::NodeProto& proto = nodes_[node];
    if (!QuantizationGraph::is_standard(proto) || proto.output_size() != 1) return nullptr;
    return find_item(kFollowers, proto.op_type(), [](const Follower& row) { return std::string(row.op_type); });
  }

  // Returns the activations that the node reads in integers, if it computes in them.
  std::vector<std::string> operands(size_t node) const {
    const Follower* row = follower(node);
    const int count = !row ? 2 : row->operands == 0 ? nodes_[node].input_size() : row->operands;
    std::vector<std::string> names;
    for (int k = 0; k < std::min(count, nodes_[node].input_size()); ++k) {
      if (!graph_.constant(nodes_[node].input(k))) names.push_back(nodes_[node].input(k));
    }
    return names;
  }

  // Marks what would be read in integers, if everything before it computed in integers.
  void find_demand(size_t node) {
    const bool is_follower = follower(node) && demanded_.contains(nodes_[node].output(0));
    const bool is_product = why_no_product(node).empty();
    if (is_skipped(graph_, node, settings_) || !(is_follower || is_product)) return;
    for (const std::string& name : operands(node)) {
      demanded_.insert(name);
      if (is_product) supplied_.insert(name);
    }
  }

  std::string why_unusable(const std::string& value) const {
    if (!ranges_) return "";
    const std::string name = source_of(value);
    const ValueRange* range = find_value(*ranges_, name);
    if (!range) return fmt::format("no range of '{}' was measured", name);
    if (!std::isfinite(range->low) || !std::isfinite(range->high))
      return fmt::format("'{}' has elements that are not finite", name);
    if (std::max(-range->low, range->high) <= kGreatestElement) return "";
    return fmt::format("'{}' reaches from {:.3g} to {:.3g}, too far for 8 bits", name, range->low, range->high);
  }

  // Returns "" for a product that can be quantized: with a constant weight, or of two activations.
  std::string why_no_product(size_t node) const {
    const onnx::NodeProto& proto = nodes_[node];
    if (!QuantizationGraph::is_standard(proto) || !is_product(proto)) return "its operator computes in floats";
    if (proto.op_type() == "ConvTranspose") return "transposed convolutions compute in floats";
    const bool has_constant = graph_.constant(proto.input(0)) || graph_.constant(proto.input(1));
    if (proto.op_type() == "MatMul" && !has_constant) return "";
    return weight_of(graph_, proto).why;
  }

  // Returns why not.
  std::string quantize(size_t node) {
    if (is_skipped(graph_, node, settings_)) return "skipped";
    const Follower* row = follower(node);
    const std::string why = row ? why_no_follower(node) : why_no_product(node);
    if (!why.empty()) return why;
    for (const std::string& name : operands(node)) {
      const std::string unusable = why_unusable(name);
      if (!unusable.empty()) return unusable;
    }
    const size_t last = behind_bias(node);
    const std::optional<size_t> limit = limit_of(node);
    const std::string& result = nodes_[limit.value_or(last)].output(0);
    if (row && !why_unusable(result).empty()) return why_unusable(result);
    plan_.quantized[node] = row ? std::nullopt : weight_of(graph_, nodes_[node]).weight;
    if (last != node) absorbed_.insert(last);
    if (limit) absorbed_.insert(*limit);
    supplied_.insert({nodes_[last].output(0), result});
    return "";
  }

  std::string why_no_follower(size_t node) const {
    if (absorbed_.contains(node)) return "part of the node before it";
    if (!demanded_.contains(nodes_[node].output(0))) return "its result is read in floats";
    const std::vector<std::string> names = operands(node);
    const auto count = std::ranges::count_if(names, [&](const std::string& name) { return supplied_.contains(name); });
    const bool is_enough = follower(node)->takes_floats ? count > 0 : count > 0 && count == std::ssize(names);
    return is_enough ? "" : "its operands are floats";
  }

  // Returns the Add of a constant that alone reads the product of a MatMul, else the node itself: the sum is quantized,
  // not the product.
  size_t behind_bias(size_t node) const {
    const std::optional<size_t> reader = graph_.only_reader(nodes_[node].output(0));
    if (nodes_[node].op_type() != "MatMul" || !reader || is_skipped(graph_, *reader, settings_)) return node;
    const onnx::NodeProto& add = nodes_[*reader];
    if (add.op_type() != "Add" || !QuantizationGraph::is_standard(add)) return node;
    return graph_.constant(add.input(0)) || graph_.constant(add.input(1)) ? *reader : node;
  }

  // Returns the Relu or Clip that alone reads the node's result, or the sum behind it, and does nothing that the limits
  // of its own result's range do not do.
  std::optional<size_t> limit_of(size_t quantized) const {
    const Follower* row = follower(quantized);
    if (row && row->has_scale_of_input) return std::nullopt;  // the range is another
    const std::optional<size_t> reader = graph_.only_reader(nodes_[behind_bias(quantized)].output(0));
    if (!reader || is_skipped(graph_, *reader, settings_)) return std::nullopt;
    const onnx::NodeProto& node = nodes_[*reader];
    if (!QuantizationGraph::is_standard(node)) return std::nullopt;
    if (node.op_type() == "Relu") return reader;
    if (node.op_type() != "Clip" || node.input_size() < 2) return std::nullopt;
    const Tensor* low = graph_.constant(node.input(1));
    const Tensor* high = node.input_size() > 2 && !node.input(2).empty() ? graph_.constant(node.input(2)) : nullptr;
    const bool is_around_zero =
        low && low->size() == 1 && low->as_double(0) <= 0 &&
        (node.input_size() < 3 || node.input(2).empty() || (high && high->size() == 1 && high->as_double(0) >= 0));
    return is_around_zero ? reader : std::nullopt;
  }

  void want(const std::string& name) { plan_.values[name] = source_of(name); }

  // Returns the value whose elements this one has, in another order or shape, and whose range it therefore has.
  std::string source_of(std::string name) const {
    for (const std::string* from = find_value(moved_from_, name); from; from = find_value(moved_from_, name)) {
      if (graph_.constant(*from)) break;
      name = *from;
    }
    return name;
  }

  void drop_limits() {
    for (const auto& [node, weight] : plan_.quantized) {
      const std::optional<size_t> limit = limit_of(node);
      if (!limit || !plan_.values.contains(nodes_[*limit].output(0))) continue;
      plan_.written_as[nodes_[behind_bias(node)].output(0)] = nodes_[*limit].output(0);
      plan_.dropped.insert(*limit);
    }
  }

  const QuantizationGraph& graph_;
  const QuantizeSettings& settings_;
  const std::map<std::string, ValueRange>* ranges_;
  const std::vector<onnx::NodeProto>& nodes_;
  std::map<std::string, std::string> moved_from_;  // values that an operator takes from its first operand
  std::set<std::string> demanded_;                 // what would be read in integers, if all before it computed in them
  std::set<std::string> supplied_;                 // what exists in integers
  std::set<size_t> absorbed_;                      // belong to the product before them
  QuantizationPlan plan_;
};

// Returns whether all that reads the value multiplies it by something that is not a constant.
bool is_factor(const QuantizationGraph& graph, const std::string& value) {
  static const std::set<std::string> kMoves = {"Cast",    "Concat", "Reshape",   "Slice",
                                               "Squeeze", "Split",  "Transpose", "Unsqueeze"};
  const std::vector<size_t>& readers = graph.readers(value);
  return !graph.is_output(value) && !readers.empty() && std::ranges::all_of(readers, [&](size_t reader) {
    const onnx::NodeProto& node = graph.nodes()[reader];
    if (node.op_type() == "Mul") return !graph.constant(node.input(0)) && !graph.constant(node.input(1));
    return kMoves.contains(node.op_type()) &&
           std::ranges::all_of(node.output(), [&](const std::string& moved) { return is_factor(graph, moved); });
  });
}

}  // namespace

bool is_product(const onnx::NodeProto& node) {
  static const std::set<std::string> kProducts = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  return QuantizationGraph::is_standard(node) && kProducts.contains(node.op_type()) && node.input_size() >= 2;
}

bool is_skipped(const QuantizationGraph& graph, size_t node, const QuantizeSettings& settings) {
  const auto& skipped = settings.skipped;
  return std::ranges::find(skipped, graph.nodes()[node].op_type()) != skipped.end() ||
         std::ranges::find(skipped, graph.name_of(node)) != skipped.end();
}

WeightOrReason weight_of(const QuantizationGraph& graph, const onnx::NodeProto& node) {
  const Tensor* weight = graph.constant(node.input(1));
  if (!weight) return {{}, "its weight is not a constant"};
  if (graph.constant(node.input(0))) return {{}, "it is a constant"};
  if (weight->dtype() != kFloat32)
    return {{}, fmt::format("its weight is {}, expected float32", to_string(weight->dtype()))};
  const int64_t rank = weight->ndim();
  if (rank < 2 || weight->size() == 0) return {{}, "its weight is not a matrix or filter"};
  WeightOperand result{.tensor = weight, .channel_axis = 0, .summed_axis = 1};
  const bool is_transposed = node.op_type() == "Gemm" && int_attribute(node, "transB", 0) != 0;
  if (node.op_type() == "MatMul" || (node.op_type() == "Gemm" && !is_transposed))
    result.channel_axis = rank - 1, result.summed_axis = rank - 2;
  if (node.op_type() == "ConvTranspose") result.channel_axis = 1, result.summed_axis = 0;
  return {result};
}

std::optional<WeightOperand> embedding_of(const QuantizationGraph& graph, const onnx::NodeProto& node) {
  if (!QuantizationGraph::is_standard(node) || node.op_type() != "Gather" || int_attribute(node, "axis", 0) != 0)
    return std::nullopt;
  const Tensor* table = graph.constant(node.input(0));
  const bool is_table = table && table->dtype() == kFloat32 && table->ndim() == 2 && table->size() >= kLeastEmbedding;
  if (!is_table || graph.constant(node.input(1)) || is_factor(graph, node.output(0))) return std::nullopt;
  return WeightOperand{.tensor = table, .channel_axis = 0, .summed_axis = 1};
}

QuantizationPlan plan_quantization(const QuantizationGraph& graph, const QuantizeSettings& settings,
                                   const std::map<std::string, ValueRange>* ranges) {
  return Planner(graph, settings, ranges).plan();
}

}  // namespace relaxc::onnx_import
