#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct AddUnitLoop {
  Place block_or_loop;

  static constexpr PrimitiveInfo kInfo{"add_unit_loop", "puts a loop of extent 1 around a block or a loop"};
  static constexpr auto fields() {
    return list(required<&AddUnitLoop::block_or_loop>("stands inside of the new loop"));
  }
  LoopRV apply(scheduling::Step& step) const {
    auto* node = step.place(block_or_loop);
    if (!node->parent) step.refuse({node}, "nothing can stand around the root block");
    bool has_dtype = node->is_loop() || !node->axes().empty();
    DType dtype = !has_dtype ? kInt64 : dtype_of(node->is_loop() ? node->var() : node->axes()[0].var);
    auto* loop = node->tree->new_loop("u", int_imm(1, dtype));
    node->tree->wrap(node, {loop});
    return step.loop_result(loop);
  }
};

}  // namespace relaxc
