#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Merge {
  Variadic loops;

  static constexpr PrimitiveInfo kInfo{
      "merge", "makes loops side by side, or the nests down to them, one loop that does all of their work"};
  static constexpr auto fields() { return std::tuple(required<&Merge::loops>("of equal extents")); }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
