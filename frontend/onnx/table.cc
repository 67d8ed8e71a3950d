// All converters, and the one that applies to a node.
#include <unordered_map>

#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

const ConverterRow* find_converter(const std::string& domain, const std::string& op_type, int64_t opset) {
  static const auto kTable = [] {
    std::unordered_map<std::string, std::vector<ConverterRow>> table;
    for (auto* group :
         {math_converters, tensor_converters, index_converters, shape_converters, nn_converters, reduction_converters,
          loss_converters, quantize_converters, sequence_converters, control_converters, recurrent_converters}) {
      for (const ConverterRow& row : group()) table[std::string(row.domain) + "." + row.op_type].push_back(row);
    }
    return table;
  }();
  auto it = kTable.find(domain + "." + op_type);
  if (it == kTable.end()) return nullptr;
  const ConverterRow* best = nullptr;
  for (const ConverterRow& row : it->second) {
    if (row.since <= opset && (!best || row.since > best->since)) best = &row;
  }
  return best;
}

}  // namespace relaxc::onnx_import
