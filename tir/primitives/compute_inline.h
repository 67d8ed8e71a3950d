#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ComputeInline {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"compute_inline",
                                       "inlines an elementwise producer, all parts of it, into its consumers"};
  static constexpr auto fields() { return list(required<&ComputeInline::block>("the producer")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
