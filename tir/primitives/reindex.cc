#include "tir/edit/reindex_stage.h"

namespace relaxc {

using namespace scheduling;

BlockRV Schedule::reindex(BlockRV block_rv, BufferArg buffer_arg) {
  Step step(*this, PrimitiveId::k_reindex, block_rv, buffer_arg);
  TreeNode* block = step.block(block_rv);
  Buffer buffer = step.buffer(block, buffer_arg, AccessKind::kRead);
  AccessKind kind = write_of(block, buffer) ? AccessKind::kWrite : AccessKind::kRead;
  return step.block_result(
      reindex_stage(step, block, buffer, kind, buffer->name + "_reindex", buffer_type(buffer).scope, nullptr));
}

}  // namespace relaxc
