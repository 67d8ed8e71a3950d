#pragma once
#include "tir/edit/accesses.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct UnsafeSetDtype {
  BlockRV block;
  BufferArg buffer_index;
  DType dtype;

  static constexpr PrimitiveInfo kInfo{
      "unsafe_set_dtype",
      "keeps the values of a buffer that the block writes in another dtype, converted at each access"};
  static constexpr auto fields() {
    return list(required<&UnsafeSetDtype::block>("writes the buffer"),
                required<&UnsafeSetDtype::buffer_index>("the buffer; a position counts the writes"),
                required<&UnsafeSetDtype::dtype>("of the elements"));
  }
  // Values are converted at each store and load. The name warns that a narrower dtype cannot hold all of them.
  void apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    auto& tree = *block->tree;
    if (dtype.lanes != 1 || dtype.is_handle())
      step.refuse({block}, "a buffer's elements are numbers, not {}", to_string(dtype));
    Buffer buffer = step.allocated(block, buffer_index);
    step.require(other_uses(tree.root(), buffer), block);
    BufferType type = buffer_type(buffer);
    DType old = type.dtype;
    type.dtype = dtype;
    Buffer to = scheduling::with_buffer_type(buffer, type);
    rewrite_accesses(tree.root(), buffer,
                     {[&](const BufferLoad& e) { return cast_to(load(to, e.indices), old); },
                      [&](const BufferStore& s) { return store(to, cast_to(s.value, dtype), s.indices); }});
    replace_definition(tree, buffer, to);
  }
};

}  // namespace relaxc
