#include "tir/primitives/sample_perfect_tile.h"

#include "tir/edit/tiles.h"

namespace relaxc {

using namespace scheduling;

Exprs SamplePerfectTile::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  if (n < 1 || n > kMostFactors) step.refuse({loop}, "{} factors, expected 1 to {}", n, kMostFactors);
  if (max_innermost_factor < 1) step.refuse({loop}, "max_innermost_factor {} is not positive", max_innermost_factor);
  auto extent = known_extent(loop);
  Ints tile;
  if (!step.decision().is_none()) {
    tile = decided_tile(step, loop, n);
    if (n > 1 && tile.back() > max_innermost_factor)
      step.refuse({loop}, "the last factor decided, {}, is above max_innermost_factor {}", tile.back(),
                  max_innermost_factor);
    tile = fit_tile(tile, loop);
  } else if (extent) {
    tile = random_tile(*extent, n, n == 1 ? *extent : max_innermost_factor, step.workspace().random());
  } else {
    tile = random_inner_tile(n, max_innermost_factor, step.workspace().random());
  }
  step.decide(tile);
  return step.number_results(tile);
}

}  // namespace relaxc
