#pragma once
#include "tir/edit/tiles.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SamplePerfectTile {
  LoopRV loop;
  int64_t n;
  int64_t max_innermost_factor = 16;

  static constexpr PrimitiveInfo kInfo{"sample_perfect_tile", "chooses factors whose product is the loop's extent"};
  static constexpr auto fields() {
    return list(required<&SamplePerfectTile::loop>("to be split by them"), required<&SamplePerfectTile::n>("how many"),
                defaulted<&SamplePerfectTile::max_innermost_factor>("the largest last factor"));
  }
  Exprs apply(scheduling::Step& step) const {
    auto* loop = step.loop(this->loop);
    if (n < 1 || n > scheduling::kMostFactors)
      step.refuse({loop}, "{} factors, expected 1 to {}", n, scheduling::kMostFactors);
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
      tile = scheduling::random_tile(*extent, n, n == 1 ? *extent : max_innermost_factor, step.workspace().random());
    } else {
      tile = scheduling::random_inner_tile(n, max_innermost_factor, step.workspace().random());
    }
    step.decide(tile);
    return step.number_results(tile);
  }
};

}  // namespace relaxc
