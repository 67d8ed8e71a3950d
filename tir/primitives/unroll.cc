#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::unroll(LoopRV loop_rv) {
  Step step(*this, PrimitiveId::k_unroll, loop_rv);
  TreeNode* loop = step.loop(loop_rv);

  loop->loop->kind = ForKind::kUnrolled;
  loop->loop->thread.clear();
  step.done();
}

}  // namespace relaxc
