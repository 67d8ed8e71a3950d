#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct LoopPartition {
  LoopRV loop;
  Factors factors;
  bool preserve_unit_iters = true;

  static constexpr PrimitiveInfo kInfo{
      "loop_partition", "replaces a loop by several loops, one after the other, with these numbers of iterations"};
  static constexpr auto fields() {
    return list(
        required<&LoopPartition::loop>("the loop that is replaced"),
        required<&LoopPartition::factors>("the numbers of iterations; one may be None"),
        defaulted<&LoopPartition::preserve_unit_iters>("loops of one iteration keep their variables in the indices"));
  }
  Loops apply(scheduling::Step& step) const;
};

}  // namespace relaxc
