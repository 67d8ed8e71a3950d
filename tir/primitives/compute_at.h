#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;

  static constexpr PrimitiveInfo kInfo{
      "compute_at",
      "moves a producer, all parts of it, into its consumers' loop, where it makes what one iteration reads"};
  static constexpr auto fields() {
    return list(required<&ComputeAt::block>("the producer"), required<&ComputeAt::loop>("around all of its consumers"),
                defaulted<&ComputeAt::preserve_unit_loops>("its loops of one iteration stay"),
                defaulted<&ComputeAt::index>(
                    "the position among the statements of the loop; -1: the last possible; -2: the first"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
