#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Rfactor {
  LoopRV loop;
  int64_t factor_axis;

  static constexpr PrimitiveInfo kInfo{
      "rfactor",
      "divides a reduction into two stages: the iterations of the loop reduce side by side, and a second block reduces "
      "their results. It takes sums, products, max and min, of several buffers, too, and choices by comparing "
      "(argmax); for those that keep the first of equal elements the loop must be the outermost reduce loop"};
  static constexpr auto fields() {
    return list(required<&Rfactor::loop>("drives a reduce axis"),
                required<&Rfactor::factor_axis>("the dim of the intermediate buffer that the loop gets"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
