// The bindings of a graph function: walked in order, and rewritten block by block from the last to the first.
#pragma once
#include "ir/visit.h"

namespace relaxc {

// All bindings of a sequence; not those of the sequences inside of it.
std::vector<Binding> bindings_of(const Expr& seq);
// Calls fn on each binding in order, those of branches and local functions before the binding that holds them.
void for_each_binding(const Expr& seq, const std::function<void(const Binding&)>& fn);
// The value with fn's result for each sequence in it: the branches of an If, the body of a local function. Where fn
// changes nothing it is the same node.
Expr map_sequences(const Expr& value, const std::function<Expr(const Expr& seq)>& fn);

using VarSet = std::unordered_set<const NodeHeader*>;
// What stands for the bindings of a block. `used_after` has the variables that later blocks and the result use.
using RewriteBlock = std::function<std::vector<Binding>(const BindingBlock& block, const VarSet& used_after)>;
// The sequence with each block rewritten, the last first. Blocks that get empty go; the outputs of a dataflow block are
// the variables that are used after it. Where nothing changes it is the same node.
Expr rewrite_blocks(const Expr& seq, const RewriteBlock& fn);

}  // namespace relaxc
