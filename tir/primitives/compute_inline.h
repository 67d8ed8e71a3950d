#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ComputeInline {
  BlockRV block;

  static constexpr std::string_view kName = "compute_inline";
  static constexpr std::string_view kDoc = "puts an elementwise producer into its consumers";
  static constexpr auto fields() { return std::tuple(required("block", &ComputeInline::block, "the producer")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
