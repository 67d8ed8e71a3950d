#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Rfactor {
  LoopRV loop;
  int64_t factor_axis;

  using Result = BlockRV;
  static constexpr std::string_view kName = "rfactor";
  static constexpr std::string_view kDoc =
      "makes a reduction two stages: the iterations of the loop reduce side by side, a second block reduces their "
      "results";
  static constexpr auto fields() {
    return std::tuple(
        required("loop", &Rfactor::loop, "drives a reduce axis"),
        required("factor_axis", &Rfactor::factor_axis, "the dim of the intermediate buffer that the loop gets"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
