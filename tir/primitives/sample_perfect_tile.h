#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SamplePerfectTile {
  LoopRV loop;
  int64_t n;
  int64_t max_innermost_factor = 16;

  static constexpr PrimitiveInfo kInfo{"sample_perfect_tile", "chooses factors whose product is the loop's extent"};
  static constexpr auto fields() {
    return std::tuple(required<&SamplePerfectTile::loop>("to be split by them"),
                      required<&SamplePerfectTile::n>("how many"),
                      defaulted<&SamplePerfectTile::max_innermost_factor>("the largest last factor"));
  }
  Exprs apply(scheduling::Step& step) const;
};

}  // namespace relaxc
