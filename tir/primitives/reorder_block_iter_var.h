#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReorderBlockIterVar {
  BlockRV block;
  Ints new_order;

  static constexpr PrimitiveInfo kInfo{"reorder_block_iter_var", "puts the block's axes in this order"};
  static constexpr auto fields() {
    return std::tuple(required<&ReorderBlockIterVar::block>("the block"),
                      required<&ReorderBlockIterVar::new_order>("the present position of each axis"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
