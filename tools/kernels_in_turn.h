// Measures a model with and without somebody's kernels, in turn, and tells which kernels differ.
#pragma once
#include "codegen/compile.h"
#include "tools/in_turn.h"

namespace relaxc::tools {

// A compiled model.
struct Version {
  Measured measured;
  codegen::KernelMap programs;  // of its kernels, lowered
};
// `text` of the result is a table of the kernels that differ.
InTurn measure_kernels(Version& with, Version& without, const std::vector<vm::Value>& inputs,
                       const TimingOptions& timing);

}  // namespace relaxc::tools
