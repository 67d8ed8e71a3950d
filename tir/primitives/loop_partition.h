#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct LoopPartition {
  LoopRV loop;
  Factors factors;
  bool preserve_unit_iters = true;

  static constexpr PrimitiveInfo kInfo{"loop_partition",
                                       "makes a loop several loops, one after the other, of so many iterations each"};
  static constexpr auto fields() {
    return std::tuple(
        required<&LoopPartition::loop>("the loop that goes"),
        required<&LoopPartition::factors>("the numbers of iterations; one may be None"),
        defaulted<&LoopPartition::preserve_unit_iters>("loops of one iteration keep their variables in the indices"));
  }
  Loops apply(scheduling::Step& step) const;
};

}  // namespace relaxc
