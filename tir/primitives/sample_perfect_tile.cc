#include "tir/primitives/sample_perfect_tile.h"

#include "tir/edit/tiles.h"

namespace relaxc {

using namespace scheduling;

Exprs SamplePerfectTile::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  if (n < 1 || n > kMostFactors) step.refuse({loop}, "{} factors, expected 1 to {}", n, kMostFactors);
  if (max_innermost_factor < 1) step.refuse({loop}, "max_innermost_factor {} is not positive", max_innermost_factor);
  auto extent = as_int(loop->loop->extent);
  bool known = extent && *extent > 0;
  Ints tile;
  if (!step.decision().is_none()) {
    step.require(decided_tile(step.decision(), n, known, tile), loop);
    if (n > 1 && tile.back() > max_innermost_factor)
      step.refuse({loop}, "the last factor decided, {}, is above max_innermost_factor {}", tile.back(),
                  max_innermost_factor);
    if (known) {
      tile = fit_tile(tile, *extent);
    } else {
      tile[0] = 0;
    }
  } else if (known) {
    tile = random_tile(*extent, n, n == 1 ? *extent : max_innermost_factor, step.workspace().random());
  } else {
    tile = random_inner_tile(n, max_innermost_factor, step.workspace().random());
  }
  step.decide(tile);
  return step.number_results(tile);
}

}  // namespace relaxc
