#include "tir/primitives/read_at.h"

#include "tir/analysis/annotations.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

BlockRV ReadAt::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  TreeNode* block = step.block(this->block);
  step.require_around(loop, block);
  step.scope(block);
  Buffer buffer = step.accessed(block, read_buffer_index, AccessKind::kRead);
  size_t position = child_towards(loop, block)->position();
  for (TreeNode* other : blocks_below(loop)) {
    if (write_of(other, buffer) && child_towards(loop, other)->position() >= position)
      step.refuse({other, block}, "block '{}' writes '{}' in the same iteration", other, buffer);
  }
  std::vector<Range> region = region_at(block, *read_of(block, buffer), loop);
  TreeNode* copy = insert_cache(loop, position, buffer, AccessKind::kRead, storage_scope, region, {block});
  copy->block->annotations.set(annotations::kAutoCopy.name, 1);
  return step.block_result(copy);
}

}  // namespace relaxc
