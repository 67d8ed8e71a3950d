#include "tools/kernel_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel_call.h"
#include "ir/op_names.h"
#include "ir/sequence.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc::tools {

ModuleCalls calls_of(const IRModule& module) {
  ModuleCalls result;
  auto add = [&](const Binding& binding) {
    const Call* call = binding.value.as<Call>();
    if (!call) return;
    std::optional<KernelCall> kernel = as_kernel_call(binding.value, module);
    bool is_program = kernel && called_program(kernel->callee, module);
    const Expr& callee = kernel ? kernel->callee : call->callee;
    bool is_packed = op_name(binding.value) == ops::kCallPurePacked && !call->args.empty();
    const ExternFunc* external = (is_packed ? call->args[0] : callee).as<ExternFunc>();
    if (!is_program && !external) return;
    KernelCalls& calls = is_program ? result.programs[kernel->name()] : result.functions[external->symbol];
    ++calls.count;
    const std::string nodes = nodes_of(binding.value.span() ? binding.value.span() : binding.var.span());
    if (!nodes.empty() && !std::ranges::count(calls.nodes, nodes)) calls.nodes.push_back(nodes);
  };
  for (const auto& [_, function] : module.functions) {
    if (const Function* graph = function.as<Function>()) for_each_binding(graph->body, add);
  }
  return result;
}

std::string text_of_nodes(const KernelCalls& calls, size_t most) {
  std::vector<std::string> shown(calls.nodes.begin(),
                                 calls.nodes.begin() + static_cast<long>(std::min(calls.nodes.size(), most)));
  return joined(shown, "; ") + (calls.nodes.size() > most ? "; ..." : "");
}

std::string nodes_comment(const CallsByName& programs, const std::string& name) {
  const KernelCalls* calls = find_value(programs, name);
  return calls && !calls->nodes.empty() ? fmt::format("# {}\n", text_of_nodes(*calls, 8)) : "";
}

}  // namespace relaxc::tools
