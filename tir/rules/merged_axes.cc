// The rows and columns of an image that a sum reads point by point, such as a convolution with a window of one element,
// as one axis. Rows of 56 pixels are three and a half vectors; as one axis all 56 rows are 196 whole ones. So it is
// with rows of unknown length, where sums are long enough that storing them once more does not count:
//
//   for y in range(56): for x in range(56): out[c, y, x] += w[c, k] * image[k, y, x]
//   for yx in range(3136): sums[c, yx] += w[c, k] * image[k, yx // 56, yx % 56], then out[c, yx // 56, yx % 56] = ...
//
// Quotients and remainders cancel in the places of elements (flatten_buffers).
#include <algorithm>

#include "tir/rules/blocks.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/windows.h"

namespace relaxc {

// Returns the number of elements in a sum, or 0 where it is symbolic.
static int64_t depth_of(const Nest& nest) {
  int64_t depth = 1;
  for (const IterVar& axis : std::span(nest.axes).subspan(nest.num_spatial))
    depth *= as_int(axis.domain.extent).value_or(0);
  return depth;
}

// Returns whether the sum reads neighbours along the last axis, whose rows do not fill vectors.
static bool has_partial_rows(const Nest& nest, const std::vector<Ref<BufferLoad>>& loads, int lanes,
                             const Analyzer& facts) {
  if (nest.num_spatial < 2 || lanes == 1 || axes_of_window(nest, loads) > 0) return false;
  const IterVar& last = nest.axes[nest.num_spatial - 1];
  const auto rows = as_int(nest.axes[nest.num_spatial - 2].domain.extent), columns = as_int(last.domain.extent);
  if (rows.value_or(2) < 2 || columns.value_or(2) < 2 || (columns && *columns % lanes == 0)) return false;
  if ((!rows || !columns) && depth_of(nest) < cost_model::kShortSum) return false;
  return std::ranges::any_of(loads, [&](const Ref<BufferLoad>& load) {
    auto stride = access_stride(load->buffer, load->indices, last.var, facts);
    return stride && is_int(*stride, 1);
  });
}

void merge_last_axes(Schedule& sch, const BlockRV& rv, std::optional<BlockRV>& epilogue, const Target& target) {
  const Ref<Block> block = cast<Block>(sch.get(rv));
  const Analyzer& facts = sch.tree("").facts;
  const Nest nest = nest_of(block);
  const std::optional<Reduction> reduction = match_reduction(*block);
  if (!reduction || !has_partial_rows(nest, loads_of(reduction->value), lanes_of(*block, target), facts)) return;
  const size_t rows = nest.num_spatial - 2, columns = nest.num_spatial - 1;
  const bool is_ordered = std::ranges::equal(nest.axes, block->iter_vars, same_node, &IterVar::var, &IterVar::var);
  if (!is_ordered || !takes_as_one(*block, rows, facts)) return;
  if (epilogue && !takes_as_one(*cast<Block>(sch.get(*epilogue)), rows, facts)) return;
  if (!epilogue) epilogue = sch.apply(CacheWrite{rv, 0, "local"});
  auto merged = [&](const Exprs& at) {
    Exprs result = at;
    result[rows] = at[rows] * nest.axes[columns].domain.extent + at[columns];
    result.erase(result.begin() + static_cast<long>(columns));
    return result;
  };
  auto refusal = sch.try_steps([&] {
    sch.apply(TransformBlockLayout{rv, IndexMap(nest.axes.size(), merged)});
    sch.apply(TransformBlockLayout{*epilogue, IndexMap(nest.num_spatial, merged)});
    sch.apply(TransformLayout{rv, {"write", 0}, IndexMap(nest.num_spatial, merged)});
  });
  if (refusal) epilogue.reset();  // what follows is then a block of its own
}

}  // namespace relaxc
