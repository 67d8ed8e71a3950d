// The lowering of one tensor program.
#pragma once
#include "passes/pass.h"

namespace relaxc {

// Applies the passes of lower_kernels to one program, without the runner.
inline PrimFuncRef lower_program(const PrimFuncRef& program, const PassSettings& settings = {},
                                 const Target& target = {}) {
  static const OpTable kNone({});
  PassContext context(kNone, target, settings);
  PrimFuncRef result = program;
  for (const Pass* pass : parse_passes(kLowerKernels, settings)) result = pass->on_program("", result, context);
  return result;
}

}  // namespace relaxc
