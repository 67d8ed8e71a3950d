#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReverseComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;

  static constexpr PrimitiveInfo kInfo{
      "reverse_compute_at",
      "moves a consumer into its producers' loop, where it takes the part that one iteration writes"};
  static constexpr auto fields() {
    return list(required<&ReverseComputeAt::block>("the consumer"),
                required<&ReverseComputeAt::loop>("around all of its producers"),
                defaulted<&ReverseComputeAt::preserve_unit_loops>("its loops of one iteration stay"),
                defaulted<&ReverseComputeAt::index>(
                    "the position among the statements of the loop; -1: the last possible; -2: the first"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
