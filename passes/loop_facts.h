// What is known inside of a loop's body about the number of the iteration, for passes that prove what indices need.
#pragma once
#include "ir/module.h"

namespace relaxc {

// A function of the module, and what it captures.
struct Closure {
  std::string function;
  std::vector<Expr> captured;
};
// Returns the closure that the value is; nullopt for other values.
std::optional<Closure> as_closure(const Expr& value);

// The number of the iteration, which is at least 0, and the number or the dim of the body's params that it is below, if
// one is known.
struct LoopFact {
  VarRef iteration;
  std::optional<Expr> below = {};
};
// Returns the facts of the private functions that are the body of one loop and used for nothing else, by their nodes.
// The dim is known where the loop runs as often as a captured tensor has rows, the number where it is constant.
std::unordered_map<const NodeHeader*, LoopFact> find_loop_facts(const IRModule& module);

}  // namespace relaxc
