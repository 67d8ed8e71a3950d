// What is provably wrong with tensor programs that somebody wrote, as far as they run all the same: indices out of
// range, and results of which elements are not written.
#pragma once
#include "passes/kernel_rules.h"

namespace relaxc {

// Returns warnings about the module's programs. What a program computes for any dims is looked at first, then what it
// computes for the constant dims of its calls, which prove more. The module is verified.
std::vector<Diagnostic> program_warnings(const IRModule& module);

// Does the same for programs of kernels, which no graph calls yet.
std::vector<Diagnostic> kernel_warnings(const std::vector<KernelRule>& rules);
// Returns what the constant dims of the calls add to that, for the programs with these names.
std::vector<Diagnostic> warnings_of_calls(const IRModule& module, const std::set<std::string>& programs);

}  // namespace relaxc
