#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SamplePerfectTile {
  LoopRV loop;
  int64_t n;
  int64_t max_innermost_factor = 16;

  static constexpr std::string_view kName = "sample_perfect_tile";
  static constexpr std::string_view kDoc = "chooses factors whose product is the loop's extent";
  static constexpr auto fields() {
    return std::tuple(
        required("loop", &SamplePerfectTile::loop, "to be split by them"),
        required("n", &SamplePerfectTile::n, "how many"),
        defaulted("max_innermost_factor", &SamplePerfectTile::max_innermost_factor, "the most that the last may be"));
  }
  Exprs apply(scheduling::Step& step) const;
};

}  // namespace relaxc
