#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct PadEinsum {
  BlockRV block;
  Ints padding;

  static constexpr std::string_view kName = "pad_einsum";
  static constexpr std::string_view kDoc =
      "pads the extents of the axes of an einsum to multiples; operands and result go through padded copies";
  static constexpr auto fields() {
    return std::tuple(required("block", &PadEinsum::block, "the einsum"),
                      required("padding", &PadEinsum::padding, "a divisor for each axis"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
