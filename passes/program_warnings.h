// Warnings about tensor programs that somebody wrote: indices that are provably out of range, and results of which
// elements are not written.
#pragma once
#include "passes/kernel_rules.h"

namespace relaxc {

// Returns warnings about the programs of a verified module, for any dims, and then for the constant dims of their
// calls, which prove more.
std::vector<Diagnostic> program_warnings(const IRModule& module);

// Does the same for programs of kernels, which no graph calls yet.
std::vector<Diagnostic> kernel_warnings(const std::vector<KernelRule>& rules);
// Returns what the constant dims of the calls add to that, for the programs with these names.
std::vector<Diagnostic> warnings_of_calls(const IRModule& module, const std::set<std::string>& programs);

}  // namespace relaxc
