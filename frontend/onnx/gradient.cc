// Gradient of ai.onnx.preview.training. The node names a part of the graph around it: the nodes that lead from the
// tensors `xs` and `zs` to the tensor `y`. They are imported once more, with the node's inputs in the place of xs and
// zs, and what they become is differentiated (ops/gradient.h). Equal values, which is what both are nearly always, are
// merged later. Everything else that the part reads is constant. Where y has many elements, the gradient is that of
// their sum.
#include <set>

#include "frontend/onnx/graph_importer.h"
#include "ops/gradient.h"
#include "support/temporarily.h"

namespace relaxc::onnx_import {

namespace {

bool reads_any(const onnx::NodeProto& node, const std::set<std::string>& names) {
  const std::vector<std::string> read = names_read(node);
  return std::ranges::any_of(read, [&](const std::string& name) { return names.contains(name); });
}

// Returns those of the nodes, which are in the order of use, that lead from values of the names to the result.
std::vector<const onnx::NodeProto*> nodes_between(const std::vector<const onnx::NodeProto*>& nodes,
                                                  const GraphImporter::Scope& given, const std::string& result) {
  std::set<std::string> wanted = {result};
  std::vector<const onnx::NodeProto*> before;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    std::set<std::string> outputs((*node)->output().begin(), (*node)->output().end());
    for (const auto& [name, value] : given) outputs.erase(name);
    std::erase_if(outputs, [&](const std::string& name) { return !wanted.contains(name); });
    if (outputs.empty()) continue;
    before.push_back(*node);
    for (const std::string& name : names_read(**node)) wanted.insert(name);
    for (const std::string& name : outputs) wanted.erase(name);  // a graph around may have another value of the name
  }
  std::set<std::string> changed;
  for (const auto& [name, value] : given) changed.insert(name);
  std::vector<const onnx::NodeProto*> between;
  for (auto node = before.rbegin(); node != before.rend(); ++node) {
    if (!reads_any(**node, changed)) continue;
    between.push_back(*node);
    changed.insert((*node)->output().begin(), (*node)->output().end());
  }
  return between;
}

}  // namespace

Value GraphImporter::evaluate_again(const std::string& result, const Scope& given) {
  Temporarily nested(context_.nested, entered(context_, builder_.span(), ""));
  std::vector<const onnx::NodeProto*> nodes;
  for (const GraphImporter* graph = this; graph; graph = graph->parent_)
    nodes.insert(nodes.begin(), graph->imported_.begin(), graph->imported_.end());
  Nodes part;
  for (const onnx::NodeProto* node : nodes_between(nodes, given, result)) *part.Add() = *node;
  GraphImporter again(*this, builder_);
  for (const auto& [name, value] : given) again.define(name, value);
  for (onnx::NodeProto& node : part) {
    for (std::string& output : *node.mutable_output()) {
      if (given.contains(output)) output.clear();  // the node gives other values, too
    }
  }
  again.add_nodes(part, {result});
  return again.find(result);
}

namespace {

Outputs gradient(Node& n) {
  const std::vector<std::string> xs = n.attr_strings("xs"), zs = n.attr_strings("zs");
  const std::string y = n.attr_string("y", "");
  if (n.inputs() != xs.size() + zs.size())
    n.fail("{} inputs, expected one for each of the {} tensors in xs and the {} in zs", n.inputs(), xs.size(),
           zs.size());
  if (n.outputs() > xs.size())
    n.fail("{} outputs, expected one for each of the {} tensors in xs", n.outputs(), xs.size());
  const Value target = n.graph().find(y);
  if (!target) n.fail("y is '{}', which is no value of the graph", printable(y));
  if (target->poisoned) throw CompileError({});  // reported where it failed
  GraphImporter::Scope given;
  std::vector<VarRef> variables;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < n.inputs(); ++i) {
    const std::string& name = i < xs.size() ? xs[i] : zs[i - xs.size()];
    if (!n.graph().find(name)) n.fail("xs and zs name '{}', which is no value of the graph", printable(name));
    Value value = n.value(i);
    if (n.has_output(i)) {
      const Expr x = n.tensor(i);
      variables.push_back(n.builder().match_cast(x, x.type(), name));
      wanted.push_back(i);
      value = n.of(variables.back());
    }
    if (!given.emplace(name, value).second) n.fail("xs and zs have '{}' twice", printable(name));
  }
  const size_t first = n.builder().size();
  const Value result = n.graph().evaluate_again(y, given);
  if (result->poisoned) throw CompileError({});
  const std::vector<Expr> gradients = differentiate(n.builder().since(first), n.tensor(result), variables, n.builder());
  Outputs outputs(n.outputs());
  for (size_t k = 0; k < wanted.size(); ++k) outputs[wanted[k]] = n.of(gradients[k]);
  return outputs;
}

}  // namespace

std::vector<ConverterRow> gradient_converters() {
  return in_domain("ai.onnx.preview.training", {{"Gradient", 1, 1, kAny, gradient, "xs y zs"}});
}

}  // namespace relaxc::onnx_import
