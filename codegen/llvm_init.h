// Internal to codegen/: LLVM's target registry, and the figures of processors. Includes LLVM.
#pragma once
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "tir/target.h"

namespace relaxc::codegen {

// Registers LLVM's code generators, once per process; safe from any thread.
void initialize_llvm();
// Throws a CompileError when this LLVM has no code generator for the triple. opt_level is 0 to 3.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, int opt_level);

// These are in processors.cc. They add the figures that LLVM's feature lists do not give.
// Adds latency and throughput of multiply-adds and loads of full vectors, where LLVM has a scheduling model.
void add_llvm_figures(Target& target, const llvm::Target& llvm_target, const llvm::MCSubtargetInfo& info);
// Adds the figures of the processor's row in a table of common processors, if there is one. They replace LLVM's,
// because a few models of LLVM have other throughputs than the manuals state.
void add_processor_figures(Target& target);
// Adds the caches and cores that Linux reports for the running machine, and nothing on other systems.
void add_host_figures(Target& target);

}  // namespace relaxc::codegen
