// The bindings of a graph function: walked in order, and rewritten block by block from the last to the first.
#pragma once
#include "ir/visit.h"

namespace relaxc {

// Returns the place of the value; that of the variable where the value has none.
inline const Span& span_of(const Binding& binding) {
  return binding.value.span() ? binding.value.span() : binding.var.span();
}

// Returns all bindings of a sequence, without those of the sequences inside it.
std::vector<Binding> bindings_of(const Expr& seq);
// Calls fn on each binding in order. Those of branches and local functions come before the binding that holds them.
void for_each_binding(const Expr& seq, const std::function<void(const Binding&)>& fn);
// Returns the value with each sequence in it (the branches of an If, the body of a local function) replaced by fn's
// result. Returns the same node where fn changes nothing.
Expr map_sequences(const Expr& value, const std::function<Expr(const Expr& seq)>& fn);

// Returns the replacement for a block's bindings. `used_after` has the variables that later blocks and the result use.
using RewriteBlock = std::function<std::vector<Binding>(const BindingBlock& block, const VarSet& used_after)>;
// Returns the sequence with each block rewritten, the last first. Blocks that become empty are dropped; the outputs of
// a dataflow block are the variables that are used after it. Returns the same node where nothing changes.
Expr rewrite_blocks(const Expr& seq, const RewriteBlock& fn);

}  // namespace relaxc
