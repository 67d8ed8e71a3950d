#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Unroll {
  LoopRV loop;

  static constexpr std::string_view kName = "unroll";
  static constexpr std::string_view kDoc = "writes the body out for each iteration";
  static constexpr auto fields() { return std::tuple(required("loop", &Unroll::loop, "of constant extent")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
