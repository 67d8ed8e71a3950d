#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Unroll {
  LoopRV loop;

  static constexpr PrimitiveInfo kInfo{"unroll", "writes the body out for each iteration"};
  static constexpr auto fields() { return std::tuple(required<&Unroll::loop>("of constant extent")); }
  void apply(scheduling::Step& step) const { step.set_kind(loop, ForKind::kUnrolled); }
};

}  // namespace relaxc
