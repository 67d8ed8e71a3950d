#include "tir/edit/reindex_stage.h"

namespace relaxc {

using namespace scheduling;

BlockRV Schedule::reindex_cache_read(BlockRV block_rv, BufferArg read_buffer_index, std::string storage_scope,
                                     IndexMap index_map) {
  Step step(*this, PrimitiveId::k_reindex_cache_read, block_rv, read_buffer_index, storage_scope, index_map);
  TreeNode* block = step.block(block_rv);
  Buffer buffer = step.buffer(block, read_buffer_index, AccessKind::kRead);
  if (!read_of(block, buffer))
    step.refuse({block}, fmt::format("block '{}' does not read '{}'", block->block->name, buffer->name));
  return step.block_result(reindex_stage(step, block, buffer, AccessKind::kRead,
                                         fmt::format("{}_{}", buffer->name, storage_scope), storage_scope, &index_map));
}

}  // namespace relaxc
