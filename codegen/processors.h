// Adds the figures of a processor that LLVM's feature lists do not give: instruction throughput from LLVM's scheduling
// models, and caches from the vendors' manuals or from the running machine.
#pragma once
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

#include "tir/target.h"

namespace relaxc::codegen {

// Adds latency and throughput of multiply-adds and loads of full vectors, where LLVM has a scheduling model.
void add_llvm_figures(Target& target, const llvm::Target& llvm_target, const llvm::MCSubtargetInfo& info);
// Adds the figures of the processor's row in a table of common processors, if there is one. They replace LLVM's,
// because a few models of LLVM have other throughputs than the manuals state.
void add_processor_figures(Target& target);
// Adds the caches and cores that Linux reports for the running machine, and nothing on other systems.
void add_host_figures(Target& target);

}  // namespace relaxc::codegen
