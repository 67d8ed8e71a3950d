#include "tir/primitives/unsafe_set_dtype.h"

#include "tir/edit/accesses.h"

namespace relaxc {

using namespace scheduling;

// Values are converted at each store and load. The name warns that a narrower dtype cannot hold all of them.
void UnsafeSetDtype::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Tree& tree = *block->tree;
  if (dtype.lanes != 1 || dtype.is_handle())
    step.refuse({block}, "a buffer's elements are numbers, not {}", to_string(dtype));
  Buffer buffer = step.allocated(block, buffer_index);
  step.require(other_uses(tree.root(), buffer), block);
  BufferType type = buffer_type(buffer);
  DType old = type.dtype;
  type.dtype = dtype;
  Buffer to = with_buffer_type(buffer, type);
  rewrite_accesses(tree.root(), buffer,
                   {[&](const BufferLoad& e) { return cast_to(load(to, e.indices), old); },
                    [&](const BufferStore& s) { return store(to, cast_to(s.value, dtype), s.indices); }});
  replace_definition(tree, buffer, to);
}

}  // namespace relaxc
