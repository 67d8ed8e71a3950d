// Calls of the functions that a model has: each is inlined.
#include <algorithm>
#include <unordered_set>

#include "frontend/onnx/graph_importer.h"
#include "support/printable.h"
#include "support/temporarily.h"

namespace relaxc::onnx_import {

namespace {

// Replaces attribute references of a function's node by the caller's attributes, or leaves out those that are absent.
void resolve_references(google::protobuf::RepeatedPtrField<onnx::AttributeProto>& attributes,
                        const std::unordered_map<std::string, const onnx::AttributeProto*>& given) {
  for (int i = attributes.size(); i-- > 0;) {
    onnx::AttributeProto& attribute = attributes[i];
    if (!attribute.ref_attr_name().empty()) {
      auto it = given.find(attribute.ref_attr_name());
      if (it == given.end()) {
        attributes.DeleteSubrange(i, 1);
        continue;
      }
      std::string name = attribute.name();
      attribute = *it->second;
      attribute.set_name(name);
    }
    if (attribute.has_g()) {
      for (auto& node : *attribute.mutable_g()->mutable_node()) resolve_references(*node.mutable_attribute(), given);
    }
  }
}

// Leaves out the inputs of nodes, and of those in their subgraphs, that a call of their function leaves out.
void clear_absent(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                  const std::unordered_set<std::string>& absent) {
  if (absent.empty()) return;
  for (onnx::NodeProto& node : nodes) {
    for (std::string& name : *node.mutable_input()) {
      if (absent.contains(name)) name.clear();
    }
    for (auto& attribute : *node.mutable_attribute()) {
      if (!attribute.has_g()) continue;
      std::unordered_set<std::string> outer = absent;  // but for names that the graph gives to its own values
      for (const auto& input : attribute.g().input()) outer.erase(input.name());
      for (const auto& inner : attribute.g().node()) {
        for (const std::string& name : inner.output()) outer.erase(name);
      }
      clear_absent(*attribute.mutable_g()->mutable_node(), outer);
    }
  }
}

// Returns the values of attributes that a call leaves out.
std::vector<onnx::AttributeProto> default_attributes(const onnx::FunctionProto& function) {
  std::vector<onnx::AttributeProto> defaults;
  for (const std::string& bytes : field_values(function, 11)) {
    onnx::AttributeProto attribute;
    if (attribute.ParseFromString(bytes)) defaults.push_back(std::move(attribute));
  }
  return defaults;
}

}  // namespace

// Returns which node of a function requires an input that the call leaves out; "" for none.
std::string GraphImporter::what_lacks(const Nodes& nodes, const std::unordered_set<std::string>& absent) const {
  if (absent.empty()) return "";
  for (const onnx::NodeProto& node : nodes) {
    const std::string domain = domain_of(node.domain());
    const ConverterRow* row = find_converter(domain, node.op_type(), imported_version(domain).value_or(kNewestOpset));
    if (!row || context_.functions.contains(name_of_function(node))) continue;
    for (int i = 0; i < std::min(node.input_size(), row->least_inputs); ++i) {
      if (absent.contains(node.input(i)) && (row->may_be_empty >> i & 1) == 0)
        return fmt::format("{} in the function requires '{}'", node.op_type(), printable(node.input(i)));
    }
  }
  return "";
}

void GraphImporter::call_function(const onnx::NodeProto& node, const std::vector<Value>& inputs, const Span& span) {
  std::string key = name_of_function(node);
  const onnx::FunctionProto& function = *context_.functions.at(key);
  Temporarily nested(context_.nested, entered(context_, span, key));
  if (static_cast<int>(inputs.size()) > function.input_size())
    fail(span, "{} inputs, expected {}", inputs.size(), function.input_size());
  std::unordered_map<std::string, const onnx::AttributeProto*> given;
  const std::vector<onnx::AttributeProto> defaults = default_attributes(function);
  for (const auto& attribute : defaults) given[attribute.name()] = &attribute;
  for (const auto& attribute : node.attribute()) given[attribute.name()] = &attribute;

  std::unordered_map<std::string, int64_t> opsets;
  for (const auto& import : function.opset_import()) opsets[domain_of(import.domain())] = import.version();
  for (const auto& [name, version] : context_.opsets) opsets.emplace(name, version);
  GraphImporter body(context_, builder_);
  body.function_opsets = &opsets;
  body.place = span.origin->node + "/";
  std::unordered_set<std::string> absent;  // optional inputs of the call, which are absent inside too
  for (size_t i = 0; i < static_cast<size_t>(function.input_size()); ++i) {
    const std::string& name = function.input(static_cast<int>(i));
    if (i < inputs.size() && inputs[i]) {
      body.define(name, inputs[i]);
    } else {
      absent.insert(name);
    }
  }
  for (int i = 0; i < std::min(function.output_size(), node.output_size()); ++i) {
    if (const onnx::TypeProto* type = declared_type(node.output(i))) body.declared_.emplace(function.output(i), type);
  }
  const DeclaredValues declared = declared_values(function);
  for (const auto& info : declared) body.declared_.emplace(info.name(), &info.type());
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes = function.node();
  for (onnx::NodeProto& child : nodes) resolve_references(*child.mutable_attribute(), given);
  if (const std::string lacks = body.what_lacks(function.node(), absent); !lacks.empty())
    fail(span, "{} inputs, expected more: {}", inputs.size(), lacks);
  clear_absent(nodes, absent);
  body.add_nodes(nodes, {function.output().begin(), function.output().end()});
  check_values(body, declared);
  Outputs outputs;
  for (const std::string& name : function.output()) {
    Value value = body.find(name);
    if (!value) fail(span, "output '{}' of the function is not defined", printable(name));
    outputs.push_back(value);
  }
  bind_outputs(node, outputs, span);
}

}  // namespace relaxc::onnx_import
