#include "frontend/onnx/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/quantization_plan.h"
#include "frontend/onnx/quantized_weights.h"
#include "frontend/onnx/raise_opset.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc {

namespace onnx_import {

namespace {

// The opset since which an int8 weight may have a scale for each channel, and since which blocks and int4 exist.
constexpr int64_t kChannelOpset = 13, kBlockOpset = 21;

void set_int_attribute(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

Tensor scalar_tensor(double value, DType dtype) {
  Tensor tensor = Tensor::empty({}, dtype);
  tensor.set_double(0, value);
  return tensor;
}

Tensor zeros(const std::vector<int64_t>& shape) {
  Tensor tensor = Tensor::empty(shape, DType::int_(8));
  std::fill_n(tensor.data<int8_t>(), tensor.size(), int8_t{0});
  return tensor;
}

// Writes the quantized graph node by node; each form is a derived class.
class QuantizedWriter {
 public:
  QuantizedWriter(const std::string& model, const QuantizeSettings& settings) : graph_(model), settings_(settings) {}
  virtual ~QuantizedWriter() = default;

  QuantizedModel write() {
    for (const auto& input : graph_.proto().graph().input()) value_is_made(input.name(), input.name());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) write_node(i);
    if (result_.made.empty()) fail_without_nodes();
    onnx::ModelProto model = std::move(graph_).finished();
    raise_opset(model, opset_);
    if (model.ByteSizeLong() >= size_t{1} << 31)
      fail_unsupported({}, "the quantized model has more than 2 GB, which do not fit into one file of ONNX");
    result_.model = model.SerializeAsString();
    return std::move(result_);
  }

 protected:
  virtual void write_node(size_t node) = 0;
  virtual void value_is_made(const std::string& /*name*/, const std::string& /*written*/) {}

  void count(size_t node) { ++result_.made[graph_.nodes()[node].op_type()]; }
  void leave(size_t node, const std::string& why) {
    const onnx::NodeProto& proto = graph_.nodes()[node];
    graph_.add_copy(proto);
    if (is_product(proto)) result_.left.push_back({graph_.name_of(node), proto.op_type(), why, true});
  }
  void need_opset(int64_t opset) { opset_ = std::max(opset_, opset); }

  // The names of a weight in integers, of its scales, and of the float32 that DequantizeLinear makes of both.
  struct WrittenWeight {
    std::string integers, scales, real;
    std::optional<Tensor> scale_values = {};
  };
  const WrittenWeight& write_weight(const std::string& name, const Tensor& weight, const ScaleGroups& groups) {
    WrittenWeight& written = weights_[{name, groups.axis.value_or(-1), groups.block}];
    if (!written.real.empty()) return written;
    const QuantizedWeight quantized = quantize_weight(weight, groups, settings_.weight_bits);
    written = {graph_.add_constant(name + "_quantized", quantized.integers),
               graph_.add_constant(name + "_scale", quantized.scales), graph_.new_name(name + "_dequantized"),
               quantized.scales};
    std::vector<std::string> inputs = {written.integers, written.scales};
    // ONNX Runtime's QGemm refuses weights without zero points.
    if (settings_.weight_bits == 8 && groups.block == 0)
      inputs.push_back(graph_.add_constant(name + "_zero_point", zeros(quantized.scales.shape())));
    onnx::NodeProto& node = graph_.add_node("DequantizeLinear", inputs, written.real);
    if (groups.axis) set_int_attribute(node, "axis", *groups.axis);
    if (groups.block != 0) set_int_attribute(node, "block_size", groups.block);
    need_opset(groups.block != 0 || settings_.weight_bits < 8 ? kBlockOpset : kChannelOpset);
    return written;
  }
  std::optional<int64_t> channels_of(const WeightOperand& weight, const onnx::NodeProto& node) const {
    const bool is_in_groups = node.op_type() == "ConvTranspose" && int_attribute(node, "group", 1) != 1;
    return settings_.has_channels && !is_in_groups ? std::optional(weight.channel_axis) : std::nullopt;
  }

  QuantizationGraph graph_;
  const QuantizeSettings& settings_;
  QuantizedModel result_;

 private:
  [[noreturn]] void fail_without_nodes() const {
    std::vector<std::string> reasons;
    for (const FloatNode& node : result_.left) {
      if (node.is_product) reasons.push_back(fmt::format("'{}' ({}): {}", node.node, node.op_type, node.why));
    }
    if (is_quantized())
      fail({},
           "the model is quantized already: it has no product of floats that can be quantized; give the model of "
           "floats that it was made from");
    if (reasons.empty()) fail({}, "the model has nothing to quantize: expected a Conv, MatMul or Gemm");
    if (reasons.size() > 5) reasons.resize(5), reasons.emplace_back("...");
    fail({}, "the model has nothing that can be quantized: {}", joined(reasons, "; "));
  }

  bool is_quantized() const {
    constexpr std::string_view kOfIntegers[] = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                                                "QLinearConv",    "QLinearMatMul",    "ConvInteger",
                                                "MatMulInteger",  "MatMulNBits"};
    return std::ranges::any_of(graph_.nodes(), [&](const onnx::NodeProto& node) {
      return std::ranges::count(kOfIntegers, node.op_type()) > 0;
    });
  }

