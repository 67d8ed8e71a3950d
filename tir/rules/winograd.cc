// The schedule of Winograd convolutions (passes/winograd.h) as primitives. Rows of patches form groups, whose
// transformed patches and products stay in the L2 cache:
//
//   for group:
//     for row, channel block: for x: pixels, columns (in registers);  for patch: patches    vectors along channels
//     for each of 36, panel of filters, tile of patches:              register tile, the next panel fetched ahead
//     for patch, filter block: rows (in registers), result            with the elementwise operators after it
//
// Any extents are allowed. Groups are whole, so that only widths and heights that are not multiples of 4 need
// conditions. If there are many groups, they are distributed over threads, otherwise the loops inside of a group are.
#include <algorithm>
#include <bit>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

// F(4x4, 3x3): a patch gives 4 x 4 pixels of the result and is transformed to 6 x 6 points.
constexpr int64_t kPixels = 4, kPoints = 6 * 6;

// Bounds the patches in a group. There is at least a register tile of them, as weights are read from memory once for
// each group. Where threads share a group, it holds at most the patches whose points and products fit in the L2 cache,
// for a typical number of channels and filters, rounded up to a power of two.
struct GroupBounds {
  int64_t least, most, enough_groups;
};
GroupBounds group_bounds(const Target& target) {
  int64_t patch_bytes = kPoints * kFloat32.bytes() * 2 * cost_model::kTypicalChannels;
  auto fit = static_cast<uint64_t>(std::max<int64_t>(1, target.l2_of_core() / patch_bytes));
  int64_t least = rows_in_registers(2, cost_model::kElementRegisters, target);
  return {least, std::max(least, static_cast<int64_t>(std::bit_ceil(fit))),
          assumed_cores(target) * cost_model::kGroupsPerTwoCores / 2};
}

struct Groups {
  int64_t rows = 1;  // of patches, in a group
  bool parallel = false;
};

// Returns groups of equally many whole rows, of all images, or of one image where the batch is not known.
Groups choose_groups(std::optional<int64_t> images, std::optional<int64_t> rows_of_image, std::optional<int64_t> across,
                     const GroupBounds& bounds) {
  if (!rows_of_image || !across) return {};
  int64_t rows = images.value_or(1) * *rows_of_image;
  Groups result;
  while (result.rows < rows && (rows % result.rows != 0 || result.rows * *across < bounds.least)) ++result.rows;
  if (result.rows * *across > cost_model::kGroupSlack * bounds.most) result.rows = 1;
  result.parallel = images && rows / result.rows >= bounds.enough_groups;
  for (int64_t more = result.rows; !result.parallel && more * *across <= bounds.most; ++more) {
    if (rows % more == 0) result.rows = more;
  }
  return result;
}

// Returns the number of equal parts into which a long row of patches is cut; 1 if it is not long, or has no divisor.
int64_t parts_of_row(int64_t across, const GroupBounds& bounds) {
  if (across <= bounds.most) return 1;
  for (int64_t length = bounds.most; length >= bounds.least; --length) {
    if (across % length == 0) return across / length;
  }
  return 1;
}

Loops innermost_loops(Schedule& sch, const BlockRV& block, long count) {
  Loops loops = sch.apply(GetLoops{block});
  return Loops(loops.end() - count, loops.end());
}

// Computes the block in the loop, in registers. Returns its innermost loops.
Loops compute_in_registers(Schedule& sch, const BlockRV& block, const LoopRV& loop, long count) {
  sch.apply(ComputeAt{block, loop, true});
  sch.apply(SetScope{block, 0, "local"});
  return innermost_loops(sch, block, count);
}

