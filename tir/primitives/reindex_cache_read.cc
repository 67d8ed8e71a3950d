#include "tir/primitives/reindex_cache_read.h"

#include "tir/edit/reindex_stage.h"

namespace relaxc {

using namespace scheduling;

BlockRV ReindexCacheRead::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Buffer buffer = step.accessed(block, read_buffer_index, AccessKind::kRead);
  return step.block_result(reindex_stage(step, block, buffer, AccessKind::kRead,
                                         fmt::format("{}_{}", buffer->name, storage_scope), storage_scope, &index_map));
}

}  // namespace relaxc
