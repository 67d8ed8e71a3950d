#include "tir/primitives/bind.h"

namespace relaxc {

using namespace scheduling;

void BindThread::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  if (Refusal refusal = not_parallel(loop)) step.refuse({loop}, *refusal);
  loop->loop->kind = ForKind::kThreadBinding;
  loop->loop->thread = thread_axis;
}

}  // namespace relaxc
