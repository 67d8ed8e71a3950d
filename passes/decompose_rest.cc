// Expects: what decompose expects. Guarantees: what decompose guarantees, for the operators that the user's kernels
// name as well; apply_kernels has run.
#include "passes/graph_rewriter.h"

namespace relaxc {

IRModule decompose_rest(IRModule module, PassContext& context) { return decompose_operators(module, context.ops, {}); }

}  // namespace relaxc