void schedule_products(Schedule& sch, const BlockRV& products, const LoopRV& group, bool parallel, int64_t lanes,
                       const Target& target, Decisions& decisions) {
  Ref<Block> block = cast<Block>(sch.get(products));
  const Buffer& weight = block->reads.back().buffer;
  int64_t vectors = as_int(buffer_type(weight).shape.back()).value_or(0) / lanes;
  sch.apply(ComputeAt{products, group, true});
  Loops loops = innermost_loops(sch, products, 5);  // 6, 6, patches, filters, channels
  auto patches = extent_of(sch, loops[2]);
  int64_t fit = rows_in_registers(vectors, cost_model::kElementRegisters, target);
  int64_t even = patches.value_or(0) > 0 ? ceil_div(*patches, ceil_div(*patches, fit)) : fit;
  int64_t rows = decisions.number("patches", numbers_between(1, fit), even);
  Loops tiles = sch.apply(Split{loops[2], {std::nullopt, rows}});
  Loops panels = sch.apply(Split{loops[3], {std::nullopt, vectors, lanes}});
  bool spills = rows * vectors > target.num_vector_registers - cost_model::kUnrollingRegisters;
  int64_t formula = spills ? cost_model::kSpillingChannelStep : cost_model::kChannelStep;
  int64_t step = decisions.number("step", {1, 2, 4, 8}, formula);
  Loops reduce = sch.apply(Split{loops[4], {std::nullopt, step}});
  sch.apply(Reorder{{loops[0], loops[1], panels[0], tiles[0], reduce[0], reduce[1], tiles[1], panels[1], panels[2]}});
  sch.apply(Annotate{panels[0], annotation<"prefetch">(), AttrList{weight->name}});
  if (!patches) sch.apply(Annotate{tiles[0], annotation<"exact_tails">(), true});

  BlockRV tile = sch.apply(CacheWrite{products, 0, "local"});
  sch.apply(ReverseComputeAt{tile, tiles[0], true});
  Loops of_tile = innermost_loops(sch, tile, 2);
  Loops columns = sch.apply(Split{of_tile[1], {std::nullopt, lanes}});
  unroll(sch, {of_tile[0], columns[0], reduce[1], tiles[1], panels[1]});
  vectorize(sch, {columns[1], panels[2]});
  sch.apply(DecomposeReduction{products, reduce[0]});
  fuse_parallel(sch, {loops[0], loops[1]}, parallel);
}

void schedule_patches(Schedule& sch, const LoopRV& group, bool parallel, std::optional<int64_t> across, int64_t lanes) {
  BlockRV patches = sch.apply(GetBlock{"winograd_patches"}), columns = sch.apply(GetBlock{"winograd_columns"});
  sch.apply(ComputeAt{patches, group, true});
  Loops loops = innermost_loops(sch, patches, 4);  // 6, 6, patches, channels
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
  sch.apply(Reorder{joined({outside, {x, channels[1], loops[0], loops[1], channels[2]}})});
  unroll(sch, {loops[0], loops[1]});
  sch.apply(Vectorize{channels[2]});

  Loops inner = compute_in_registers(sch, columns, channels[0], 4);  // 6, row, x, channels
  Loops parts = sch.apply(Split{inner[3], {std::nullopt, lanes}});
  sch.apply(Reorder{{inner[1], parts[0], inner[2], inner[0], parts[1]}});
  sch.apply(Unroll{inner[0]});
  sch.apply(Vectorize{parts[1]});
  BlockRV pixels = sch.apply(GetBlock{"winograd_pixels"});
  inner = compute_in_registers(sch, pixels, inner[2], 4);
  sch.apply(Unroll{inner[0]});
  sch.apply(Vectorize{inner[3]});
  fuse_parallel(sch, outside, parallel);
}

// Returns the loops of a block after the result in the result's order: image, filter block, y, x, lane. The block may
// store elements in another order. Returns nullopt if it reads other elements, or several.
std::optional<Loops> loops_in_result_order(Schedule& sch, const BlockRV& result, const BlockRV& epilogue) {
  Ref<Block> block = cast<Block>(sch.get(result)), last = cast<Block>(sch.get(epilogue));
  Loops loops = sch.apply(GetLoops{epilogue});
  constexpr size_t kRank = 5, kNone = kRank;
  if (loops.size() != kRank || last->iter_vars.size() != kRank) return std::nullopt;
  std::vector<size_t> order(kRank, kNone);
  bool fits = true;
  walk(last->body, [&](const BufferLoad& load) {
    if (!same_node(load.buffer, block->writes[0].buffer)) return;
    for (size_t d = 0; d < kRank; ++d) {
      auto axis =
          std::ranges::find_if(last->iter_vars, [&](const IterVar& v) { return same_node(v.var, load.indices[d]); });
      size_t found = static_cast<size_t>(axis - last->iter_vars.begin());
      fits = fits && (order[d] == kNone || order[d] == found) && (found != kNone || load.indices[d].is<IntImm>());
      order[d] = found;
    }
  });
  if (!fits) return std::nullopt;
  Loops ordered;
  for (size_t& d : order) {
    // A constant index belongs to a dim of size 1.
    for (size_t a = 0; a < kRank && d == kNone; ++a) {
      if (std::ranges::find(order, a) == order.end() && is_int(last->iter_vars[a].domain.extent, 1)) d = a;
    }
    if (d == kNone) return std::nullopt;
    ordered.push_back(loops[d]);
  }
  return ordered;
}

