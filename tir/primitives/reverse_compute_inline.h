#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReverseComputeInline {
  BlockRV block;

  static constexpr std::string_view kName = "reverse_compute_inline";
  static constexpr std::string_view kDoc = "puts an elementwise consumer into its only producer";
  static constexpr auto fields() { return std::tuple(required("block", &ReverseComputeInline::block, "the consumer")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
