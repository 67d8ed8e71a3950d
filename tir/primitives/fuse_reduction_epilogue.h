#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct FuseReductionEpilogue {
  BlockRV reduction_block;
  BlockRV epilogue_block;

  static constexpr PrimitiveInfo kInfo{
      "fuse_reduction_epilogue",
      "moves a summand, which a second block adds to each result of a sum, into the sum's init"};
  static constexpr auto fields() {
    return list(required<&FuseReductionEpilogue::reduction_block>("the sum"),
                required<&FuseReductionEpilogue::epilogue_block>("adds the summand"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
