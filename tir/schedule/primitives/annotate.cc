#include "tir/schedule/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::annotate(Place block_or_loop, std::string ann_key, AttrValue ann_val) {
  Step step(*this, PrimitiveId::k_annotate, block_or_loop, ann_key, ann_val);
  TreeNode* node = step.place(block_or_loop);
  ann_val.map_exprs([&](const Expr& e) { return step.number(e); });
  // What is fetched ahead is read in the loop; a name that is not would be left out without a word.
  if (ann_key == "prefetch" && node->is_loop()) {
    const AttrList* names = ann_val.as<AttrList>();
    for (const AttrValue& name : names ? *names : AttrList()) {
      bool is_read = false;
      for (const TreeNode* block : blocks_below(node)) {
        for (const BufferRegion& read : block->block->reads)
          is_read = is_read || (name.as<std::string>() && read.buffer->name == *name.as<std::string>());
      }
      if (!is_read)
        step.refuse({node},
                    fmt::format("prefetch: loop '{}' reads no buffer {}", node->loop->var->name, to_string(name)));
    }
  }
  (node->is_loop() ? node->loop->annotations : node->block->annotations).set(ann_key, ann_val);
  step.done();
}

}  // namespace relaxc
