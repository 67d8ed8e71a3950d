#include "tir/primitives/unroll.h"

namespace relaxc {

using namespace scheduling;

void Unroll::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);

  loop->loop->kind = ForKind::kUnrolled;
  loop->loop->thread.clear();
}

}  // namespace relaxc
