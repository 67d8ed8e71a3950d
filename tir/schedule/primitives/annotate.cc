#include "tir/schedule/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::annotate(Place block_or_loop, std::string ann_key, AttrValue ann_val) {
  Step step(*this, PrimitiveId::k_annotate, block_or_loop, ann_key, ann_val);
  TreeNode* node = step.place(block_or_loop);
  ann_val.map_exprs([&](const Expr& e) { return step.number(e); });
  (node->is_loop() ? node->loop->annotations : node->block->annotations).set(ann_key, ann_val);
  step.done();
}

}  // namespace relaxc
