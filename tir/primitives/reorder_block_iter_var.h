#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReorderBlockIterVar {
  BlockRV block;
  Ints new_order;

  static constexpr std::string_view kName = "reorder_block_iter_var";
  static constexpr std::string_view kDoc = "puts the block's axes in this order";
  static constexpr auto fields() {
    return std::tuple(required("block", &ReorderBlockIterVar::block, "the block"),
                      required("new_order", &ReorderBlockIterVar::new_order, "the present position of each axis"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
