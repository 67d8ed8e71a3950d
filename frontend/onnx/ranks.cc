// An operator ties the ranks of its inputs and outputs together: a Conv has x, weight and result of one rank, so that
// the weight tells the rank of a graph input. The rows below are equations, which are solved in both directions until
// nothing new follows.
#include "frontend/onnx/ranks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

#include "support/lists.h"

namespace relaxc::onnx_import {

namespace {

// Operands are sums of the variables n and m and a number, or * for any rank; "..." repeats the last one. `decides`
// gives a variable from an attribute (the length of its list) or from the length of an operand: "n=kernel_shape+2",
// "n=#1/2". A row with `unless` does not hold for a node that has this attribute, with this number if one is named
// ("keepdims=0"), or this input ("#3").
struct RankRow {
  std::string_view ops, inputs, outputs, decides = "", unless = "";
};

constexpr RankRow kRows[] = {
    {"Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli BitwiseNot Cast Ceil Celu Cos Cosh Elu Erf Exp Floor "
     "Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN LeakyRelu Log LogSoftmax LpNormalization "
     "MeanVarianceNormalization Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus "
     "Softsign Sqrt Swish Tan Tanh ThresholdedRelu GlobalAveragePool GlobalMaxPool GlobalLpPool CastLike PRelu "
     "QuantizeLinear DequantizeLinear RandomNormalLike RandomUniformLike BitCast ScatterND TensorScatter ImageScaler",
     "n", "n"},
    {"Clip", "n 0 0", "n"},
    {"Trilu CumSum CumProd", "n 0", "n"},
    {"SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss", "n n-1 1", "* n"},
    {"TopK", "n 1", "n n"},
    {"Dropout", "n 0 0", "n n"},
    {"LayerNormalization", "n", "n n n"},
    {"RMSNormalization", "n", "n"},
    {"BatchNormalization", "n 1 1 1 1", "n 1 1 1 1"},
    {"InstanceNormalization GroupNormalization", "n 1 1", "n"},
    {"Conv ConvTranspose", "n n 1", "n"},
    {"ConvInteger", "n n", "n"},
    {"QLinearConv", "n * * n * * * * 1", "n"},
    {"DeformConv", "n n n 1 n", "n"},
    {"Conv ConvTranspose ConvInteger DeformConv MaxPool AveragePool LpPool MaxUnpool", "n", "n", "n=kernel_shape+2"},
    {"MaxUnpool", "n n 1", "n"},
    {"MaxPool", "n", "n n"},
    {"MaxRoiPool", "4 2", "4"},
    {"RoiAlign", "4 2 1", "4"},
    {"DepthToSpace SpaceToDepth Crop", "4", "4"},
    {"GridSample", "n n", "n"},
    {"AffineGrid", "3 1", "*"},
    {"Col2Im", "3 1 1", "*"},
    {"ImageDecoder", "1", "3"},
    {"Upsample", "n 1", "n", "n=#1"},
    {"Upsample", "n", "n", "n=scales"},
    {"Resize", "n 1 1 1", "n"},
    {"Resize", "n", "n", "n=#2,n=#3", "axes"},
    {"CenterCropPad", "n 1", "n"},
    {"CenterCropPad", "n", "n", "n=#1", "axes"},
    {"Gemm", "2 2", "2"},
    {"LSTM", "3 3 3 2 1 3 3 2", "4 3 3"},
    {"GRU RNN", "3 3 3 2 1 3", "4 3"},
    {"Transpose", "n", "n", "n=perm"},
    {"Concat", "n...", "n"},
    {"Pad", "n 1 * 1", "n"},
    {"Pad", "n", "n", "n=#1/2,n=pads/2", "#3"},
    {"Tile", "n 1", "n", "n=#1"},
    {"Flatten", "*", "2"},
    {"Reshape", "* 1", "m", "m=#1,m=shape"},
    {"Expand", "* 1", "*"},
    {"ConstantOfShape", "1", "m", "m=#0"},
    {"Slice", "n 1 1 1 1", "n"},
    {"Split", "n 1", "n..."},
    {"Squeeze", "n 1", "n-m", "m=#1,m=axes"},
    {"Unsqueeze", "n 1", "n+m", "m=#1,m=axes"},
    {"Gather", "n m", "n+m-1"},
    {"GatherElements", "n n", "n"},
    {"ScatterElements Scatter", "n n n", "n"},
    {"OneHot", "n * 1", "n+1"},
    {"ReverseSequence", "n 1", "n"},
    {"Compress", "* 1", "*"},
    {"NonZero", "*", "2"},
    {"NonMaxSuppression", "3 3", "2"},
    {"Shape", "*", "1"},
    {"Size", "*", "0"},
    {"Range", "0 0 0", "1"},
    {"EyeLike", "2", "2"},
    {"Det", "n", "n-2"},
    // The rank of a sequence is that of its items. What is inserted into one may have another rank than the others.
    {"SequenceAt SequenceErase", "n", "n"},
    {"SplitToSequence", "n", "n", "", "keepdims=0"},
    {"ConcatFromSequence", "n", "n", "", "new_axis=1"},
    {"Optional OptionalGetElement", "n", "n"},
    {"ArgMax ArgMin ReduceSum ReduceMean ReduceProd ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
     "ReduceLogSumExp",
     "n", "n", "", "keepdims=0"},
};
// The rank of the result is the largest one of the operands.
constexpr std::string_view kBroadcasting =
    "Add Sub Mul Div Pow Mod And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mean Sum Where BitShift "
    "BitwiseAnd BitwiseOr BitwiseXor";

constexpr int64_t kMostRank = 32;

// The equations of an operator.
struct Rules {
  std::vector<const RankRow*> rows = {};
  bool broadcasts = false;
};
const Rules* rules_of(std::string_view op_type) {
  static const std::unordered_map<std::string_view, Rules> kRules = [] {
    std::unordered_map<std::string_view, Rules> rules;
    for (const RankRow& row : kRows)
      for (std::string_view op : parts_of(row.ops, ' ')) rules[op].rows.push_back(&row);
    for (std::string_view op : parts_of(kBroadcasting, ' ')) rules[op].broadcasts = true;
    return rules;
  }();
  return find_value(kRules, op_type);
}

// A sum of multiples of n and m and a number.
struct Sum {
  std::array<int64_t, 2> times = {0, 0};  // of n and m
  int64_t constant = 0;

