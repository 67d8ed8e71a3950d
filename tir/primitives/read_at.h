#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReadAt {
  LoopRV loop;
  BlockRV block;
  BufferArg read_buffer_index;
  StorageScope storage_scope;

  static constexpr std::string_view kName = "read_at";
  static constexpr std::string_view kDoc =
      "copies, in each iteration, the part of a buffer that the block reads in it. Gives the copying block";
  static constexpr auto fields() {
    return std::tuple(
        required("loop", &ReadAt::loop, "around the block"), required("block", &ReadAt::block, "reads the buffer"),
        required("read_buffer_index", &ReadAt::read_buffer_index, "the buffer; a position counts the reads"),
        required("storage_scope", &ReadAt::storage_scope, "of the copy: \"global\", \"local\", \"shared\""));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
