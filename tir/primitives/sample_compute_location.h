#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SampleComputeLocation {
  BlockRV block;

  static constexpr std::string_view kName = "sample_compute_location";
  static constexpr std::string_view kDoc = "chooses a loop that the block may be computed at";
  static constexpr auto fields() {
    return std::tuple(required("block", &SampleComputeLocation::block, "the producer"));
  }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
