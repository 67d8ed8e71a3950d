// All converters, and the one that applies to a node.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "frontend/onnx/import.h"
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

std::vector<ConverterRow> all_rows() {
  std::vector<ConverterRow> rows;
  for (auto* group : {math_converters, tensor_converters, index_converters, shape_converters, convolution_converters,
                      nn_converters, reduction_converters, loss_converters, quantize_converters, sequence_converters,
                      control_converters, recurrent_converters}) {
    for (const ConverterRow& row : group()) rows.push_back(row);
  }
  return rows;
}

}  // namespace

const ConverterRow* find_converter(const std::string& domain, const std::string& op_type, int64_t opset) {
  static const auto kTable = [] {
    std::unordered_map<std::string, std::vector<ConverterRow>> table;
    for (const ConverterRow& row : all_rows()) table[std::string(row.domain) + "." + row.op_type].push_back(row);
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

bool is_known_attribute(const std::string& name) {
  // Sorted. Every name that some converter reads.
  static constexpr std::string_view kNames[] = {"activation_alpha",
                                                "activation_beta",
                                                "activations",
                                                "align_corners",
                                                "allowzero",
                                                "alpha",
                                                "antialias",
                                                "approximate",
                                                "auto_pad",
                                                "axes",
                                                "axis",
                                                "batch_axis",
                                                "batch_dims",
                                                "beta",
                                                "bias",
                                                "block_size",
                                                "blocksize",
                                                "body",
                                                "border",
                                                "broadcast",
                                                "ceil_mode",
                                                "clip",
                                                "consumed_inputs",
                                                "coordinate_transformation_mode",
                                                "count_include_pad",
                                                "cubic_coeff_a",
                                                "detect_negative",
                                                "detect_positive",
                                                "dilations",
                                                "direction",
                                                "directions",
                                                "dtype",
                                                "else_branch",
                                                "end",
                                                "ends",
                                                "epsilon",
                                                "equation",
                                                "exclude_outside",
                                                "exclusive",
                                                "extrapolation_value",
                                                "fmod",
                                                "gamma",
                                                "group",
                                                "height_scale",
                                                "hidden_size",
                                                "ignore_index",
                                                "input_forget",
                                                "is_test",
                                                "k",
                                                "keep_aspect_ratio_policy",
                                                "keepdims",
                                                "kernel_shape",
                                                "lambd",
                                                "largest",
                                                "layout",
                                                "linear_before_reset",
                                                "max",
                                                "min",
                                                "mode",
                                                "momentum",
                                                "nearest_mode",
                                                "new_axis",
                                                "noop_with_empty_axes",
                                                "num_groups",
                                                "num_outputs",
                                                "num_scan_inputs",
                                                "output_datatype",
                                                "output_dtype",
                                                "output_padding",
                                                "output_shape",
                                                "p",
                                                "padding_mode",
                                                "pads",
                                                "periodic",
                                                "perm",
                                                "precision",
                                                "ratio",
                                                "reduction",
                                                "reverse",
                                                "round_mode",
                                                "saturate",
                                                "scale",
                                                "scales",
                                                "scan_input_axes",
                                                "scan_input_directions",
                                                "scan_output_axes",
                                                "scan_output_directions",
                                                "seed",
                                                "select_last_index",
                                                "shape",
                                                "size",
                                                "sorted",
                                                "spatial",
                                                "split",
                                                "start",
                                                "starts",
                                                "stash_type",
                                                "storage_order",
                                                "strides",
                                                "then_branch",
                                                "time_axis",
                                                "to",
                                                "training_mode",
                                                "transA",
                                                "transB",
                                                "type",
                                                "upper",
                                                "value",
                                                "value_float",
                                                "value_floats",
                                                "value_int",
                                                "value_ints",
                                                "width_scale"};
  return std::binary_search(std::begin(kNames), std::end(kNames), name);
}

}  // namespace relaxc::onnx_import

namespace relaxc {

std::vector<OnnxOperator> onnx_operators() {
  std::map<std::pair<std::string, std::string>, onnx_import::ConverterRow> latest;
  for (const onnx_import::ConverterRow& row : onnx_import::all_rows()) {
    auto [entry, is_new] = latest.try_emplace({row.domain, row.op_type}, row);
    if (!is_new && row.since > entry->second.since) entry->second = row;
  }
  std::vector<OnnxOperator> result;
  for (const auto& [name, row] : latest) result.push_back({name.first, name.second, row.least_inputs, row.most_inputs});
  return result;
}

}  // namespace relaxc
