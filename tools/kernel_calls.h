// The kernels and runtime functions that a module's graph calls, and the nodes of the model that they come from.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace relaxc::tools {

// Calls of one kernel or function: how often, and for each call its nodes, such as "/conv1/Conv, /relu/Relu".
struct KernelCalls {
  int64_t count = 0;
  std::vector<std::string> nodes;
};
using CallsByName = std::map<std::string, KernelCalls>;

struct ModuleCalls {
  CallsByName programs;   // tensor programs of the module
  CallsByName functions;  // others, by their symbols
};
ModuleCalls calls_of(const IRModule& module);

// Returns the nodes of at most so many calls, each behind the next one's "; ".
std::string text_of_nodes(const KernelCalls& calls, size_t most);

// Returns a comment that names the nodes of a tensor program, for the text that is printed of it; empty without nodes.
std::string nodes_comment(const CallsByName& programs, const std::string& name);

}  // namespace relaxc::tools