  std::map<std::tuple<std::string, int64_t, int64_t>, WrittenWeight> weights_;
  int64_t opset_ = 10;
};

// ---- Static ---------------------------------------------------------------------------------------------------------

class StaticWriter : public QuantizedWriter {
 public:
  StaticWriter(const std::string& model, const QuantizeSettings& settings,
               const std::map<std::string, ValueRange>& ranges)
      : QuantizedWriter(model, settings), ranges_(ranges), plan_(plan_quantization(graph_, settings, &ranges)) {
    result_.left = plan_.left;
  }

 private:
  void write_node(size_t node) override {
    if (plan_.dropped.contains(node)) return;
    onnx::NodeProto copy = graph_.nodes()[node];
    for (std::string& name : *copy.mutable_input()) name = real_of(name);
    if (const auto* weight = find_value(plan_.quantized, node)) {
      count(node);
      if (*weight) write_operands(copy, graph_.nodes()[node], **weight);
    }
    std::vector<std::pair<std::string, std::string>> made;
    for (std::string& output : *copy.mutable_output()) {
      const std::string name = copy_value(plan_.written_as, output).value_or(output);
      const bool is_renamed = plan_.values.contains(name) && graph_.is_output(name);  // the pair gets the name
      output = is_renamed ? graph_.new_name(name + "_float") : name;
      made.emplace_back(name, output);
    }
    graph_.add_copy(copy);
    for (const auto& [name, written] : made) value_is_made(name, written);
  }

  std::string real_of(const std::string& name) const { return copy_value(reals_, name).value_or(name); }

  // Adds the pair behind a value that is to be quantized.
  void value_is_made(const std::string& name, const std::string& written) override {
    const std::string* scale_of = find_value(plan_.values, name);
    if (!scale_of) return;
    const auto [scale, zero] = parameters_of(*scale_of);
    const std::string integers = graph_.new_name(name + "_quantized");
    const bool is_result = graph_.is_output(name) && written != name;
    reals_[name] = is_result ? name : graph_.new_name(name + "_dequantized");
    graph_.add_node("QuantizeLinear", {written, scale, zero}, integers);
    graph_.add_node("DequantizeLinear", {integers, scale, zero}, reals_[name]);
  }

  struct Parameters {
    std::string scale, zero;
  };
  const Parameters& parameters_of(const std::string& name) {
    Parameters& parameters = parameters_[name];
    if (!parameters.scale.empty()) return parameters;
    const double least = settings_.activations.is_uint() ? 0 : -128;
    const double scale = scale_of(name);
    parameters.scale = graph_.add_constant(name + "_scale", scalar_tensor(scale, kFloat32));
    const double zero =
        std::clamp(std::nearbyint(least - std::min(ranges_.at(name).low, 0.0) / scale), least, least + 255);
    parameters.zero = graph_.add_constant(name + "_zero_point", scalar_tensor(zero, settings_.activations));
    return parameters;
  }
  // Zero is one of the numbers, so that padding and Relu are exact.
  double scale_of(const std::string& name) const {
    const ValueRange& range = ranges_.at(name);
    const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
    return static_cast<float>(std::max((high - low) / 255, 1e-10));
  }

  void write_operands(onnx::NodeProto& copy, const onnx::NodeProto& node, const WeightOperand& operand) {
    const WrittenWeight& weight =
        write_weight(node.input(1), *operand.tensor, {.axis = channels_of(operand, node), .block = 0});
    copy.set_input(1, weight.real);
    const Tensor* bias = node.input_size() > 2 ? graph_.constant(node.input(2)) : nullptr;
    if (!bias || bias->dtype() != kFloat32 || bias->ndim() != 1) return;
    const double of_activation = scale_of(plan_.values.at(node.input(0)));
    Tensor scales = Tensor::empty(weight.scale_values->shape(), kFloat32);
    for (int64_t i = 0; i < scales.size(); ++i) scales.set_double(i, of_activation * weight.scale_values->as_double(i));
    if (scales.ndim() > 0 && scales.size() != bias->size()) return;
    const std::optional<Tensor> integers = quantize_bias(*bias, scales);
    if (!integers) return;  // it stays in float32
    const std::string real = graph_.new_name(node.input(2) + "_dequantized");
    onnx::NodeProto& added = graph_.add_node("DequantizeLinear",
                                             {graph_.add_constant(node.input(2) + "_quantized", *integers),
                                              graph_.add_constant(node.input(2) + "_quantized_scale", scales)},
                                             real);
    if (scales.ndim() > 0) set_int_attribute(added, "axis", 0);
    copy.set_input(2, real);
  }

