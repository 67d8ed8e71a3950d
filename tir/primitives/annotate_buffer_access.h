#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct AnnotateBufferAccess {
  BlockRV block;
  int64_t buffer_index;
  std::string buf_type;
  IndexMap gen_new_ranges;

  static constexpr PrimitiveInfo kInfo{
      "annotate_buffer_access",
      "sets the region of a read or write. It is not checked: one that is too small makes results wrong"};
  static constexpr auto fields() {
    return std::tuple(required<&AnnotateBufferAccess::block>("accesses the buffer"),
                      required<&AnnotateBufferAccess::buffer_index>("the position among its reads or writes"),
                      required<&AnnotateBufferAccess::buf_type>("\"read\" or \"write\""),
                      required<&AnnotateBufferAccess::gen_new_ranges>(
                          "from the block's axes, a position or (begin, end) for each dim"));
  }
  void apply(scheduling::Step& step) const;
  size_t map_rank(scheduling::Step& step) const { return step.block(block)->axes().size(); }
};

}  // namespace relaxc
