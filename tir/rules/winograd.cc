#include "tir/rules/winograd.h"

#include "tir/primitives/annotate.h"
#include "tir/primitives/cache_write.h"
#include "tir/primitives/compute_at.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/merge_epilogue.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/reverse_compute_at.h"
#include "tir/primitives/set_scope.h"
#include "tir/primitives/split.h"
#include "tir/primitives/unroll.h"
#include "tir/primitives/vectorize.h"

#include <algorithm>
#include <bit>

#include "tir/schedule/schedule.h"

namespace relaxc {

namespace {

// Patches in a group. At least a register tile of them: weights are read from memory once for each group. At most what
// the L2 cache holds, rounded up to a power of two, where threads share a group: of 64 channels and 64 filters the 36
// points of patch and product.
struct GroupBounds {
  int64_t least, most, enough_groups;
};
GroupBounds group_bounds(const Target& target) {
  constexpr int64_t kPatchBytes = 36 * 4 * (64 + 64);
  auto fit = static_cast<uint64_t>(std::max<int64_t>(1, target.l2.bytes / kPatchBytes));
  int64_t least = patches_in_tile(2, target);
  return {least, std::max(least, static_cast<int64_t>(std::bit_ceil(fit))), std::max<int64_t>(target.cores, 16) / 2};
}

std::optional<int64_t> extent_of(const Schedule& sch, const LoopRV& loop) {
  return as_int(cast<For>(sch.get(loop))->extent);
}

struct Groups {
  int64_t rows = 1;  // of patches, in a group
  bool parallel = false;
};

// Groups of whole rows that divide all rows, or those of one image where the batch is not known.
Groups choose_groups(std::optional<int64_t> images, std::optional<int64_t> rows_of_image, std::optional<int64_t> across,
                     const GroupBounds& bounds) {
  if (!rows_of_image || !across) return {};
  int64_t rows = images.value_or(1) * *rows_of_image;
  Groups result;
  while (result.rows < rows && (rows % result.rows != 0 || result.rows * *across < bounds.least)) ++result.rows;
  if (result.rows * *across > 4 * bounds.most) result.rows = 1;
  result.parallel = images && rows / result.rows >= bounds.enough_groups;
  for (int64_t more = result.rows; !result.parallel && more * *across <= bounds.most; ++more) {
    if (rows % more == 0) result.rows = more;
  }
  return result;
}

// Long rows of patches count as several of equal length; 1: the row is not long, or nothing suitable divides it.
int64_t parts_of_row(int64_t across, const GroupBounds& bounds) {
  if (across <= bounds.most) return 1;
  for (int64_t length = bounds.most; length >= bounds.least; --length) {
    if (across % length == 0) return across / length;
  }
  return 1;
}

// The extent in equal tiles of at most `fit`.
int64_t even_tile(std::optional<int64_t> extent, int64_t fit) {
  if (!extent) return fit;
  int64_t tiles = (*extent + fit - 1) / fit;
  return (*extent + tiles - 1) / tiles;
}

void schedule_products(Schedule& sch, const BlockRV& products, const LoopRV& group, bool parallel, int64_t lanes,
                       const Target& target, Decisions& decisions) {
  Ref<Block> block = cast<Block>(sch.get(products));
  const Buffer& weight = block->reads.back().buffer;
  int64_t vectors = as_int(buffer_type(weight).shape.back()).value_or(0) / lanes;
  sch.apply(ComputeAt{products, group, true});
  Loops loops = sch.apply(GetLoops{products});
  loops.erase(loops.begin(), loops.end() - 5);  // 6, 6, patches, filters, channels
  auto patches = extent_of(sch, loops[2]);
  int64_t fit = patches_in_tile(vectors, target);
  int64_t rows = decisions.number("patches", numbers_between(1, fit), even_tile(patches, fit));
  Loops tiles = sch.apply(Split{loops[2], {std::nullopt, rows}});
  Loops panels = sch.apply(Split{loops[3], {std::nullopt, vectors, lanes}});
  // With all registers taken, LLVM spills at 4.
  int64_t step = decisions.number("step", {1, 2, 4, 8}, rows * vectors > target.num_vector_registers - 6 ? 2 : 4);
  Loops reduce = sch.apply(Split{loops[4], {std::nullopt, step}});
  sch.apply(Reorder{{loops[0], loops[1], panels[0], tiles[0], reduce[0], reduce[1], tiles[1], panels[1], panels[2]}});
  sch.apply(Annotate{panels[0], "prefetch", AttrList{weight->name}});
  if (!patches) sch.apply(Annotate{tiles[0], "exact_tails", true});

  BlockRV tile = sch.apply(CacheWrite{products, 0, "local"});
  sch.apply(ReverseComputeAt{tile, tiles[0], true});
  Loops own = sch.apply(GetLoops{tile});
  Loops columns = sch.apply(Split{own.back(), {std::nullopt, lanes}});
  for (const LoopRV& loop : {own[own.size() - 2], columns[0], reduce[1], tiles[1], panels[1]}) sch.apply(Unroll{loop});
  for (const LoopRV& loop : {columns[1], panels[2]}) sch.apply(Vectorize{loop});
  sch.apply(DecomposeReduction{products, reduce[0]});
  LoopRV each = sch.apply(Fuse{{loops[0], loops[1]}});
  if (parallel) sch.apply(Parallel{each});
}

void schedule_patches(Schedule& sch, const LoopRV& group, bool parallel, std::optional<int64_t> across, int64_t lanes) {
  BlockRV patches = sch.apply(GetBlock{"winograd_patches"}), columns = sch.apply(GetBlock{"winograd_columns"});
  sch.apply(ComputeAt{patches, group, true});
  Loops loops = sch.apply(GetLoops{patches});
  loops.erase(loops.begin(), loops.end() - 4);  // 6, 6, patches, channels
  // Two blocks of channels are neighbouring cache lines of patches.
  int64_t together = extent_of(sch, loops[3]).value_or(1) / lanes % 2 == 0 ? 2 : 1;
  Loops channels = sch.apply(Split{loops[3], {std::nullopt, together, lanes}});
  Loops outside = {channels[0]};
  LoopRV x = loops[2];
  if (auto count = extent_of(sch, x); count && across && *count > *across) {
    Loops rows = sch.apply(Split{x, {std::nullopt, *across}});
    outside.insert(outside.begin(), rows[0]);
    x = rows[1];
  }
  Loops order = outside;
  order.insert(order.end(), {x, channels[1], loops[0], loops[1], channels[2]});
  sch.apply(Reorder{order});
  sch.apply(Unroll{loops[0]});
  sch.apply(Unroll{loops[1]});
  sch.apply(Vectorize{channels[2]});

  sch.apply(ComputeAt{columns, channels[0], true});
  sch.apply(SetScope{columns, 0, "local"});
  Loops inner = sch.apply(GetLoops{columns});
  inner.erase(inner.begin(), inner.end() - 4);  // 6, row, x, channels
  Loops parts = sch.apply(Split{inner[3], {std::nullopt, lanes}});
  sch.apply(Reorder{{inner[1], parts[0], inner[2], inner[0], parts[1]}});
  sch.apply(Unroll{inner[0]});
  sch.apply(Vectorize{parts[1]});
  BlockRV pixels = sch.apply(GetBlock{"winograd_pixels"});
  sch.apply(ComputeAt{pixels, inner[2], true});
  sch.apply(SetScope{pixels, 0, "local"});
  inner = sch.apply(GetLoops{pixels});
  sch.apply(Unroll{inner[inner.size() - 4]});
  sch.apply(Vectorize{inner.back()});
  LoopRV all = outside.size() > 1 ? sch.apply(Fuse{outside}) : outside[0];
  if (parallel) sch.apply(Parallel{all});
}

// The loops of a block behind the result in the result's order: image, filter block, y, x, lane. It may store elements
// in another order; nullopt: other elements or several.
std::optional<Loops> loops_like_result(Schedule& sch, const BlockRV& result, const BlockRV& behind) {
  Ref<Block> block = cast<Block>(sch.get(result)), last = cast<Block>(sch.get(behind));
  Loops loops = sch.apply(GetLoops{behind});
  constexpr size_t kRank = 5, kNone = kRank;
  if (loops.size() != kRank || last->iter_vars.size() != kRank) return std::nullopt;
  std::vector<size_t> order(kRank, kNone);
  bool fits = true;
  walk(last->body, [&](const BufferLoad& load) {
    if (!same_node(load.buffer, block->writes[0].buffer)) return;
    for (size_t d = 0; d < kRank; ++d) {
      auto axis = std::find_if(last->iter_vars.begin(), last->iter_vars.end(),
                               [&](const IterVar& v) { return same_node(v.var, load.indices[d]); });
      size_t found = static_cast<size_t>(axis - last->iter_vars.begin());
      fits = fits && (order[d] == kNone || order[d] == found) && (found != kNone || load.indices[d].is<IntImm>());
      order[d] = found;
    }
  });
  if (!fits) return std::nullopt;
  Loops ordered;
  for (size_t& d : order) {
    // A constant index is of a dim of 1.
    for (size_t a = 0; a < kRank && d == kNone; ++a) {
      if (std::find(order.begin(), order.end(), a) == order.end() && is_int(last->iter_vars[a].domain.extent, 1)) d = a;
    }
    if (d == kNone) return std::nullopt;
    ordered.push_back(loops[d]);
  }
  return ordered;
}

void schedule_winograd(Schedule& sch, const Target& target, Decisions& decisions) {
  BlockRV products = sch.apply(GetBlock{"nn.conv2d_winograd"}), result = sch.apply(GetBlock{"winograd_result"});
  Blocks behind = sch.apply(MergeEpilogue{result});
  Loops loops = sch.apply(GetLoops{result});
  auto loops_behind = behind.size() == 1 ? loops_like_result(sch, result, behind[0]) : std::nullopt;
  if (loops_behind) {
    loops = *loops_behind;
    sch.apply(ComputeInline{result});
    behind.clear();
  }
  for (const BlockRV& apart : behind) {
    Loops own = sch.apply(GetLoops{apart});
    if (own.size() > 1) own.pop_back();
    sch.apply(Parallel{own.size() > 1 ? sch.apply(Fuse{own}) : own[0]});
  }
  Loops y = sch.apply(Split{loops[2], {std::nullopt, 4}}), x = sch.apply(Split{loops[3], {std::nullopt, 4}});
  int64_t lanes = extent_of(sch, loops[4]).value_or(1);
  auto images = extent_of(sch, loops[0]);
  auto rows_of_image = extent_of(sch, y[0]), across = extent_of(sch, x[0]);
  sch.apply(Reorder{{loops[0], y[0], x[0], loops[1], y[1], x[1], loops[4]}});
  GroupBounds bounds = group_bounds(target);
  LoopRV group = rows_of_image ? sch.apply(Fuse{{loops[0], y[0]}}) : y[0], patch = x[0];
  if (int64_t parts = rows_of_image && across ? parts_of_row(*across, bounds) : 1; parts > 1) {
    Loops part = sch.apply(Split{patch, {parts, std::nullopt}});
    group = sch.apply(Fuse{{group, part[0]}});
    patch = part[1];
    across = *across / parts;
    rows_of_image = *rows_of_image * parts;
  }
  Groups groups = choose_groups(images, rows_of_image, across, bounds);
  if (rows_of_image && across) {
    int64_t rows = images.value_or(1) * *rows_of_image;
    groups.rows = decisions.number("group_rows", divisors_between(1, rows, rows), groups.rows);
  }
  groups.parallel = decisions.word("shared", {"groups", "inside"}, groups.parallel ? "groups" : "inside") == "groups";
  if (groups.rows > 1) {
    Loops rows = sch.apply(Split{group, {std::nullopt, groups.rows}});
    group = rows[0];
    patch = sch.apply(Fuse{{rows[1], patch}});
  }
  sch.apply(Unroll{y[1]});
  sch.apply(Unroll{x[1]});
  sch.apply(Vectorize{loops[4]});
  BlockRV back = sch.apply(GetBlock{"winograd_rows"});
  sch.apply(ComputeAt{back, loops[1], true});
  sch.apply(SetScope{back, 0, "local"});
  Loops inner = sch.apply(GetLoops{back});
  inner.erase(inner.begin(), inner.end() - 4);  // 4, 6, patch, lanes
  sch.apply(Reorder{{inner[1], inner[0]}});
  sch.apply(Unroll{inner[0]});
  sch.apply(Unroll{inner[1]});
  sch.apply(Vectorize{inner[3]});
  sch.apply(Parallel{groups.parallel ? group : patch});
  sch.apply(Annotate{group, "keep_whole", true});

  schedule_products(sch, products, group, !groups.parallel, lanes, target, decisions);
  schedule_patches(sch, group, !groups.parallel, across, lanes);
}

}  // namespace

// Accumulators fill the registers but for a vector of weights each and two of data.
int64_t patches_in_tile(int64_t vectors, const Target& target) {
  return std::max<int64_t>(1, (target.num_vector_registers - vectors - 2) / vectors);
}

ScheduleRule winograd_rule() {
  return {
      .name = "winograd",
      .op = "nn.conv2d_winograd",
      .apply = schedule_winograd,
      .fits = [](const PrimFuncRef& program, const Target&) -> std::optional<std::string> {
        if (find_anchor(program, "nn.conv2d_winograd")) return std::nullopt;
        return "it has no block of 'nn.conv2d_winograd'";
      },
      .doc = "a 3x3 convolution in the form that the decision 'algorithm' gives it",
      .decisions = {{"group_rows", "rows of patches whose products stay in cache",
                     "a register tile of patches at least; where threads share a group, what L2 holds"},
                    {"shared", "threads share \"groups\" or what is \"inside\" of one",
                     "\"groups\" where there are enough for cores / 2"},
                    {"patches", "patches in a register tile",
                     "(vector registers - vectors of filters - 2) / vectors of filters, in equal tiles"},
                    {"step", "iterations over channels unrolled", "2 where 6 or fewer registers are left, else 4"}}};
}

}  // namespace relaxc