  const std::map<std::string, ValueRange>& ranges_;
  QuantizationPlan plan_;
  std::map<std::string, std::string> reals_;  // the names of values behind their pairs
  std::map<std::string, Parameters> parameters_;
};

// ---- Dynamic --------------------------------------------------------------------------------------------------------

class DynamicWriter : public QuantizedWriter {
 public:
  using QuantizedWriter::QuantizedWriter;

 private:
  void write_node(size_t node) override {
    const onnx::NodeProto& proto = graph_.nodes()[node];
    const std::string why = why_not(node);
    if (!why.empty()) return leave(node, why);
    count(node);
    const WeightOperand weight = *weight_of(graph_, proto).weight;
    const bool has_bias = proto.input_size() > 2 && !proto.input(2).empty();
    const std::string product = has_bias ? graph_.new_name(proto.output(0) + "_product") : proto.output(0);
    write_product(proto.input(0), constant_weight(proto, weight), product);
    if (has_bias) graph_.add_node("Add", {product, proto.input(2)}, proto.output(0));
  }

  std::string why_not(size_t node) const {
    if (is_skipped(graph_, node, settings_)) return "skipped";
    const onnx::NodeProto& proto = graph_.nodes()[node];
    if (!is_product(proto)) return "no product";
    if (proto.op_type() != "MatMul" && proto.op_type() != "Gemm")
      return "convolutions are not quantized by ranges of each run: leave out --dynamic, and give --calibrate or "
             "--random";
    const WeightOrReason found = weight_of(graph_, proto);
    if (!found.weight) return found.why;
    if (found.weight->tensor->ndim() != 2) return "its weight is a batch of matrices";
    const bool is_plain = int_attribute(proto, "transA", 0) == 0 && float_attribute(proto, "alpha", 1) == 1 &&
                          float_attribute(proto, "beta", 1) == 1;
    return is_plain ? "" : "it transposes or scales its operands";
  }

  struct Operand {
    std::string integers, scales;
  };
  // Returns the names of the weight as [summed, channels].
  Operand constant_weight(const onnx::NodeProto& node, const WeightOperand& weight) {
    Operand& written = weights_[{node.input(1), weight.channel_axis}];
    if (!written.integers.empty()) return written;
    const std::optional<int64_t> axis = settings_.has_channels ? std::optional(weight.channel_axis) : std::nullopt;
    QuantizedWeight quantized = quantize_weight(*weight.tensor, {.axis = axis, .block = 0}, 8);
    if (weight.channel_axis == 0) quantized.integers = transposed(quantized.integers);
    written = {graph_.add_constant(node.input(1) + "_quantized", quantized.integers),
               graph_.add_constant(node.input(1) + "_scale", quantized.scales)};
    return written;
  }
  static Tensor transposed(const Tensor& matrix) {
    const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
    Tensor result = Tensor::empty({columns, rows}, matrix.dtype());
    const auto* from = matrix.data<int8_t>();
    auto* to = result.data<int8_t>();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < columns; ++k) to[k * rows + i] = from[i * columns + k];
    }
    return result;
  }

  struct Activation {
    std::string integers, scale, zero;
  };
  const Activation& activation(const std::string& name) {
    Activation& written = activations_[name];
    if (!written.integers.empty()) return written;
    written = {graph_.new_name(name + "_quantized"), graph_.new_name(name + "_scale"),
               graph_.new_name(name + "_zero_point")};
    onnx::NodeProto& node = graph_.add_node("DynamicQuantizeLinear", {name}, written.integers);
    node.add_output(written.scale);
    node.add_output(written.zero);
    need_opset(11);
    return written;
  }

  void write_product(const std::string& x, const Operand& weight, const std::string& output) {
    const Activation& written = activation(x);
    const std::string sums = graph_.new_name(output + "_sums"), real = graph_.new_name(output + "_real"),
                      scales = graph_.new_name(output + "_scale");
    graph_.add_node("MatMulInteger", {written.integers, weight.integers, written.zero}, sums);
    set_int_attribute(graph_.add_node("Cast", {sums}, real), "to", onnx::TensorProto::FLOAT);
    graph_.add_node("Mul", {written.scale, weight.scales}, scales);
    graph_.add_node("Mul", {real, scales}, output);
  }

  std::map<std::pair<std::string, int64_t>, Operand> weights_;
  std::map<std::string, Activation> activations_;
};

