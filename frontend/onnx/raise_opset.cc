#include "frontend/onnx/raise_opset.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/model_file.h"
#include "support/diagnostic.h"
#include "support/lists.h"

namespace relaxc::onnx_import {

namespace {

// Operators whose nodes had another form before that opset, and are not rewritten.
struct FormSince {
  const char* op_type;
  int64_t opset;
};
constexpr FormSince kForms[] = {
    {"Add", 7},      {"And", 7},     {"BatchNormalization", 9},
    {"Cast", 6},     {"Clip", 11},   {"Concat", 4},
    {"Div", 7},      {"Dropout", 7}, {"Equal", 7},
    {"Gemm", 7},     {"GRU", 7},     {"Greater", 7},
    {"LSTM", 7},     {"Less", 7},    {"Max", 8},
    {"Mean", 8},     {"Min", 8},     {"Mul", 7},
    {"Or", 7},       {"PRelu", 9},   {"Pad", 11},
    {"Pow", 7},      {"RNN", 7},     {"Reshape", 5},
    {"Resize", 11},  {"Scan", 9},    {"Slice", 10},
    {"Split", 2},    {"Sub", 7},     {"Sum", 8},
    {"Tile", 6},     {"TopK", 11},   {"Upsample", 10},
    {"Scatter", 11}, {"Xor", 7},
};

// The opsets since which a model needs that IR version.
constexpr std::pair<int64_t, int64_t> kIrVersions[] = {{21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}};

class OpsetRaiser {
 public:
  OpsetRaiser(onnx::ModelProto& model, int64_t from, int64_t to) : model_(model), from_(from), to_(to) {}
  void raise() { raise_graph(*model_.mutable_graph()); }

 private:
  void raise_graph(onnx::GraphProto& graph);  // NOLINT: protobuf bounds the depth
  void raise_node(onnx::NodeProto& node, int64_t place, const onnx::GraphProto& graph);

  // Returns whether the meaning of nodes changed with this opset, and theirs is older.
  bool crosses(int64_t opset) const { return from_ < opset && opset <= to_; }
  [[noreturn]] static void refuse(const onnx::NodeProto& node, int64_t place, const std::string& why) {
    fail_unsupported({}, "node '{}' ({}) cannot be written for a newer opset: {}; export the model for that opset",
                     printable(name_of_node(node, place, "")), node.op_type(), why);
  }
  std::string add_constant(const std::vector<int64_t>& numbers, bool is_scalar = false);

  static std::optional<onnx::AttributeProto> taken(onnx::NodeProto& node, const std::string& name);
  static void set_input(onnx::NodeProto& node, int index, const std::string& name) {
    while (node.input_size() <= index) node.add_input("");
    node.set_input(index, name);
  }
  // Makes a list of integers, or one, the operand at this place.
  void make_operand(onnx::NodeProto& node, const std::string& attribute, int index);
  void raise_softmax(onnx::NodeProto& node, int64_t place, const onnx::GraphProto& graph) const;

