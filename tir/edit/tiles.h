// Random factors of loop extents.
#pragma once
#include "tir/edit/step.h"

namespace relaxc::scheduling {

constexpr int64_t kMostFactors = 64;

// n factors of the number, the last at most max_innermost; each prime goes to a place by chance.
Ints random_tile(int64_t number, int64_t n, int64_t max_innermost, std::mt19937_64& random);
// For an extent not known: powers of two, the first factor 0, which split takes as what the others leave.
Ints random_inner_tile(int64_t n, int64_t max_innermost, std::mt19937_64& random);
// A decision as factors; refuses what is no list of n positive numbers. `known`: the extent is.
Refusal decided_tile(const AttrValue& decision, int64_t n, bool known, Ints& tile);
// What was decided for another extent, adapted to this one: inner factors stay where they divide.
Ints fit_tile(const Ints& decided, int64_t number);

}  // namespace relaxc::scheduling