  explicit Sum(std::string_view text) {
    int64_t sign = 1;
    for (char c : text) {
      if (c == '+' || c == '-') sign = c == '+' ? 1 : -1;
      if (c == 'n' || c == 'm') times[c - 'n' == 0 ? 0 : 1] += sign;
      if (std::isdigit(static_cast<unsigned char>(c))) constant += sign * (c - '0');
    }
  }
};
using Unknowns = std::array<std::optional<int64_t>, 2>;

class Analysis {
 public:
  Analysis(const onnx::GraphProto& graph, const std::map<std::string, int64_t>& given) {
    for (const auto& [name, rank] : given) ranks_.emplace(name, rank);
    add(graph, true);
  }
  Ranks solve() {
    constexpr int kMostSweeps = 100;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      changed_ = false;
      for (const onnx::NodeProto* node : nodes_) apply(*node);
      for (const Tie& tie : ties_) apply(tie);
      for (size_t i = nodes_.size(); i-- > 0;) apply(*nodes_[i]);
      if (!changed_) break;
    }
    return std::move(ranks_);
  }

 private:
  void add(const onnx::ValueInfoProto& info, bool is_input) {
    const onnx::TypeProto* type = &info.type();
    const bool is_item = !type->has_tensor_type();
    if (type->has_optional_type()) type = &type->optional_type().elem_type();
    if (type->has_sequence_type()) type = &type->sequence_type().elem_type();
    if (!type->has_tensor_type() || !type->tensor_type().has_shape()) return;
    const auto& shape = type->tensor_type().shape();
    is_input = is_input && !is_item;
    // Exporters write a shape without dims for any; that of a graph's input is a scalar's.
    if (shape.dim_size() > 0 || is_input) ranks_.emplace(info.name(), shape.dim_size());
    if (shape.dim_size() == 1 && shape.dim(0).dim_value() > 0) lengths_.emplace(info.name(), shape.dim(0).dim_value());
  }
  void add(const std::string& name, const onnx::TensorProto& tensor) {
    ranks_.emplace(name, tensor.dims_size());
    if (tensor.dims_size() == 1) lengths_.emplace(name, tensor.dims(0));
  }
  void add(const onnx::GraphProto& graph, bool is_main) {  // NOLINT: protobuf bounds the depth
    for (const auto& tensor : graph.initializer()) add(tensor.name(), tensor);
    for (const auto& input : graph.input()) add(input, is_main);
    for (const auto& info : graph.value_info()) add(info, false);
    for (const auto& output : graph.output()) add(output, false);
    for (const auto& node : graph.node()) {
      nodes_.push_back(&node);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) {
          add(attribute.g(), false);
          tie_graph(node, attribute.g());
        }
        if (node.op_type() != "Constant" || node.output_size() == 0) continue;
        if (attribute.has_t()) add(node.output(0), attribute.t());
        if (attribute.name() == "value_ints") {
          ranks_.emplace(node.output(0), 1);
          lengths_.emplace(node.output(0), attribute.ints_size());
        }
      }
    }
  }

  // Ties the values of a node to those of its graph, which iterations pass on or run on slices of.
  void tie_graph(const onnx::NodeProto& node, const onnx::GraphProto& graph) {
    auto tie = [&](const auto& values, int i, const auto& infos, int k, int64_t more) {
      if (i < values.size() && k < infos.size() && !values[i].empty())
        ties_.push_back({values[i], infos[k].name(), more});
    };
    const std::string& type = node.op_type();
    const int inputs = node.input_size(), outputs = node.output_size();
    if (type == "If") {
      for (int k = 0; k < outputs; ++k) tie(node.output(), k, graph.output(), k, 0);
    } else if (type == "SequenceMap") {
      for (int k = 0; k < inputs; ++k) tie(node.input(), k, graph.input(), k, 0);
      for (int k = 0; k < outputs; ++k) tie(node.output(), k, graph.output(), k, 0);
    } else if (type == "Loop") {
      for (int k = 2; k < inputs; ++k) tie(node.input(), k, graph.input(), k, 0);
      for (int k = 0; k < outputs; ++k) tie(node.output(), k, graph.output(), k + 1, k < inputs - 2 ? 0 : 1);
    } else if (const auto* scanned = attribute_of(node, "num_scan_inputs"); type == "Scan" && scanned) {
      const int carried = inputs - static_cast<int>(scanned->i());
      for (int k = 0; k < inputs; ++k) tie(node.input(), k, graph.input(), k, k < carried ? 0 : 1);
      for (int k = 0; k < outputs; ++k) tie(node.output(), k, graph.output(), k, k < carried ? 0 : 1);
    }
  }
  struct Tie {
    std::string outer, inner;
    int64_t more;  // the outer value's rank minus the inner one's
  };
  void apply(const Tie& tie) {
    if (auto outer = rank_of(tie.outer)) set(tie.inner, *outer - tie.more);
    if (auto inner = rank_of(tie.inner)) set(tie.outer, *inner + tie.more);
  }

  std::optional<int64_t> rank_of(const std::string& name) const {
    auto known = ranks_.find(name);
    return known == ranks_.end() ? std::nullopt : std::optional(known->second);
  }
  void set(const std::string& name, int64_t rank) {
    if (name.empty() || rank < 0 || rank > kMostRank) return;
    changed_ = ranks_.emplace(name, rank).second || changed_;
  }
  static const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name) {
    return find_item(node.attribute(), name, &onnx::AttributeProto::name);
  }

  // Returns the value of "kernel_shape+2" or "#1/2".
  std::optional<int64_t> decided(const onnx::NodeProto& node, std::string_view text) const {
    size_t end = std::min(text.find_first_of("+/"), text.size());
    std::string_view source = text.substr(0, end);
    std::optional<int64_t> length;
    if (source[0] == '#') {
      int index = source[1] - '0';
      auto known = index < node.input_size() ? lengths_.find(node.input(index)) : lengths_.end();
      if (known != lengths_.end()) length = known->second;
    } else if (const auto* attribute = attribute_of(node, source)) {
      int count = attribute->ints_size() + attribute->floats_size();
      if (count > 0) length = count;
    }
    if (!length || *length == 0) return std::nullopt;
    if (end == text.size()) return length;
    int64_t number = text[end + 1] - '0';
    return text[end] == '+' ? *length + number : *length / number;
  }
  static bool is_excepted(const onnx::NodeProto& node, std::string_view unless) {
    if (unless.empty()) return false;
    if (unless[0] == '#') {
      int index = unless[1] - '0';
      return index < node.input_size() && !node.input(index).empty();
    }
    size_t equals = unless.find('=');
    const auto* attribute = attribute_of(node, unless.substr(0, equals));
    return attribute && (equals == std::string_view::npos || attribute->i() == unless[equals + 1] - '0');
  }

  using Operands = std::vector<std::pair<std::string, Sum>>;
  template <class Names>
  static void add_operands(const Names& names, std::string_view forms, Operands& to) {
    std::vector<std::string_view> all = parts_of(forms, ' ');
    for (int i = 0; i < names.size(); ++i) {
      bool repeats = all.back().ends_with("...");
      if (static_cast<size_t>(i) >= all.size() && !repeats) break;
      std::string_view form = all[std::min(static_cast<size_t>(i), all.size() - 1)];
      if (form != "*" && !names[i].empty()) to.emplace_back(names[i], Sum(form));
    }
  }
  // Solves the equation for its only unknown, if it has only one.
  static void solve(const Sum& sum, int64_t rank, Unknowns& unknowns) {
    int64_t rest = rank - sum.constant;
    std::optional<size_t> open;
    for (size_t v = 0; v < 2; ++v) {
      if (sum.times[v] == 0) continue;
      if (!unknowns[v] && open) return;
      if (!unknowns[v]) open = v;
      if (unknowns[v]) rest -= sum.times[v] * *unknowns[v];
    }
    if (open) unknowns[*open] = rest * sum.times[*open];
  }
  void apply(const RankRow& row, const onnx::NodeProto& node) {
    if (is_excepted(node, row.unless)) return;
    Unknowns unknowns;
    if (!row.decides.empty()) {
      for (std::string_view part : parts_of(row.decides, ','))
        if (auto value = decided(node, part.substr(2))) unknowns[part[0] == 'n' ? 0 : 1] = value;
    }
    Operands operands;
    add_operands(node.input(), row.inputs, operands);
    add_operands(node.output(), row.outputs, operands);
    for (int round = 0; round < 2; ++round) {  // the second one uses what later operands told
      for (const auto& [name, sum] : operands)
        if (auto rank = rank_of(name)) solve(sum, *rank, unknowns);
    }
    for (const auto& [name, sum] : operands) {
      bool is_open = (sum.times[0] != 0 && !unknowns[0]) || (sum.times[1] != 0 && !unknowns[1]);
      if (!is_open)
        set(name, sum.constant + sum.times[0] * unknowns[0].value_or(0) + sum.times[1] * unknowns[1].value_or(0));
    }
  }
  // The operand of unknown rank has that of the result when all others have less.
  void apply_broadcast(const onnx::NodeProto& node) {
    if (node.output_size() == 0) return;
    std::optional<int64_t> result = rank_of(node.output(0));
    std::string open;
    int64_t most = 0;
    for (const std::string& name : node.input()) {
      auto rank = rank_of(name);
      if (!rank && !open.empty() && name != open) return;
      if (!rank) open = name;
      most = std::max(most, rank.value_or(0));
    }
    if (open.empty()) set(node.output(0), most);
    if (!open.empty() && result && most < *result) set(open, *result);
  }
  void apply(const onnx::NodeProto& node) {
    if (!node.domain().empty() && node.domain() != "ai.onnx") return;
    const Rules* rules = rules_of(node.op_type());
    if (!rules) return;
    for (const RankRow* row : rules->rows) apply(*row, node);
    if (rules->broadcasts) apply_broadcast(node);
  }

  Ranks ranks_;
  std::unordered_map<std::string, int64_t> lengths_;  // of lists
  std::vector<const onnx::NodeProto*> nodes_;
  std::vector<Tie> ties_;
  bool changed_ = false;
};

}  // namespace

Ranks infer_ranks(const onnx::GraphProto& graph, const std::map<std::string, int64_t>& given) {
  return Analysis(graph, given).solve();
}

}  // namespace relaxc::onnx_import
