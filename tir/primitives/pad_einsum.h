#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct PadEinsum {
  BlockRV block;
  Ints padding;

  static constexpr PrimitiveInfo kInfo{
      "pad_einsum",
      "pads the extents of the axes of an einsum to multiples; operands and result go through padded copies"};
  static constexpr auto fields() {
    return list(required<&PadEinsum::block>("the einsum"), required<&PadEinsum::padding>("a divisor for each axis"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
