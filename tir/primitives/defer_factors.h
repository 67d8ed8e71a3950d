#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct DeferFactors {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{
      "defer_factors",
      "takes the factors that all values of a sum share out of the sum; its readers multiply by them instead"};
  static constexpr auto fields() { return list(required<&DeferFactors::block>("a sum of products")); }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
