// One run of a module in the interpreter.
#pragma once
#include "codegen/compile.h"

namespace relaxc {

// Runs `main` once after these passes, with every kernel in the interpreter. The results of one module after more and
// more passes tell which of them is wrong.
inline std::vector<Tensor> interpret_module(const IRModule& module, std::span<const Tensor> inputs,
                                            const std::string& passes = "legalize",
                                            const InterpretOptions& options = {}) {
  CompileSettings settings;
  settings.passes = passes;
  settings.interpret = options;
  Session session(compile(module, settings).load(), {.threads = 1});
  return session.run(inputs);
}

}  // namespace relaxc
