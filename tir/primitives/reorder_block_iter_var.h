#pragma once
#include <algorithm>
#include <ranges>

#include "tir/primitives/primitive.h"

namespace relaxc {

struct ReorderBlockIterVar {
  BlockRV block;
  Ints new_order;

  static constexpr PrimitiveInfo kInfo{"reorder_block_iter_var", "puts the block's axes in this order"};
  static constexpr auto fields() {
    return list(required<&ReorderBlockIterVar::block>("the block"),
                required<&ReorderBlockIterVar::new_order>("the present position of each axis"));
  }
  void apply(scheduling::Step& step) const {
    auto* found = step.block(block);
    const std::vector<IterVar> axes = found->axes();
    if (!std::ranges::is_permutation(new_order, std::views::iota(int64_t{0}, static_cast<int64_t>(axes.size()))))
      step.refuse({found}, "the new order is not a permutation of {} axes", axes.size());
    for (size_t i = 0; i < axes.size(); ++i) found->axes()[i] = axes[static_cast<size_t>(new_order[i])];
  }
};

}  // namespace relaxc
