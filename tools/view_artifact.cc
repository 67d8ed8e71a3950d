#include <algorithm>

#include "support/lists.h"
#include "tools/bytecode_walk.h"
#include "tools/view.h"
#include "vm/artifact.h"
#include "vm/cpu.h"
#include "vm/disassembler.h"

namespace relaxc::tools {

namespace {

ViewNode::Kind kind_of(const WalkedCall& call) {
  return call.kind == WalkedCall::Kind::kKernel ? ViewNode::Kind::kKernel : ViewNode::Kind::kRuntime;
}

// Makes nodes of the calls in a function's bytecode.
ViewFunction view_of_function(const vm::Executable& executable, const vm::Function& function) {
  const WalkedFunction walked = walk_bytecode(executable, function);
  ViewFunction view{function.name, {}};
  std::vector<size_t> node_of(walked.tensors.size());  // for an input: the node; for others: the maker
  for (size_t t = 0; t < walked.tensors.size(); ++t) {
    const WalkedTensor& tensor = walked.tensors[t];
    if (tensor.place != Place::kInput) continue;
    node_of[t] = view.nodes.size();
    view.nodes.push_back({ViewNode::Kind::kInput, tensor.name, tensor.type, ""});
  }
  const size_t num_inputs = view.nodes.size();
  auto add_edge = [&](ViewNode& node, size_t t) {
    const WalkedTensor& tensor = walked.tensors[t];
    if (tensor.place == Place::kConstant) {
      node.weights.push_back({tensor.type, "", *tensor.bytes});
    } else if (tensor.place == Place::kInput || tensor.writer) {
      const size_t from = tensor.writer ? num_inputs + *tensor.writer : node_of[t];
      if (!std::ranges::count(node.inputs, from)) node.inputs.push_back(from);
    }
  };
  for (const WalkedCall& call : walked.calls) {
    ViewNode node{kind_of(call), call.name, "", call.nodes};
    for (size_t t : call.reads) add_edge(node, t);
    for (size_t t : call.writes) node.type += (node.type.empty() ? "" : ", ") + walked.tensors[t].type;
    view.nodes.push_back(std::move(node));
  }
  for (const WalkedTensor& tensor : walked.tensors) {
    if (!tensor.is_result) continue;
    ViewNode node{ViewNode::Kind::kResult, tensor.result_name.empty() ? "result" : tensor.result_name, tensor.type, ""};
    add_edge(node, static_cast<size_t>(&tensor - walked.tensors.data()));
    view.nodes.push_back(std::move(node));
  }
  return view;
}

std::string description_of(const vm::KernelInfo& kernel) {
  const bool is_own = kernel.source == vm::KernelSource::kArtifact;
  std::string text = is_own ? "machine code of the artifact, symbol " : "a function of a library or the host, symbol ";
  text += kernel.symbol + "\n";
  if (!kernel.rule.empty()) text += "scheduled by: " + kernel.rule + "\n";
  if (!kernel.operations.empty()) text += "operations: " + kernel.operations + "\n";
  return text;
}

}  // namespace

View view_of_artifact(const std::string& path) {
  const vm::Artifact artifact = vm::load_artifact(path, {.loads_code = false});
  const vm::Executable& executable = artifact.executable;
  View view{"artifact", copy_value(executable.metadata, std::string(vm::kCpuKey)).value_or(""), {}, {}, {}};
  view.notes = {
      "an artifact holds bytecode and machine code: operators before fusion, layouts, TensorIR, loops and assembly "
      "are shown of the model that it was compiled from (relaxc view MODEL)"};
  for (const vm::Function& function : executable.functions) {
    view.functions.push_back(view_of_function(executable, function));
    view.kernels[function.name] = {{"bytecode", vm::disassemble(executable, function)}};
  }
  for (const vm::KernelInfo& kernel : executable.kernels)
    view.kernels.emplace(kernel.display_name, std::vector<ViewText>{{"artifact", description_of(kernel)}});
  std::ranges::stable_partition(view.functions, [](const ViewFunction& function) { return function.name == "main"; });
  return view;
}

}  // namespace relaxc::tools
