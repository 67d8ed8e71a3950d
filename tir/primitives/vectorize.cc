#include "tir/primitives/vectorize.h"

namespace relaxc {

using namespace scheduling;

void Vectorize::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  if (Refusal refusal = not_parallel(loop)) step.refuse({loop}, *refusal);
  loop->loop->kind = ForKind::kVectorized;
  loop->loop->thread.clear();
}

}  // namespace relaxc
