#include "tir/primitives/add_unit_loop.h"

namespace relaxc {

using namespace scheduling;

LoopRV AddUnitLoop::apply(Step& step) const {
  TreeNode* node = step.place(block_or_loop);
  if (!node->parent) step.refuse({node}, "nothing can stand around the root block");
  DType dtype = node->is_loop() ? dtype_of(node->var()) : node->axes().empty() ? kInt64 : dtype_of(node->axes()[0].var);
  TreeNode* loop = node->tree->new_loop("u", int_imm(1, dtype));
  node->tree->wrap(node, {loop});
  return step.loop_result(loop);
}

}  // namespace relaxc
