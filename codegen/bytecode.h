// Lowers graph functions to VM bytecode.
#pragma once
#include "ir/module.h"
#include "ir/op.h"
#include "vm/executable.h"

namespace relaxc::codegen {

// Returns the executable of a module after the `lower` pipeline, in which kernels are called with their destinations
// and explicit scalars. Every public graph function (and those it calls) becomes a VM function. The executable names
// kernels; their code comes from compile_kernels(). A node without bytecode (an operator without lowering) is a
// CompileError at its place.
vm::Executable lower_to_bytecode(const IRModule& module);

// Returns whether the operator, which has no tensor program, is lowered by lower_to_bytecode() or a pass before it.
bool is_lowered_to_bytecode(std::string_view op);

}  // namespace relaxc::codegen
