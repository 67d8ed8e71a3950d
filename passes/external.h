// Other compilers for parts of a graph, as plug-ins bring them (TVM: "bring your own codegen"). Operators that a
// compiler takes form parts: trees whose inner values nothing else uses. Each part becomes one kernel, which calls the
// compiler's run-time function with the bytes that the compiler made of the part.
#pragma once
#include "passes/pass.h"

namespace relaxc {

// Bindings of variables to calls of operators, in order. Their operands are inputs, variables bound before, constants
// and shapes; the result is the last variable.
struct ExternalPart {
  std::vector<VarRef> inputs;  // tensors of known rank and dtype
  std::vector<Binding> bindings;
};

struct ExternalCompiler {
  std::string name = {};  // "onednn"; its passes are claim_onednn and call_onednn
  std::string doc = {};   // one line
  // Returns whether it can compute the call of an operator, whose operands and result have known ranks and dtypes.
  std::function<bool(const OpCall& call)> takes = {};
  // Returns what the run-time function needs to compute the part, constants included; nullopt leaves the part to
  // relaxc.
  std::function<std::optional<std::vector<std::byte>>(const ExternalPart& part)> compile = {};
  // A C function of a library (Tables::add_library):
  //   int32_t function(const void* bytes, const int64_t* dims, void* tensor_0, ... void* tensor_7)
  // The bytes are 64-byte aligned and stay at one address, so that what is made of them once can be kept under it. The
  // tensors are the inputs, then the result, dense and row-major, then nulls; `dims` has the dims of each in turn. It
  // returns 0; another value ends the run with an error. Several threads may call it at once.
  std::string function = {};
};
inline constexpr size_t kMostExternalTensors = 8;  // of a part: inputs and result

// Returns the pass over graphs that makes kernels of parts, and the lowering step that makes their calls.
Pass claim_pass(const ExternalCompiler& compiler);
Pass call_pass(const ExternalCompiler& compiler);

}  // namespace relaxc
