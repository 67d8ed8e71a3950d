// Expects: kernels are called with explicit scalars (destination_passing). Guarantees: nothing of its own; it is the
// condition under which the pipeline lower_kernels may change a program's params.
#include "passes/graph.h"
#include "passes/pass.h"
#include "support/diagnostic.h"

namespace relaxc {

void expect_destinations(const IRModule& module, const PassContext&) {
  for (const auto& [name, function] : module.functions) {
    if (!function.is<Function>()) continue;
    walk(function, [&](const Ref<Call>& call) {
      auto kernel = as_kernel_call(call, module);
      if (kernel && !kernel->has_destinations && kernel->callee.is<GlobalVar>())
        fail(call.span(),
             "lower_kernels: R.call_tir passes shapes, a lowered kernel takes scalars; run destination_passing before");
    });
  }
}

}  // namespace relaxc
