#include "tir/edit/accesses.h"
#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

void Schedule::set_scope(BlockRV block_rv, BufferArg buffer_index, std::string storage_scope) {
  Step step(*this, PrimitiveId::k_set_scope, block_rv, buffer_index, storage_scope);
  TreeNode* block = step.block(block_rv);
  Buffer buffer = step.buffer(block, buffer_index, AccessKind::kWrite);
  if (!write_of(block, buffer))
    step.refuse({block}, fmt::format("block '{}' does not write '{}'", block->block->name, buffer->name));
  if (!allocating_block(*block->tree, buffer))
    step.refuse({block}, fmt::format("'{}' is not allocated in the program, its memory is given", buffer->name));
  BufferType type = buffer_type(buffer);
  type.scope = storage_scope;
  Buffer to = with_buffer_type(buffer, type);
  replace_buffer(block->tree->root(), buffer, to);
  replace_definition(*block->tree, buffer, to);
  step.done();
}

}  // namespace relaxc
