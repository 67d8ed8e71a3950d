#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Parallel {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"parallel", "runs the iterations on all threads"};
  static constexpr auto fields() { return list(required<&Parallel::loop>("drives spatial axes only")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kParallel); }
};

}  // namespace relaxc
