#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetLoops {
  BlockRV block;

  static constexpr std::string_view kName = "get_loops";
  static constexpr std::string_view kDoc = "gives the loops around a block up to its scope, outermost first";
  static constexpr auto fields() { return std::tuple(required("block", &GetLoops::block, "the block inside")); }
  Loops apply(scheduling::Step& step) const;
};

}  // namespace relaxc
