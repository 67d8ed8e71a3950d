// The ranks of a model's values, as far as declarations, weights and operators tell them.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace relaxc::onnx_import {

// Ranks by the name of the value, in the graph and in the graphs of its nodes, where names are unique (ONNX demands
// it). `given` are those of graph inputs that the caller states. What is declared wins over what follows from
// operators.
using Ranks = std::unordered_map<std::string, int64_t>;
Ranks infer_ranks(const onnx::GraphProto& graph, const std::map<std::string, int64_t>& given);

}  // namespace relaxc::onnx_import
