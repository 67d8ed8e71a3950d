#include "tir/primitives/reindex.h"

#include "tir/edit/reindex_stage.h"

namespace relaxc {

using namespace scheduling;

BlockRV Reindex::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Buffer buffer = step.buffer(block, this->buffer, AccessKind::kRead);
  AccessKind kind = write_of(block, buffer) ? AccessKind::kWrite : AccessKind::kRead;
  return step.block_result(
      reindex_stage(step, block, buffer, kind, buffer->name + "_reindex", buffer_type(buffer).scope, nullptr));
}

}  // namespace relaxc
