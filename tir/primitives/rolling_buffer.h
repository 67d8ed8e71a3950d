#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct RollingBuffer {
  BlockRV block;
  BufferArg write_buffer_index;

  static constexpr PrimitiveInfo kInfo{"rolling_buffer",
                                       "keeps the overlapping windows that a block makes for its readers' loop in a "
                                       "ring buffer, so that only new rows are made"};
  static constexpr auto fields() {
    return list(required<&RollingBuffer::block>("the producer, at the loop of its readers"),
                required<&RollingBuffer::write_buffer_index>("the buffer; a position counts the writes"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
