#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Vectorize {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"vectorize", "makes the iterations lanes of vectors"};
  static constexpr auto fields() { return std::tuple(required<&Vectorize::loop>("binds spatial axes only")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kVectorized); }
};

}  // namespace relaxc
