// Expects: tensor programs of any form; kernels are called with explicit scalars (destination_passing). Guarantees:
// tensor programs as the code generator takes them (tir/lower/lower.h).
#include "passes/graph.h"
#include "passes/pass.h"
#include "support/diagnostic.h"
#include "tir/lower/lower.h"

namespace relaxc {

IRModule lower_kernels(IRModule module, PassContext& context) {
  for (auto& [name, function] : module.functions) {
    walk(function, [&](const Ref<Call>& call) {
      auto kernel = as_kernel_call(call, module);
      if (kernel && !kernel->has_destinations && kernel->callee.is<GlobalVar>())
        fail(call.span(),
             "lower_kernels: R.call_tir passes shapes, a lowered kernel takes scalars; run destination_passing before");
    });
    if (auto program = try_cast<PrimFunc>(function))
      function = lower_program(*program, {.check_bounds = context.check_bounds});
  }
  return module;
}

}  // namespace relaxc
