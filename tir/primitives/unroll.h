#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Unroll {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"unroll", "repeats the body in the code for each iteration"};
  static constexpr auto fields() { return list(required<&Unroll::loop>("has a constant extent")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kUnrolled); }
};

}  // namespace relaxc
