#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct WriteAt {
  LoopRV loop;
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope;

  static constexpr std::string_view kName = "write_at";
  static constexpr std::string_view kDoc =
      "lets the block write memory of its own, which is copied at the end of each iteration. Gives the copying block";
  static constexpr auto fields() {
    return std::tuple(
        required("loop", &WriteAt::loop, "around the block"), required("block", &WriteAt::block, "writes the buffer"),
        required("write_buffer_index", &WriteAt::write_buffer_index, "the buffer; a position counts the writes"),
        required("storage_scope", &WriteAt::storage_scope, "of the copy: \"global\", \"local\", \"shared\""));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
