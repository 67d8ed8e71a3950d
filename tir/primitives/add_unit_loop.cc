#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

LoopRV Schedule::add_unit_loop(Place block_or_loop) {
  Step step(*this, PrimitiveId::k_add_unit_loop, block_or_loop);
  TreeNode* node = step.place(block_or_loop);
  if (!node->parent) step.refuse({node}, "nothing can stand around the root block");
  DType dtype = node->is_loop()                  ? dtype_of(node->loop->var)
                : node->block->iter_vars.empty() ? kInt64
                                                 : dtype_of(node->block->iter_vars[0].var);
  TreeNode* loop = node->tree->new_loop("u", int_imm(1, dtype));
  node->tree->wrap(node, {loop});
  return step.loop_result(loop);
}

}  // namespace relaxc
