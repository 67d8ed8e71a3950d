#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetChildBlocks {
  Place block_or_loop;

  static constexpr std::string_view kName = "get_child_blocks";
  static constexpr std::string_view kDoc = "gives the blocks directly inside, in program order";
  static constexpr auto fields() {
    return std::tuple(required("block_or_loop", &GetChildBlocks::block_or_loop, "what they stand in"));
  }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
