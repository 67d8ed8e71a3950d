// Other compilers for parts of a graph, as plug-ins bring them (TVM: "bring your own codegen"). A compiler lists the
// operators and patterns that it takes. Their matches that are connected form a part, which becomes one kernel: it
// calls the compiler's run-time function with the bytes that the compiler made of the part.
#pragma once
#include <variant>

#include "passes/pass.h"
#include "passes/pattern.h"

namespace relaxc {

struct ExternalPattern {
  // An operator, "nn.relu", or definitions under @S.pattern as in files of --kernels (docs/own-kernels.md). An operand
  // of an alternative that does not match (R.add(y, bias) | y) is left out of the match, and cheap values inside may be
  // used elsewhere, too.
  std::string text;
  // Returns why the compiler cannot compute the match ("the weight is not constant"), for `relaxc explain`; nullopt
  // where it can.
  std::function<std::optional<std::string>(const PatternMatch& match)> check = nullptr;
};

struct ExternalMatch {
  std::string pattern;  // the pattern's name, or the operator's
  PatternMatch match;
};

// Matches that one call computes. Operands are inputs, results of matches before, and constants.
struct ExternalPart {
  std::vector<VarRef> inputs, outputs;  // tensors of known rank and dtype; outputs are the results that others use
  std::vector<ExternalMatch> matches;   // in order
};

struct ExternalCompiler {
  std::string name = {};                       // "onednn"; its passes are claim_onednn and call_onednn
  std::string doc = {};                        // one line
  std::vector<ExternalPattern> patterns = {};  // tried in order; a value belongs to the first match
  // Returns what the run-time function needs to compute the part, constants included (at least one byte), or why it
  // leaves the part to relaxc.
  std::function<std::variant<std::vector<std::byte>, std::string>(const ExternalPart& part)> compile = {};
  // A C function of a library (Tables::add_library):
  //   int32_t function(const void* bytes, const int64_t* dims, void* const* tensors)
  // The bytes are 64-byte aligned and stay at one address while the program lives; other bytes may come to be there
  // later, so what is made of them once is kept under a hash of their contents. The tensors are the inputs, then the
  // outputs, dense and row-major; `dims` has the dims of each in turn. It returns 0; another value ends the run with an
  // error that states it. Several threads may call it at once.
  std::string function = {};
};

// Returns the pass over graphs that makes kernels of parts, and the lowering step that makes their calls. Patterns that
// do not parse are a CompileError.
Pass claim_pass(const ExternalCompiler& compiler, const OpTable& ops);
Pass call_pass(const ExternalCompiler& compiler);

}  // namespace relaxc
