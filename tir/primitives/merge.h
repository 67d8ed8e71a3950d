#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Merge {
  Variadic loops;

  static constexpr std::string_view kName = "merge";
  static constexpr std::string_view kDoc =
      "makes loops side by side, or the nests down to them, one loop that does all of their work";
  static constexpr auto fields() { return std::tuple(required("loops", &Merge::loops, "of equal extents")); }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
