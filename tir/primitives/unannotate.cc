#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::unannotate(Place block_or_loop, std::string ann_key) {
  Step step(*this, PrimitiveId::k_unannotate, block_or_loop, ann_key);
  TreeNode* node = step.place(block_or_loop);
  Attrs& annotations = node->is_loop() ? node->loop->annotations : node->block->annotations;
  if (!annotations.has(ann_key)) step.refuse({node}, fmt::format("there is no annotation '{}'", ann_key));
  annotations = annotations.without(ann_key);
  step.done();
}

}  // namespace relaxc
