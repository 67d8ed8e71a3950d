// Quantizes ONNX models after training: the new model holds integers and scales, in ONNX's own operators, so that other
// runtimes run it, too.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "vm/dtype.h"

namespace relaxc {

enum class Quantization : uint8_t {
  kStatic,   // QuantizeLinear and DequantizeLinear around each operator, by ranges that were measured before
  kDynamic,  // products of matrices as DynamicQuantizeLinear and MatMulInteger: each run measures the range
  kWeights,  // DequantizeLinear behind the weights alone
};
struct QuantizeSettings {
  Quantization kind = Quantization::kStatic;
  DType activations = DType::uint(8);     // or int8, of kStatic
  int weight_bits = 8;                    // or 4, of kWeights
  int64_t block = 0;                      // of kWeights: so many elements share a scale; 0: those of a channel do
  bool has_channels = true;               // false: all elements of a weight share a scale
  std::vector<std::string> skipped = {};  // nodes and operators that stay as they are, by name
};

// The least and the greatest element that a value had.
struct ValueRange {
  double low = 0, high = 0;
};
// A node that stays in floats: of kStatic any that gives floats, else a product.
struct FloatNode {
  std::string node, op_type, why;
  bool is_product = false;  // Conv, ConvTranspose, Gemm or MatMul
};
struct QuantizedModel {
  std::string model;                    // the bytes of the message
  std::map<std::string, int64_t> made;  // how many nodes of an operator were quantized
  std::vector<FloatNode> left = {};
};

// Models are given as bytes that hold their external data, as read_model_case() returns them (frontend/onnx/reduce.h).
//
// Returns the values whose ranges kStatic needs.
std::vector<std::string> values_to_measure(const std::string& model, const QuantizeSettings& settings);
// Returns the results of convolutions and products outside of branches.
std::vector<std::string> values_of_products(const std::string& model);
// Returns the model with these values as further outputs, behind its own; those that are inputs or outputs stay so.
std::string with_outputs(const std::string& model, const std::vector<std::string>& values);
// Returns the quantized model; `ranges` are those of values_to_measure(). Throws a CompileError for a model without a
// node that can be quantized, for a name to skip that no node has, and where the opset is too old.
QuantizedModel quantize_model(const std::string& model, const QuantizeSettings& settings,
                              const std::map<std::string, ValueRange>& ranges = {});

}  // namespace relaxc
