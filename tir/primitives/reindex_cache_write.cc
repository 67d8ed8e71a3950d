#include "tir/primitives/reindex_cache_write.h"

#include "tir/edit/reindex_stage.h"

namespace relaxc {

using namespace scheduling;

BlockRV ReindexCacheWrite::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Buffer buffer = step.accessed(block, write_buffer_index, AccessKind::kWrite);
  return step.block_result(reindex_stage(step, block, buffer, AccessKind::kWrite,
                                         fmt::format("{}_{}", buffer->name, storage_scope), storage_scope, &index_map));
}

}  // namespace relaxc
