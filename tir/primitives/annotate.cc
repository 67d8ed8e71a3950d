#include <algorithm>

#include "tir/edit/step.h"

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
    bool is_number_last = names->size() == 2 && (*names)[0].as<std::string>() && (*names)[1].as<int64_t>();
    if (ahead && !is_number_last) step.refuse({node}, "prefetch_ahead takes a buffer's name and a number of rows");
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
  if (ann_key == "double_buffer_scope") {
    const int64_t* position = ann_val.as<int64_t>();
    size_t writes = node->is_block() ? node->block->writes.size() : 0;
    if (!position || *position < 0 || static_cast<size_t>(*position) >= writes)
      step.refuse({node}, "double_buffer_scope takes a block and the position of one of the buffers that it writes");
  }
  bool flag = ann_key == "exact_tails" || ann_key == "keep_whole";
  if (flag && !(node->is_loop() && ann_val.as<bool>()))
    step.refuse({node}, fmt::format("{} takes a loop and True or False", ann_key));
  (node->is_loop() ? node->loop->annotations : node->block->annotations).set(ann_key, ann_val);
  step.done();
}

}  // namespace relaxc
