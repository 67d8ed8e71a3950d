#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Vectorize {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"vectorize", "runs the iterations in the lanes of vectors"};
  static constexpr auto fields() { return list(required<&Vectorize::loop>("drives spatial axes only")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kVectorized); }
};

}  // namespace relaxc
