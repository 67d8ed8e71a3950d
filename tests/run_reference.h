// The results of the rows' references, which stand beside the operators.
#pragma once
#include <optional>
#include <vector>

#include "ir/module.h"
#include "vm/tensor.h"

namespace relaxc::test {

// Returns the results of the only call of an operator in main, or nullopt when that operator has no reference.
std::optional<std::vector<Tensor>> run_reference(const IRModule& module, const std::vector<Tensor>& inputs);

}  // namespace relaxc::test
