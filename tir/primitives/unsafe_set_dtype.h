#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct UnsafeSetDtype {
  BlockRV block;
  BufferArg buffer_index;
  DType dtype;

  static constexpr std::string_view kName = "unsafe_set_dtype";
  static constexpr std::string_view kDoc =
      "keeps the values of a buffer that the block writes in another dtype, converted at each access";
  static constexpr auto fields() {
    return std::tuple(
        required("block", &UnsafeSetDtype::block, "writes the buffer"),
        required("buffer_index", &UnsafeSetDtype::buffer_index, "the buffer; a position counts the writes"),
        required("dtype", &UnsafeSetDtype::dtype, "of the elements"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
