#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetConsumers {
  BlockRV block;

  static constexpr std::string_view kName = "get_consumers";
  static constexpr std::string_view kDoc = "gives the blocks of the scope that read buffers which the block writes";
  static constexpr auto fields() { return std::tuple(required("block", &GetConsumers::block, "the writer")); }
  Blocks apply(scheduling::Step& step) const;
};

}  // namespace relaxc
