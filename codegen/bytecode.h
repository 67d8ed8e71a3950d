// Graph functions to VM bytecode.
#pragma once
#include "ir/module.h"
#include "ir/op.h"
#include "vm/executable.h"

namespace relaxc::codegen {

// The executable of a module after the `lower` pipeline: kernels are called with their destinations and explicit
// scalars. Every public graph function (and those it calls) becomes a VM function; kernels are named, their code comes
// from compile_kernels(). What has no bytecode is a CompileError at its place (an operator without lowering).
vm::Executable lower_to_bytecode(const IRModule& module);

// Whether the operator, which has no tensor program, is one that lower_to_bytecode() (or a pass before it) knows.
bool is_lowered_to_bytecode(std::string_view op);

}  // namespace relaxc::codegen
