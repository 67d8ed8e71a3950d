// Expects: tensor programs as legalize, fuse or a user wrote them. Guarantees: each that had the form of stages is
// scheduled (attribute tir.is_scheduled); others are left as they are.
#include "passes/pass.h"
#include "tir/lower/lower.h"
#include "tir/schedule/stages.h"

namespace relaxc {

IRModule schedule(IRModule module, PassContext& context) {
  for (auto& [name, function] : module.functions) {
    auto program = try_cast<PrimFunc>(function);
    if (!program) continue;
    PrimFuncRef normal = normalize_loops(*program);
    check_lowerable(normal);
    function = default_schedule(normal, context.target);
  }
  return module;
}

}  // namespace relaxc
