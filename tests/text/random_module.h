// Modules at random, valid by construction, that use every kind of node and every operator.
#pragma once
#include "ir/op.h"

namespace relaxc::test {

// The same seed gives the same module. Operators take turns by seed, so that as many seeds as there are operators use
// each of them.
IRModule random_module(const OpTable& ops, uint64_t seed);

}  // namespace relaxc::test