  onnx::ModelProto& model_;
  int64_t from_, to_, constants_ = 0;
};

template <class... Names>
bool is_one_of(const onnx::NodeProto& node, const Names&... names) {
  return ((node.op_type() == names) || ...);
}

onnx::AttributeProto& added_attribute(onnx::NodeProto& node, const std::string& name,
                                      onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

std::string OpsetRaiser::add_constant(const std::vector<int64_t>& numbers, bool is_scalar) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(fmt::format("relaxc_opset_{}", constants_++));
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!is_scalar) tensor.add_dims(std::ssize(numbers));
  for (int64_t number : numbers) tensor.add_int64_data(number);
  return tensor.name();
}

std::optional<onnx::AttributeProto> OpsetRaiser::taken(onnx::NodeProto& node, const std::string& name) {
  for (int i = 0; i < node.attribute_size(); ++i) {
    if (node.attribute(i).name() != name) continue;
    onnx::AttributeProto attribute = node.attribute(i);
    node.mutable_attribute()->DeleteSubrange(i, 1);
    return attribute;
  }
  return std::nullopt;
}

void OpsetRaiser::make_operand(onnx::NodeProto& node, const std::string& name, int index) {
  std::optional<onnx::AttributeProto> attribute = taken(node, name);
  if (!attribute) return;
  const bool is_scalar = attribute->type() == onnx::AttributeProto::INT;
  const std::vector<int64_t> numbers = is_scalar
                                           ? std::vector<int64_t>{attribute->i()}
                                           : std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
  set_input(node, index, add_constant(numbers, is_scalar));
}

// Returns the rank that the graph declares for a value.
std::optional<int64_t> declared_rank(const onnx::GraphProto& graph, const std::string& name) {
  for (const auto* values : {&graph.input(), &graph.output(), &graph.value_info()}) {
    for (const auto& value : *values) {
      if (value.name() == name && value.type().tensor_type().has_shape())
        return value.type().tensor_type().shape().dim_size();
    }
  }
  return std::nullopt;
}

// Softmax was over all dims from the axis on, and is over one since opset 13: the same where it is the last one.
void OpsetRaiser::raise_softmax(onnx::NodeProto& node, int64_t place, const onnx::GraphProto& graph) const {
  std::optional<onnx::AttributeProto> attribute = taken(node, "axis");
  const int64_t axis = attribute ? attribute->i() : 1;
  std::optional<int64_t> rank = declared_rank(graph, node.input(0));
  if (!rank) rank = declared_rank(graph, node.output(0));
  if (axis != -1 && axis + 1 != rank)
    refuse(node, place, fmt::format("since opset 13 it is over one dim, and axis {} may not be the last", axis));
  added_attribute(node, "axis", onnx::AttributeProto::INT).set_i(-1);
}

void OpsetRaiser::raise_node(onnx::NodeProto& node, int64_t place, const onnx::GraphProto& graph) {
  if (!domain_of(node.domain()).empty()) return;
  const FormSince* form =
      find_item(kForms, node.op_type(), [](const FormSince& row) { return std::string(row.op_type); });
  if (form && from_ < form->opset) refuse(node, place, fmt::format("it had another form before opset {}", form->opset));
  if (crosses(12) && is_one_of(node, "Dropout")) taken(node, "ratio");  // of training
  if (crosses(13) && is_one_of(node, "Squeeze", "Unsqueeze", "ReduceSum")) make_operand(node, "axes", 1);
  if (crosses(13) && is_one_of(node, "Split")) make_operand(node, "split", 1);
  if (crosses(13) && is_one_of(node, "Softmax", "LogSoftmax", "Hardmax")) raise_softmax(node, place, graph);
  const bool is_reduction = is_one_of(node, "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceL1",
                                      "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare");
  if (crosses(18) && is_reduction) make_operand(node, "axes", 1);
  if (crosses(18) && is_one_of(node, "Split") && node.input_size() < 2)
    added_attribute(node, "num_outputs", onnx::AttributeProto::INT).set_i(node.output_size());
  if (crosses(16) && is_one_of(node, "RoiAlign"))
    added_attribute(node, "coordinate_transformation_mode", onnx::AttributeProto::STRING).set_s("output_half_pixel");
  if (crosses(20) && is_one_of(node, "DFT")) make_operand(node, "axis", 2);
  if (crosses(20) && is_one_of(node, "GridSample")) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.name() == "mode" && attribute.s() == "bilinear") attribute.set_s("linear");
      if (attribute.name() == "mode" && attribute.s() == "bicubic") attribute.set_s("cubic");
    }
  }
  if (crosses(21) && is_one_of(node, "GroupNormalization"))
    refuse(node, place, "since opset 21 its scale and bias have another shape");
}

void OpsetRaiser::raise_graph(onnx::GraphProto& graph) {  // NOLINT: protobuf bounds the depth
  for (int i = 0; i < graph.node_size(); ++i) {
    raise_node(*graph.mutable_node(i), i, graph);
    for (auto& attribute : *graph.mutable_node(i)->mutable_attribute()) {
      if (attribute.has_g()) raise_graph(*attribute.mutable_g());
    }
  }
}

}  // namespace

void raise_opset(onnx::ModelProto& model, int64_t opset) {
  for (auto& import : *model.mutable_opset_import()) {
    if (!domain_of(import.domain()).empty() || import.version() >= opset) continue;
    OpsetRaiser(model, import.version(), opset).raise();
    import.set_version(opset);
    for (const auto& [since, version] : kIrVersions) {
      if (opset >= since) model.set_ir_version(std::max(model.ir_version(), version));
    }
  }
}

}  // namespace relaxc::onnx_import