void schedule_winograd(Schedule& sch, const Target& target, Decisions& decisions) {
  BlockRV products = sch.apply(GetBlock{"nn.conv2d_winograd"}), result = sch.apply(GetBlock{"winograd_result"});
  Blocks epilogue = sch.apply(MergeEpilogue{result});
  Loops loops = sch.apply(GetLoops{result});
  auto ordered_loops = epilogue.size() == 1 ? loops_in_result_order(sch, result, epilogue[0]) : std::nullopt;
  if (ordered_loops) {
    loops = *ordered_loops;
    sch.apply(ComputeInline{result});
    epilogue.clear();
  }
  for (const BlockRV& block : epilogue) {
    Loops outer = sch.apply(GetLoops{block});
    if (outer.size() > 1) outer.pop_back();
    fuse_parallel(sch, outer);
  }
  Loops y = sch.apply(Split{loops[2], {std::nullopt, kPixels}});
  Loops x = sch.apply(Split{loops[3], {std::nullopt, kPixels}});
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
    int64_t rows = std::max<int64_t>(1, images.value_or(1) * *rows_of_image);
    groups.rows = decisions.number("group_rows", divisors_between(1, rows, rows), groups.rows);
  }
  groups.parallel = decisions.word("shared", {"groups", "inside"}, groups.parallel ? "groups" : "inside") == "groups";
  if (groups.rows > 1) {
    Loops rows = sch.apply(Split{group, {std::nullopt, groups.rows}});
    group = rows[0];
    patch = sch.apply(Fuse{{rows[1], patch}});
  }
  unroll(sch, {y[1], x[1]});
  sch.apply(Vectorize{loops[4]});
  BlockRV back = sch.apply(GetBlock{"winograd_rows"});
  Loops inner = compute_in_registers(sch, back, loops[1], 4);  // 4, 6, patch, lanes
  sch.apply(Reorder{{inner[1], inner[0]}});
  unroll(sch, {inner[0], inner[1]});
  sch.apply(Vectorize{inner[3]});
  sch.apply(Parallel{groups.parallel ? group : patch});
  sch.apply(Annotate{group, annotation<"keep_whole">(), true});

  schedule_products(sch, products, group, !groups.parallel, lanes, target, decisions);
  schedule_patches(sch, group, !groups.parallel, across, lanes);
}

}  // namespace

ScheduleRule winograd_rule() {
  return {
      .name = "winograd",
      .op = "nn.conv2d_winograd",
      .apply = schedule_winograd,
      .fits = [](const PrimFuncRef& program, const Target&, Decisions&) -> std::optional<std::string> {
        if (find_anchor(program, "nn.conv2d_winograd")) return std::nullopt;
        return "it has no block of 'nn.conv2d_winograd'";
      },
      .doc = "a 3x3 convolution for which the decision 'algorithm' is \"winograd\"",
      .decisions = {{"group_rows", "rows of patches whose products stay in cache",
                     "at least a register tile of patches; where threads share a group, as many as fit in L2"},
                    {"shared", "threads share \"groups\" or the loops \"inside\" of one",
                     "\"groups\" where there are enough for cores / 2"},
                    {"patches", "patches in a register tile",
                     "(vector registers - vectors of filters - 2) / vectors of filters, in equal tiles"},
                    {"step", "iterations over channels unrolled", "2 where 6 or fewer registers are left, else 4"}}};
}

}  // namespace relaxc
