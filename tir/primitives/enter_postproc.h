#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct EnterPostproc {
  static constexpr std::string_view kName = "enter_postproc";
  static constexpr std::string_view kDoc =
      "marks the place in a trace from which on it is postprocessing, which replays may leave out";
  static constexpr auto fields() { return std::tuple(); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
