#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct EnterPostproc {
  static constexpr PrimitiveInfo kInfo{
      "enter_postproc", "marks the place in a trace from which on it is postprocessing, which replays may leave out"};
  static constexpr auto fields() { return list(); }
  void apply(scheduling::Step&) const {}
};

}  // namespace relaxc
