// Calls the user's kernels for nodes: those of custom operators, and of others in place of the built-in conversion.
#include "frontend/onnx/graph_importer.h"
#include "ir/sequence.h"
#include "support/lists.h"

namespace relaxc::onnx_import {

namespace {

// Returns the value of an attribute; none for tensors and graphs, which kernels cannot ask for.
AttrValue value_of_attribute(const onnx::AttributeProto& a) {
  switch (a.type()) {
    case onnx::AttributeProto::FLOAT:
      return static_cast<double>(a.f());
    case onnx::AttributeProto::INT:
      return a.i();
    case onnx::AttributeProto::STRING:
      return a.s();
    case onnx::AttributeProto::FLOATS:
      return map_each(a.floats(), [](float item) -> AttrValue { return static_cast<double>(item); });
    case onnx::AttributeProto::INTS:
      return map_each(a.ints(), [](int64_t item) -> AttrValue { return item; });
    case onnx::AttributeProto::STRINGS:
      return map_each(a.strings(), [](const std::string& item) -> AttrValue { return item; });
    default:
      return {};
  }
}

// Returns "com.me::FancyGelu"; ONNX's own domain is "ai.onnx".
std::string type_of_node(const onnx::NodeProto& node) {
  std::string domain = domain_of(node.domain());
  return fmt::format("{}::{}", domain.empty() ? "ai.onnx" : domain, node.op_type());
}

// Returns the condition on attributes that does not hold, or "".
std::string failed_condition(const NodeKernel& row, const Attrs& attrs) {
  for (const auto& [name, wanted] : row.attrs) {
    const AttrValue* value = attrs.find(name);
    if (!value) value = row.kernel.defaults.find(name);
    if (!value || !attribute_is(name, *value, wanted, -1))
      return fmt::format("attribute {} is {}, expected {}", name, value ? to_string(*value) : "absent",
                         to_string(wanted));
  }
  return "";
}

}  // namespace

// Returns the node's inputs that are there, as tensors.
std::vector<Expr> GraphImporter::tensors_of(const std::vector<Value>& inputs, const Span& span) {
  std::vector<Expr> result;
  for (const Value& input : inputs) {
    if (input) result.push_back(tensor_of(input, span));
  }
  return result;
}

std::optional<Outputs> GraphImporter::call_kernel(const onnx::NodeProto& node, const std::vector<Value>& inputs,
                                                  const Span& span, std::string& refused) {
  const std::string type = type_of_node(node);
  const auto& claimed = context_.options.claimed;
  std::optional<Outputs> outputs;
  std::string taker;
  for (const NodeKernel& row : context_.options.kernels) {
    bool is_asked =
        row.node.empty() ? row.type == type : row.node == span.origin->node && (row.type.empty() || row.type == type);
    if (!is_asked || node.output_size() == 0 || (outputs && !claimed)) continue;
    KernelRequest request{.tensors = {}, .attrs = {}, .num_outputs = static_cast<size_t>(node.output_size())};
    for (const auto& attribute : node.attribute()) request.attrs.set(attribute.name(), value_of_attribute(attribute));
    const std::string title = fmt::format("kernel '{}'", row.kernel.name);
    std::string why = failed_condition(row, request.attrs);
    // A kernel that does not fit leaves nothing behind.
    Builder trial(builder_.ops());
    trial.set_span(builder_.span());
    IRModule kernels = context_.kernels;
    std::optional<Expr> result;
    if (why.empty()) {
      request.tensors = tensors_of(inputs, span);
      auto made = call_user_kernel(row.kernel, request, kernels, trial);
      if (const std::string* reason = std::get_if<std::string>(&made)) why = *reason;
      if (why.empty()) result = std::get<Expr>(made);
    }
    if (result && !outputs) {
      for (const Binding& binding : bindings_of(trial.finish(tuple({})))) builder_.keep(binding);
      context_.kernels = std::move(kernels);
      outputs = outputs_of(builder_.emit(*result, node.output(0)), request.num_outputs);
      taker = row.kernel.name;
    } else if (result) {
      why = fmt::format("it could, and '{}' comes first", taker);
    }
    if (claimed) claimed({span, type, title, why});
    if (!why.empty()) refused += fmt::format("; {} does not fit: {}", title, why);
  }
  if (claimed && !outputs) claimed({span, type, "", ""});
  return outputs;
}

// Returns the value, or the items of the tuple that it is, as outputs of a node.
Outputs GraphImporter::outputs_of(const Expr& value, size_t count) {
  if (count == 1) return {make_value({.tensor = value, .home = &builder_})};
  Outputs outputs;
  for (size_t i = 0; i < count; ++i) {
    Expr item = builder_.emit(tuple_get(value, static_cast<int64_t>(i)));
    outputs.push_back(make_value({.tensor = item, .home = &builder_}));
  }
  return outputs;
}

}  // namespace relaxc::onnx_import
