// Calls the user's kernels for nodes: those of custom operators, and of others in place of the built-in conversion.
#include "frontend/onnx/graph_importer.h"
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

std::optional<Outputs> GraphImporter::call_kernel(const onnx::NodeProto& node, const std::vector<Value>& inputs,
                                                  const Span& span, std::string& refused) {
  const std::string type = type_of_node(node);
  for (const NodeKernel& row : context_.options.kernels) {
    bool is_asked =
        row.node.empty() ? row.type == type : row.node == span.origin->node && (row.type.empty() || row.type == type);
    if (!is_asked || node.output_size() == 0) continue;
    KernelRequest request{.tensors = {}, .attrs = {}, .num_outputs = static_cast<size_t>(node.output_size())};
    for (const auto& attribute : node.attribute()) request.attrs.set(attribute.name(), value_of_attribute(attribute));
    const std::string title = fmt::format("kernel '{}'", row.kernel.name);
    std::string why = failed_condition(row, request.attrs);
    if (why.empty()) {
      for (const Value& input : inputs) {
        if (input) request.tensors.push_back(tensor_of(input, span));
      }
      auto made = call_user_kernel(row.kernel, request, context_.kernels, builder_);
      if (const std::string* reason = std::get_if<std::string>(&made)) why = *reason;
      if (why.empty()) {
        if (context_.options.claimed) context_.options.claimed({span, type, title, ""});
        Expr result = builder_.emit(std::get<Expr>(made), node.output(0));
        Outputs outputs;
        for (size_t i = 0; i < request.num_outputs; ++i) {
          Expr output =
              request.num_outputs == 1 ? result : Expr(builder_.emit(tuple_get(result, static_cast<int64_t>(i))));
          outputs.push_back(make_value({.tensor = output, .home = &builder_}));
        }
        return outputs;
      }
    }
    if (context_.options.claimed) context_.options.claimed({span, type, title, why});
    refused += fmt::format("; {} does not fit: {}", title, why);
  }
  if (context_.options.claimed) context_.options.claimed({span, type, "", ""});
  return std::nullopt;
}

}  // namespace relaxc::onnx_import
