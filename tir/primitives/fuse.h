#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Fuse {
  Variadic loops;
  bool preserve_unit_iters = true;

  static constexpr PrimitiveInfo kInfo{"fuse", "replaces a perfect nest by one loop"};
  static constexpr auto fields() {
    return list(required<&Fuse::loops>("the nest, outermost first"),
                defaulted<&Fuse::preserve_unit_iters>("loops of one iteration keep their variables in the indices"));
  }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