// ---- Weights --------------------------------------------------------------------------------------------------------

class WeightsWriter : public QuantizedWriter {
 public:
  using QuantizedWriter::QuantizedWriter;

 private:
  void write_node(size_t node) override {
    const onnx::NodeProto& proto = graph_.nodes()[node];
    if (is_skipped(graph_, node, settings_)) return leave(node, "skipped");
    if (const auto table = embedding_of(graph_, proto)) return write_with(node, 0, *table);
    if (!is_product(proto)) return leave(node, "no product");
    const WeightOrReason found = weight_of(graph_, proto);
    if (!found.weight) return leave(node, found.why);
    write_with(node, 1, *found.weight);
  }
  // Writes the node with the weight, its operand at this place, in integers.
  void write_with(size_t node, int place, const WeightOperand& weight) {
    count(node);
    onnx::NodeProto copy = graph_.nodes()[node];
    copy.set_input(place, write_weight(copy.input(place), *weight.tensor, groups_of(copy, weight)).real);
    graph_.add_copy(copy);
  }

  // Filters have few elements along a dim, so that blocks are for matrices, and for filters of one element.
  ScaleGroups groups_of(const onnx::NodeProto& node, const WeightOperand& weight) const {
    const auto& shape = weight.tensor->shape();
    const bool is_matrix = weight.tensor->size() == shape[static_cast<size_t>(weight.channel_axis)] *
                                                        shape[static_cast<size_t>(weight.summed_axis)];
    const bool has_blocks = is_matrix || node.op_type() == "MatMul";
    if (settings_.block == 0 || !has_blocks) return {.axis = channels_of(weight, node), .block = 0};
    return {.axis = weight.summed_axis, .block = settings_.block};
  }
};

void check_skipped(const std::string& model, const QuantizeSettings& settings) {
  const QuantizationGraph graph(model);
  for (const std::string& wanted : settings.skipped) {
    QuantizeSettings one;
    one.skipped = {wanted};
    bool is_known = false;
    for (size_t i = 0; i < graph.nodes().size() && !is_known; ++i) is_known = is_skipped(graph, i, one);
    if (!is_known) fail({}, "--skip '{}': no node and no operator of the model has that name", printable(wanted));
  }
}

}  // namespace

}  // namespace onnx_import

std::vector<std::string> values_to_measure(const std::string& model, const QuantizeSettings& settings) {
  onnx_import::check_skipped(model, settings);
  const onnx_import::QuantizationGraph graph(model);
  std::set<std::string> names;
  for (const auto& [value, scale_of] : onnx_import::plan_quantization(graph, settings, nullptr).values)
    names.insert(scale_of);
  return {names.begin(), names.end()};
}

std::vector<std::string> values_of_products(const std::string& model) {
  onnx::ModelProto proto;
  if (!proto.ParseFromString(model)) fail({}, "not an ONNX model");
  constexpr std::string_view kProducts[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  std::vector<std::string> names;
  for (const auto& node : proto.graph().node()) {
    if (std::ranges::count(kProducts, node.op_type()) > 0) names.push_back(node.output(0));
  }
  return names;
}

std::string with_outputs(const std::string& model, const std::vector<std::string>& values) {
  onnx::ModelProto proto;
  if (!proto.ParseFromString(model)) fail({}, "not an ONNX model");
  std::set<std::string> there;
  for (const auto& input : proto.graph().input()) there.insert(input.name());
  for (const auto& output : proto.graph().output()) there.insert(output.name());
  for (const std::string& name : values) {
    if (there.insert(name).second) proto.mutable_graph()->add_output()->set_name(name);
  }
  return proto.SerializeAsString();
}

QuantizedModel quantize_model(const std::string& model, const QuantizeSettings& settings,
                              const std::map<std::string, ValueRange>& ranges) {
  onnx_import::check_skipped(model, settings);
  switch (settings.kind) {
    case Quantization::kStatic:
      return onnx_import::StaticWriter(model, settings, ranges).write();
    case Quantization::kDynamic:
      return onnx_import::DynamicWriter(model, settings).write();
    case Quantization::kWeights:
      return onnx_import::WeightsWriter(model, settings).write();
  }
  fail({}, "unknown kind of quantization");
}

}  // namespace relaxc
