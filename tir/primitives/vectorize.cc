#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::vectorize(LoopRV loop_rv) {
  Step step(*this, PrimitiveId::k_vectorize, loop_rv);
  TreeNode* loop = step.loop(loop_rv);
  if (Refusal refusal = not_parallel(loop)) step.refuse({loop}, *refusal);
  loop->loop->kind = ForKind::kVectorized;
  loop->loop->thread.clear();
  step.done();
}

}  // namespace relaxc
