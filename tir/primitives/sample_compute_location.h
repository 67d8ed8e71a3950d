#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SampleComputeLocation {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"sample_compute_location", "chooses a loop that the block may be computed at"};
  static constexpr auto fields() { return std::tuple(required<&SampleComputeLocation::block>("the producer")); }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
