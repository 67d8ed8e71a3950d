#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Reindex {
  BlockRV block;
  BufferArg buffer;

  static constexpr std::string_view kName = "reindex";
  static constexpr std::string_view kDoc =
      "copies a buffer that the block reads or writes, laid out by its axes. Gives the copying block";
  static constexpr auto fields() {
    return std::tuple(required("block", &Reindex::block, "accesses the buffer at one place"),
                      required("buffer", &Reindex::buffer, "the buffer; a position counts the reads"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
