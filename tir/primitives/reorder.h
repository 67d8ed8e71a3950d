#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Reorder {
  Variadic loops;

  static constexpr PrimitiveInfo kInfo{"reorder", "puts loops of one chain into this order"};
  static constexpr auto fields() {
    return list(
        required<&Reorder::loops>("outermost first; loops of the chain that are not listed stay where they are"));
  }
  void apply(scheduling::Step& step) const;

  // The loops from the outermost to the innermost listed one, before and after the step.
  struct Orders {
    scheduling::Nodes before, after;
  };
  // Returns the orders of a step that fits, and refuses another one.
  Orders orders(scheduling::Step& step) const;
};

}  // namespace relaxc
