// Expects: tensor programs of any form; kernels are called with explicit scalars (destination_passing). Guarantees:
// tensor programs as the code generator takes them (tir/lower/lower.h).
#include "passes/pass.h"
#include "tir/lower/lower.h"

namespace relaxc {

IRModule lower_kernels(IRModule module, PassContext&) {
  for (auto& [name, function] : module.functions) {
    if (auto program = try_cast<PrimFunc>(function)) function = lower_program(*program);
  }
  return module;
}

}  // namespace relaxc
