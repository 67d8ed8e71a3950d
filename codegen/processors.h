// The figures of a processor that LLVM's feature lists do not give: instruction throughput from LLVM's scheduling
// models, caches from the vendors' manuals or from the running machine.
#pragma once
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

#include "tir/target.h"

namespace relaxc::codegen {

// Latency and throughput of multiply-adds and loads of full vectors, where LLVM has a scheduling model.
void add_llvm_figures(Target& target, const llvm::Target& llvm_target, const llvm::MCSubtargetInfo& info);
// The row of a table of common processors, where it has one. Its figures replace LLVM's: a few models of LLVM count
// other throughputs than the manuals state.
void add_processor_figures(Target& target);
// The caches and cores that Linux reports for the running machine; nothing on other systems.
void add_host_figures(Target& target);

}  // namespace relaxc::codegen
