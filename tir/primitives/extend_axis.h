#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ExtendAxis {
  BlockRV block;
  int64_t axis;
  int64_t extent;

  static constexpr PrimitiveInfo kInfo{"extend_axis",
                                       "lets a block compute more than is read: a spatial axis gets a larger extent. A "
                                       "buffer of the program's grows with "
                                       "it, by zeros where operands end; to a param only what was is stored"};
  static constexpr auto fields() {
    return list(required<&ExtendAxis::block>("stores one element at its axes"),
                required<&ExtendAxis::axis>("the position of the axis"),
                required<&ExtendAxis::extent>("at least the present one"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
