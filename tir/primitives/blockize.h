#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Blockize {
  Subtree target;
  bool preserve_unit_iters = true;

  static constexpr PrimitiveInfo kInfo{"blockize", "puts a block around a subtree"};
  static constexpr auto fields() {
    return list(
        required<&Blockize::target>("a loop, a block, or blocks side by side"),
        defaulted<&Blockize::preserve_unit_iters>("loops of one iteration keep their variables in the indices"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
