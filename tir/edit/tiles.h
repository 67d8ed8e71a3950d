// Random factors of loop extents.
#pragma once
#include "tir/edit/step.h"

namespace relaxc::scheduling {

constexpr int64_t kMostFactors = 64;

// Returns n factors of the number, the last at most max_innermost. Each prime goes to a place by chance.
Ints random_tile(int64_t number, int64_t n, int64_t max_innermost, std::mt19937_64& random);
// Returns factors for an extent that is not known: powers of two, the first factor 0, which split takes as the
// iterations that the others leave.
Ints random_inner_tile(int64_t n, int64_t max_innermost, std::mt19937_64& random);
// Returns the loop's extent when it is a constant above 0.
std::optional<int64_t> known_extent(const TreeNode* loop);
// Returns the step's decision as factors. Refuses a decision that is not a list of n positive numbers; the first may be
// 0 when the extent is not known.
Ints decided_tile(Step& step, TreeNode* loop, int64_t n);
// Adapts factors that were decided for another extent: inner factors stay where they divide.
Ints fit_tile(Ints tile, const TreeNode* loop);

}  // namespace relaxc::scheduling
