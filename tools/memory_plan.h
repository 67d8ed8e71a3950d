// The memory of a run as a picture needs it: which bytes of the arena hold which tensor from which call to which.
#pragma once
#include <string>
#include <vector>

#include "tools/bytecode_walk.h"
#include "tools/profile.h"
#include "tools/report.h"

namespace relaxc::tools {

// Describes the memory of the function for these inputs: "arena_bytes", "weights_bytes", "calls" with the times of the
// measured ones, "tensors" with the calls that they live for, and "notes" about what is not known.
Report memory_of(const vm::Executable& executable, const vm::Function& function, std::span<const vm::Value> inputs,
                 const std::vector<MeasuredCall>& measured);

}  // namespace relaxc::tools
