#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Parallel {
  LoopRV loop;

  static constexpr std::string_view kName = "parallel";
  static constexpr std::string_view kDoc = "runs the iterations on all threads";
  static constexpr auto fields() { return std::tuple(required("loop", &Parallel::loop, "binds spatial axes only")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
