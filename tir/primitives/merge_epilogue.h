#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct MergeEpilogue {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"merge_epilogue",
                                       "inlines the elementwise blocks behind the block into the last of them. Returns "
                                       "that one, or none. TVM has no such primitive"};
  static constexpr auto fields() { return list(required<&MergeEpilogue::block>("the anchor")); }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
