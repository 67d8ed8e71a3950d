#include "tir/schedule/step.h"

namespace relaxc {

using namespace scheduling;

namespace {
Attrs& annotations(TreeNode* node) { return node->is_loop() ? node->loop->annotations : node->block->annotations; }
}  // namespace

void Schedule::annotate(Place block_or_loop, std::string ann_key, AttrValue ann_val) {
  Step step(*this, PrimitiveId::k_annotate, block_or_loop, ann_key, ann_val);
  TreeNode* node = step.place(block_or_loop);
  ann_val.map_exprs([&](const Expr& e) { return step.number(e); });
  annotations(node).set(ann_key, ann_val);
  step.done();
}

void Schedule::unannotate(Place block_or_loop, std::string ann_key) {
  Step step(*this, PrimitiveId::k_unannotate, block_or_loop, ann_key);
  TreeNode* node = step.place(block_or_loop);
  if (!annotations(node).has(ann_key)) step.refuse({node}, fmt::format("there is no annotation '{}'", ann_key));
  annotations(node) = annotations(node).without(ann_key);
  step.done();
}

}  // namespace relaxc
