#include "tir/primitives/set_scope.h"

#include "tir/edit/accesses.h"

namespace relaxc {

using namespace scheduling;

void SetScope::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
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
}

}  // namespace relaxc
