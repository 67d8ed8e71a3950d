#include "tir/rules/winograd.h"

#include <algorithm>
#include "tir/schedule/schedule.h"

namespace relaxc {

namespace {

constexpr int64_t kPatchesOfGroup = 14;      // at least: weights are read from memory once for each group
constexpr int64_t kMostPatchesOfGroup = 64;  // in cache, where threads share a group
constexpr int64_t kGroupsForAllThreads = 8;

std::optional<int64_t> extent_of(const Schedule& sch, const LoopRV& loop) {
  return as_int(cast<For>(sch.get(loop))->extent);
}

struct Groups {
  int64_t rows = 1;  // of patches, in a group
  bool parallel = false;
};

// Groups of whole rows that divide all rows, or those of one image where the batch is not known.
Groups choose_groups(std::optional<int64_t> images, std::optional<int64_t> rows_of_image,
                     std::optional<int64_t> across) {
  if (!rows_of_image || !across) return {};
  int64_t rows = images.value_or(1) * *rows_of_image;
  Groups result;
  while (result.rows < rows && (rows % result.rows != 0 || result.rows * *across < kPatchesOfGroup)) ++result.rows;
  if (result.rows * *across > 4 * kMostPatchesOfGroup) result.rows = 1;
  result.parallel = images && rows / result.rows >= kGroupsForAllThreads;
  for (int64_t more = result.rows; !result.parallel && more * *across <= kMostPatchesOfGroup; ++more) {
    if (rows % more == 0) result.rows = more;
  }
  return result;
}

// Long rows of patches count as several of equal length; 1: the row is not long, or nothing suitable divides it.
int64_t parts_of_row(int64_t across) {
  if (across <= kMostPatchesOfGroup) return 1;
  for (int64_t length = kMostPatchesOfGroup; length >= kPatchesOfGroup; --length) {
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
                       const Target& target) {
  Ref<Block> block = cast<Block>(sch.get(products));
  const Buffer& weight = block->reads.back().buffer;
  int64_t vectors = as_int(buffer_type(weight).shape.back()).value_or(0) / lanes;
  sch.compute_at(products, group, true);
  Loops loops = sch.get_loops(products);
  loops.erase(loops.begin(), loops.end() - 5);  // 6, 6, patches, filters, channels
  // Accumulators fill the registers but for a vector of weights each and one of data.
  int64_t fit = (target.num_vector_registers - vectors - 2) / vectors;
  auto patches = extent_of(sch, loops[2]);
  Loops tiles = sch.split(loops[2], {std::nullopt, even_tile(patches, fit)});
  Loops panels = sch.split(loops[3], {std::nullopt, vectors, lanes});
  int64_t step = even_tile(patches, fit) * vectors > 26 ? 2 : 4;  // with all registers taken, LLVM spills at 4
  Loops reduce = sch.split(loops[4], {std::nullopt, step});
  sch.reorder({loops[0], loops[1], panels[0], tiles[0], reduce[0], reduce[1], tiles[1], panels[1], panels[2]});
  sch.annotate(panels[0], "prefetch", AttrList{weight->name});
  if (!patches) sch.annotate(tiles[0], "exact_tails", true);

  BlockRV tile = sch.cache_write(products, 0, "local");
  sch.reverse_compute_at(tile, tiles[0], true);
  Loops own = sch.get_loops(tile);
  Loops columns = sch.split(own.back(), {std::nullopt, lanes});
  for (const LoopRV& loop : {own[own.size() - 2], columns[0], reduce[1], tiles[1], panels[1]}) sch.unroll(loop);
  for (const LoopRV& loop : {columns[1], panels[2]}) sch.vectorize(loop);
  sch.decompose_reduction(products, reduce[0]);
  LoopRV each = sch.fuse({loops[0], loops[1]});
  if (parallel) sch.parallel(each);
}

void schedule_patches(Schedule& sch, const LoopRV& group, bool parallel, std::optional<int64_t> across, int64_t lanes) {
  BlockRV patches = sch.get_block("winograd_patches"), columns = sch.get_block("winograd_columns");
  sch.compute_at(patches, group, true);
  Loops loops = sch.get_loops(patches);
  loops.erase(loops.begin(), loops.end() - 4);  // 6, 6, patches, channels
  // Two blocks of channels are neighbouring cache lines of patches.
  int64_t together = extent_of(sch, loops[3]).value_or(1) / lanes % 2 == 0 ? 2 : 1;
  Loops channels = sch.split(loops[3], {std::nullopt, together, lanes});
  Loops outside = {channels[0]};
  LoopRV x = loops[2];
  if (auto count = extent_of(sch, x); count && across && *count > *across) {
    Loops rows = sch.split(x, {std::nullopt, *across});
    outside.insert(outside.begin(), rows[0]);
    x = rows[1];
  }
  Loops order = outside;
  order.insert(order.end(), {x, channels[1], loops[0], loops[1], channels[2]});
  sch.reorder(order);
  sch.unroll(loops[0]);
  sch.unroll(loops[1]);
  sch.vectorize(channels[2]);

  sch.compute_at(columns, channels[0], true);
  sch.set_scope(columns, 0, "local");
  Loops inner = sch.get_loops(columns);
  inner.erase(inner.begin(), inner.end() - 4);  // 6, row, x, channels
  Loops parts = sch.split(inner[3], {std::nullopt, lanes});
  sch.reorder({inner[1], parts[0], inner[2], inner[0], parts[1]});
  sch.unroll(inner[0]);
  sch.vectorize(parts[1]);
  BlockRV pixels = sch.get_block("winograd_pixels");
  sch.compute_at(pixels, inner[2], true);
  sch.set_scope(pixels, 0, "local");
  inner = sch.get_loops(pixels);
  sch.unroll(inner[inner.size() - 4]);
  sch.vectorize(inner.back());
  LoopRV all = outside.size() > 1 ? sch.fuse(outside) : outside[0];
  if (parallel) sch.parallel(all);
}

// The loops of a block behind the result in the result's order: image, filter block, y, x, lane. It may store elements
// in another order; nullopt: other elements or several.
std::optional<Loops> loops_like_result(Schedule& sch, const BlockRV& result, const BlockRV& behind) {
  Ref<Block> block = cast<Block>(sch.get(result)), last = cast<Block>(sch.get(behind));
  Loops loops = sch.get_loops(behind);
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

void schedule_winograd(Schedule& sch, const Target& target) {
  BlockRV products = sch.get_block("nn.conv2d_winograd"), result = sch.get_block("winograd_result");
  Blocks behind = sch.merge_epilogue(result);
  Loops loops = sch.get_loops(result);
  auto loops_behind = behind.size() == 1 ? loops_like_result(sch, result, behind[0]) : std::nullopt;
  if (loops_behind) {
    loops = *loops_behind;
    sch.compute_inline(result);
    behind.clear();
  }
  for (const BlockRV& apart : behind) {
    Loops own = sch.get_loops(apart);
    if (own.size() > 1) own.pop_back();
    sch.parallel(own.size() > 1 ? sch.fuse(own) : own[0]);
  }
  Loops y = sch.split(loops[2], {std::nullopt, 4}), x = sch.split(loops[3], {std::nullopt, 4});
  int64_t lanes = extent_of(sch, loops[4]).value_or(1);
  auto images = extent_of(sch, loops[0]);
  auto rows_of_image = extent_of(sch, y[0]), across = extent_of(sch, x[0]);
  sch.reorder({loops[0], y[0], x[0], loops[1], y[1], x[1], loops[4]});
  LoopRV group = rows_of_image ? sch.fuse({loops[0], y[0]}) : y[0], patch = x[0];
  if (int64_t parts = rows_of_image && across ? parts_of_row(*across) : 1; parts > 1) {
    Loops part = sch.split(patch, {parts, std::nullopt});
    group = sch.fuse({group, part[0]});
    patch = part[1];
    across = *across / parts;
    rows_of_image = *rows_of_image * parts;
  }
  Groups groups = choose_groups(images, rows_of_image, across);
  if (groups.rows > 1) {
    Loops rows = sch.split(group, {std::nullopt, groups.rows});
    group = rows[0];
    patch = sch.fuse({rows[1], patch});
  }
  sch.unroll(y[1]);
  sch.unroll(x[1]);
  sch.vectorize(loops[4]);
  BlockRV back = sch.get_block("winograd_rows");
  sch.compute_at(back, loops[1], true);
  sch.set_scope(back, 0, "local");
  Loops inner = sch.get_loops(back);
  inner.erase(inner.begin(), inner.end() - 4);  // 4, 6, patch, lanes
  sch.reorder({inner[1], inner[0]});
  sch.unroll(inner[0]);
  sch.unroll(inner[1]);
  sch.vectorize(inner[3]);
  sch.parallel(groups.parallel ? group : patch);
  sch.annotate(group, "keep_whole", true);

  schedule_products(sch, products, group, !groups.parallel, lanes, target);
  schedule_patches(sch, group, !groups.parallel, across, lanes);
}

}  // namespace

ScheduleRule winograd_rule(const Target& target) {
  return {"winograd", "", "nn.conv2d_winograd", {}, [target](Schedule& sch) { schedule_winograd(sch, target); }};
}

}  // namespace relaxc
