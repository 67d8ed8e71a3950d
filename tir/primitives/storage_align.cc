#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

// A note that lowering honours (tir/lower/align_storage.cc): [[buffer, axis, factor, offset], ...].
void Schedule::storage_align(BlockRV block_rv, int64_t buffer_index, int64_t axis, int64_t factor, int64_t offset) {
  Step step(*this, PrimitiveId::k_storage_align, block_rv, buffer_index, axis, factor, offset);
  TreeNode* block = step.block(block_rv);
  Buffer buffer = step.buffer(block, static_cast<int>(buffer_index), AccessKind::kWrite);
  if (!allocating_block(*block->tree, buffer))
    step.refuse({block}, fmt::format("'{}' is not allocated in the program, its memory is given", buffer->name));
  auto rank = static_cast<int64_t>(buffer_type(buffer).shape.size());
  if (axis < -rank || axis >= rank) step.refuse({block}, fmt::format("'{}' has no dim {}", buffer->name, axis));
  if (axis < 0) axis += rank;
  if (factor <= 0) step.refuse({block}, fmt::format("factor {} is not positive", factor));
  AttrList all;
  if (const AttrValue* before = block->block->annotations.find("buffer_dim_align")) {
    for (const AttrValue& item : *before->as<AttrList>()) {
      const AttrList& row = *item.as<AttrList>();
      if (!(row[0] == AttrValue(buffer_index) && row[1] == AttrValue(axis))) all.push_back(item);
    }
  }
  all.push_back(AttrList{buffer_index, axis, factor, offset});
  block->block->annotations.set("buffer_dim_align", all);
  step.done();
}

}  // namespace relaxc
