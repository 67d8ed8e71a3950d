#include "tir/primitives/unannotate.h"

namespace relaxc {

using namespace scheduling;

void Unannotate::apply(Step& step) const {
  TreeNode* node = step.place(block_or_loop);
  Attrs& annotations = node->is_loop() ? node->loop->annotations : node->block->annotations;
  if (!annotations.has(ann_key)) step.refuse({node}, "there is no annotation '{}'", ann_key);
  annotations = annotations.without(ann_key);
}

}  // namespace relaxc
