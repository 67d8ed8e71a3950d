// Which iterations of a loop use the same elements: dependence tests as those of vectorizing compilers (Allen and
// Kennedy, "Optimizing Compilers for Modern Architectures", chapter 3), dim by dimension, where a step of the loop
// moves both accesses by the same distance.
#pragma once
#include "tir/analysis/iter_map.h"

namespace relaxc {

// The elements that an access uses in an iteration, and the loops around it that run, outermost first. Variables of
// other loops keep their values.
struct LoopAccess {
  std::vector<Range> box;
  std::vector<LoopRange> loops;
};

// How many iterations of a loop lie between a store and another access of the same element: positive where the other
// access comes in a later iteration. The limits are never too narrow.
struct Distances {
  Interval range;
  bool is_certain = false;  // the range is one number, and iterations that far apart do use the same element

  bool is_only_zero() const { return range.min == 0 && range.max == 0; }
};

// Returns the distances over the loop, one of those around both accesses, while the loops outside of it in `loops` may
// be in different iterations, too; nullopt: the two never use the same element.
std::optional<Distances> distances(const LoopAccess& store, const LoopAccess& other, const VarRef& loop,
                                   const Analyzer& facts);

}  // namespace relaxc
