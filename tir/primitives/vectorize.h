#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Vectorize {
  LoopRV loop;

  static constexpr std::string_view kName = "vectorize";
  static constexpr std::string_view kDoc = "makes the iterations lanes of vectors";
  static constexpr auto fields() { return std::tuple(required("loop", &Vectorize::loop, "binds spatial axes only")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
