#pragma once
#include "tir/analysis/annotations.h"
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
    return list(required<&StorageAlign::block>("writes the buffer"),
                required<&StorageAlign::buffer_index>("the position among its writes"),
                required<&StorageAlign::axis>("the dim; negative ones count from the last"),
                required<&StorageAlign::factor>("in elements"), required<&StorageAlign::offset>("in elements"));
  }
  // Sets an annotation that lowering obeys (tir/lower/align_storage.cc): [[buffer, axis, factor, offset], ...].
  void apply(scheduling::Step& step) const {
    auto* block = step.block(this->block);
    Buffer buffer = step.allocated(block, static_cast<int>(buffer_index));
    auto rank = static_cast<int64_t>(buffer_type(buffer).shape.size());
    if (axis < -rank || axis >= rank) step.refuse({block}, "'{}' has no dim {}", buffer, axis);
    int64_t dim = axis < 0 ? axis + rank : axis;
    if (factor <= 0) step.refuse({block}, "factor {} is not positive", factor);
    AttrList all;
    if (const AttrValue* before = block->block->annotations.find(annotation<"buffer_dim_align">())) {
      for (const AttrValue& item : *before->as<AttrList>()) {
        const AttrList& row = *item.as<AttrList>();
        if (!(row[0] == AttrValue(buffer_index) && row[1] == AttrValue(dim))) all.push_back(item);
      }
    }
    all.push_back(AttrList{buffer_index, dim, factor, offset});
    block->block->annotations.set(annotation<"buffer_dim_align">(), all);
  }
};

}  // namespace relaxc
