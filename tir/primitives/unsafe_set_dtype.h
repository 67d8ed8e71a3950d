#pragma once
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
    return std::tuple(required<&UnsafeSetDtype::block>("writes the buffer"),
                      required<&UnsafeSetDtype::buffer_index>("the buffer; a position counts the writes"),
                      required<&UnsafeSetDtype::dtype>("of the elements"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
