// What is known inside of a loop's body about the number of the iteration, for passes that prove what indices need.
#pragma once
#include "ir/module.h"

namespace relaxc {

// The number of the iteration, which is at least 0, and a dim of the body's params that it is below, if there is one.
struct LoopFact {
  VarRef iteration;
  std::optional<Expr> below = {};
};
// Returns the facts of the private functions that are the body of one loop and used for nothing else, by their nodes.
// The dim is known where the loop runs as often as a captured tensor has rows.
std::unordered_map<const NodeHeader*, LoopFact> find_loop_facts(const IRModule& module);

}  // namespace relaxc
