#include "tir/primitives/set_scope.h"

#include "tir/edit/accesses.h"

namespace relaxc {

using namespace scheduling;

void SetScope::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Buffer buffer = step.accessed(block, buffer_index, AccessKind::kWrite);
  if (!allocating_block(*block->tree, buffer))
    step.refuse({block}, "'{}' is not allocated in the program, its memory is given", buffer);
  BufferType type = buffer_type(buffer);
  type.scope = storage_scope;
  Buffer to = with_buffer_type(buffer, type);
  replace_buffer(block->tree->root(), buffer, to);
  replace_definition(*block->tree, buffer, to);
}

}  // namespace relaxc
