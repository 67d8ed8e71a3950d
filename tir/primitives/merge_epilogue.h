#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct MergeEpilogue {
  BlockRV block;

  static constexpr std::string_view kName = "merge_epilogue";
  static constexpr std::string_view kDoc =
      "inlines the elementwise blocks behind the block into the last of them. Gives that one, or none. TVM has no such "
      "primitive";
  static constexpr auto fields() { return std::tuple(required("block", &MergeEpilogue::block, "the anchor")); }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
