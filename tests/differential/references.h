// The results that stand beside the operators: those of the rows' references, and those that texts of `# test: run`
// state.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"
#include "vm/tensor.h"

namespace relaxc::test {

// Returns the operators that a text of `# test: run` calls: their results stand in the text.
std::set<std::string> ops_of_run_texts();

// Returns the results of the only call of an operator in main, or nullopt when that operator has no reference.
std::optional<std::vector<Tensor>> run_reference(const IRModule& module, const std::vector<Tensor>& inputs);

}  // namespace relaxc::test
