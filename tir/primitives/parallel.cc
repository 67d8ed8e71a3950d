#include "tir/primitives/parallel.h"

namespace relaxc {

using namespace scheduling;

void Parallel::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  if (Refusal refusal = not_parallel(loop)) step.refuse({loop}, *refusal);
  loop->loop->kind = ForKind::kParallel;
  loop->loop->thread.clear();
}

}  // namespace relaxc
