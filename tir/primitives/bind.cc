#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::bind(LoopRV loop_rv, std::string thread_axis) {
  Step step(*this, PrimitiveId::k_bind, loop_rv, thread_axis);
  TreeNode* loop = step.loop(loop_rv);
  if (Refusal refusal = not_parallel(loop)) step.refuse({loop}, *refusal);
  loop->loop->kind = ForKind::kThreadBinding;
  loop->loop->thread = thread_axis;
  step.done();
}

}  // namespace relaxc
