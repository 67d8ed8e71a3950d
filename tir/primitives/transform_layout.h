#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct TransformLayout {
  BlockRV block;
  BufferArg buffer;
  IndexMap index_map;
  AttrValue pad_value = {};
  bool assume_injective_transform = false;

  static constexpr PrimitiveInfo kInfo{"transform_layout",
                                       "lays a buffer out anew: every access goes through the map. The type of a param "
                                       "changes with it, so callers must pass the new layout"};
  static constexpr auto fields() {
    return list(required<&TransformLayout::block>("accesses the buffer"),
                required<&TransformLayout::buffer>("the buffer; a position counts the reads"),
                required<&TransformLayout::index_map>("from positions in the old layout to positions in the new one"),
                defaulted<&TransformLayout::pad_value>(
                    "the value of padding: a number, or a lambda from new positions; None: any value"),
                defaulted<&TransformLayout::assume_injective_transform>("trusts that the map is one to one"));
  }
  void apply(scheduling::Step& step) const;
  size_t map_rank(scheduling::Step& step) const;
};

}  // namespace relaxc
