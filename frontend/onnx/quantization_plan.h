// Decides which nodes of a model compute in integers, and which values are quantized for them.
#pragma once
#include "frontend/onnx/quantization_graph.h"
#include "frontend/onnx/quantize_model.h"

namespace relaxc::onnx_import {

// The constant weight of a product (Conv, MatMul, Gemm, ConvTranspose), or the table of an embedding.
struct WeightOperand {
  const Tensor* tensor = nullptr;
  int64_t channel_axis = 0;  // the dim of the outputs, or of a table's rows
  int64_t summed_axis = 0;   // a dim along which products are summed, or a row lies, for blocks
};

struct QuantizationPlan {
  // Those that compute in integers, with the weights of products.
  std::map<size_t, std::optional<WeightOperand>> quantized;
  // The values that get a pair of QuantizeLinear and DequantizeLinear, each with the value whose scale it has.
  std::map<std::string, std::string> values;
  // The name under which a node writes: that of the Relu or Clip behind it, whose work the limits of the integers do.
  std::map<std::string, std::string> written_as;
  std::set<size_t> dropped;  // these Relu and Clip
  std::vector<FloatNode> left;
};

// Ranges tell which values cannot be quantized, because they are not finite or far apart. Without ranges (null) all
// can, and the values of the plan are those that need one.
QuantizationPlan plan_quantization(const QuantizationGraph& graph, const QuantizeSettings& settings,
                                   const std::map<std::string, ValueRange>* ranges);

// Returns the weight of a product; else why it cannot be quantized.
struct WeightOrReason {
  std::optional<WeightOperand> weight;
  std::string why = {};
};
WeightOrReason weight_of(const QuantizationGraph& graph, const onnx::NodeProto& node);
bool is_product(const onnx::NodeProto& node);
// Returns the table of a Gather that looks up the rows of an embedding; nullopt for other nodes, small tables, and
// tables whose rows are factors of other values, as the cosines of rotary positions are.
std::optional<WeightOperand> embedding_of(const QuantizationGraph& graph, const onnx::NodeProto& node);
// Returns whether the user names the node or its operator.
bool is_skipped(const QuantizationGraph& graph, size_t node, const QuantizeSettings& settings);

}  // namespace relaxc::onnx_import
