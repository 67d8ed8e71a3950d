// Nodes that a plug-in's converter takes (ops/onnx_converter.h).
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/node.h"
#include "support/joined.h"

namespace relaxc::onnx_import {

AttrValue value_of_attribute(const ModelContext& context, const onnx::AttributeProto& a, const Span& span) {
  using onnx::AttributeProto;
  switch (a.type()) {
    case AttributeProto::INT:
      return a.i();
    case AttributeProto::FLOAT:
      return static_cast<double>(a.f());
    case AttributeProto::STRING:
      return a.s();
    case AttributeProto::TENSOR:
      return AttrValue(constant(ModelFile::tensor(context.file, a.t(), span), span));
    case AttributeProto::INTS:
      return AttrList(a.ints().begin(), a.ints().end());
    case AttributeProto::FLOATS:
      return AttrList(a.floats().begin(), a.floats().end());
    case AttributeProto::STRINGS:
      return AttrList(a.strings().begin(), a.strings().end());
    default:
      return {};
  }
}

Outputs convert_custom(Node& n, const OnnxConverter& converter) {
  std::vector<std::optional<Expr>> inputs;
  for (size_t i = 0; i < n.inputs(); ++i) inputs.push_back(n.has(i) ? std::optional(n.tensor(i)) : std::nullopt);
  Attrs attrs;
  for (const onnx::AttributeProto& attribute : n.proto().attribute()) {
    if (!n.row().has_attribute(attribute.name())) continue;
    AttrValue value = value_of_attribute(n.graph().context(), attribute, n.span());
    if (value == AttrValue())
      n.unsupported("attribute '{}': only numbers, texts, tensors and lists of numbers and texts can be read",
                    printable(attribute.name()));
    attrs.set(attribute.name(), std::move(value));
  }
  OnnxNode node{converter.name, n.opset(), n.outputs(), inputs, attrs, n.builder()};
  return map_each(converter.convert(node), [&](const Expr& result) { return n.of(n.builder().leaf(result)); });
}

const OnnxConverter* find_custom(std::span<const OnnxConverter> converters, const std::string& domain,
                                 const std::string& op_type, int64_t opset) {
  std::string name = domain.empty() ? op_type : domain + "::" + op_type;
  const OnnxConverter* best = nullptr;
  for (const OnnxConverter& row : converters) {
    if (row.name == name && row.since <= opset && (!best || row.since > best->since)) best = &row;
  }
  return best;
}

ConverterRow row_of(const OnnxConverter& converter) {
  return {converter.name,        converter.since, converter.least_inputs,
          converter.most_inputs, converter,       converter.attributes.c_str()};
}

}  // namespace relaxc::onnx_import
