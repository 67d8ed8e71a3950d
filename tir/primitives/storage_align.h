#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct StorageAlign {
  BlockRV block;
  int64_t buffer_index;
  int64_t axis;
  int64_t factor;
  int64_t offset;

  static constexpr PrimitiveInfo kInfo{
      "storage_align",
      "makes the stride of a dim of a buffer that the block writes equal to the offset modulo the factor"};
  static constexpr auto fields() {
    return std::tuple(required<&StorageAlign::block>("writes the buffer"),
                      required<&StorageAlign::buffer_index>("the position among its writes"),
                      required<&StorageAlign::axis>("the dim; negative ones count from the last"),
                      required<&StorageAlign::factor>("in elements"), required<&StorageAlign::offset>("in elements"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
