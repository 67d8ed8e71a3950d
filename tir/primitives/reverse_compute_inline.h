#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReverseComputeInline {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"reverse_compute_inline",
                                       "inlines an elementwise consumer into its producer, or into all parts of it"};
  static constexpr auto fields() { return list(required<&ReverseComputeInline::block>("the consumer")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
