#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetProducers {
  BlockRV block;

  static constexpr std::string_view kName = "get_producers";
  static constexpr std::string_view kDoc = "gives the blocks of the scope that write buffers which the block reads";
  static constexpr auto fields() { return std::tuple(required("block", &GetProducers::block, "the reader")); }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
