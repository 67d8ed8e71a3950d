// Internal to codegen/: LLVM's target registry. Includes LLVM.
#pragma once
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "tir/target.h"

namespace relaxc::codegen {

// Registers LLVM's code generators, once per process; safe from any thread.
void initialize_llvm();
// Throws a CompileError when this LLVM has no code generator for the triple. opt_level 0 to 3.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, int opt_level);

}  // namespace relaxc::codegen
