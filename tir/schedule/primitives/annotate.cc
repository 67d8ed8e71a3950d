#include <algorithm>

#include "tir/schedule/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::annotate(Place block_or_loop, std::string ann_key, AttrValue ann_val) {
  Step step(*this, PrimitiveId::k_annotate, block_or_loop, ann_key, ann_val);
  TreeNode* node = step.place(block_or_loop);
  ann_val.map_exprs([&](const Expr& e) { return step.number(e); });
  // What is fetched ahead is used in the loop; a name that is not would be left out without a word.
  bool own = ann_key == "prefetch_own", ahead = ann_key == "prefetch_ahead";
  if (ann_key == "prefetch" || own || ahead) {
    const AttrList* names = ann_val.as<AttrList>();
    if (!node->is_loop() || !names) step.refuse({node}, fmt::format("{} takes a loop and a list of buffers", ann_key));
    for (const AttrValue& name : *names) {
      if (ahead && name.as<int64_t>()) continue;  // rows
      auto is_named = [&](const BufferRegion& region) {
        return name.as<std::string>() && region.buffer->name == *name.as<std::string>();
      };
      bool is_used = false;
      for (const TreeNode* block : blocks_below(node)) {
        is_used = is_used || std::any_of(block->block->reads.begin(), block->block->reads.end(), is_named) ||
                  (own && std::any_of(block->block->writes.begin(), block->block->writes.end(), is_named));
      }
      if (!is_used)
        step.refuse({node}, fmt::format("{}: loop '{}' {} no buffer {}", ann_key, node->loop->var->name,
                                        own ? "reads or writes" : "reads", to_string(name)));
    }
  }
  (node->is_loop() ? node->loop->annotations : node->block->annotations).set(ann_key, ann_val);
  step.done();
}

}  // namespace relaxc
