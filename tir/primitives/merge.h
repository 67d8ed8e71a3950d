#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Merge {
  Variadic loops;

  static constexpr PrimitiveInfo kInfo{
      "merge", "merges loops side by side, or the nests down to them, into one loop with all of their bodies"};
  static constexpr auto fields() { return list(required<&Merge::loops>("have equal extents")); }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
