// Nodes of the model that the import never reaches, found by walking the whole model: those in a branch that is not
// taken, or in the body of a loop without iterations.
#include "frontend/onnx/graph_importer.h"
#include "support/printable.h"

namespace relaxc::onnx_import {

namespace {

class LeftOutSearch {
 public:
  LeftOutSearch(const ModelContext& context, const std::string& node, const std::string& type)
      : context_(context), node_(node), type_(type) {}

  std::string run(const onnx::GraphProto& graph) {
    look(graph.node(), "", "", "");
    return why_;
  }

 private:
  // Looks at nodes, whose names begin with `place`, those of nodes without a name with `branch` behind it. `why` says
  // why such a node is left out.
  void look(const auto& nodes, const std::string& place, const std::string& branch, const std::string& why) {
    for (int i = 0; i < nodes.size() && why_.empty(); ++i) {
      const onnx::NodeProto& node = nodes[i];
      const std::string name =
          place + printable(node.name().empty() ? fmt::format("{}{}_{}", branch, node.op_type(), i) : node.name());
      if (!why.empty() && (node_.empty() ? type_of_node(node) == type_ : name == node_)) {
        why_ = fmt::format("node '{}' ({}) was left out of the model: {}", name, printable(node.op_type()), why);
        return;
      }
      look_inside(node, name, why);
    }
  }

  void look_inside(const onnx::NodeProto& node, const std::string& name, const std::string& why) {
    // Functions of a hostile model may call themselves, and each the next one twice.
    constexpr size_t kDeepest = 64, kMostNodes = 1000000;
    if (depth_ == kDeepest || ++count_ > kMostNodes) return;
    ++depth_;
    const bool is_reached = context_.names_of_nodes.contains(name);
    const bool is_if = node.op_type() == "If";
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      const std::string side = printable(attribute.name());
      const std::string here =
          is_if ? fmt::format("it stands in the {} of '{}', whose condition is a constant that does not take it", side,
                              name)
                : fmt::format("it stands in the {} of '{}', which runs no iteration", side, name);
      look(attribute.g().node(), name + "/", is_if ? side + "/" : "", is_reached ? here : why);
    }
    if (auto function = context_.functions.find(name_of_function(node)); function != context_.functions.end())
      look(function->second->node(), name + "/", "", why);
    --depth_;
  }

  const ModelContext& context_;
  const std::string &node_, &type_;
  std::string why_;
  size_t depth_ = 0, count_ = 0;
};

}  // namespace

std::string why_left_out(const ModelContext& context, const std::string& node, const std::string& type) {
  return LeftOutSearch(context, node, type).run(context.file->proto().graph());
}

}  // namespace relaxc::onnx_import
