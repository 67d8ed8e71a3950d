// The schedule of Winograd convolutions (passes/winograd.h) as primitives. Patches form groups, whose transformed
// patches and products stay in the L2 cache:
//
//   for group:
//     for row, channel block: for x: pixels, columns (in registers);  for patch: patches    vectors along channels
//     for each point, panel of filters, tile of patches:              register tile, the next panel fetched ahead
//     for patch, filter block: rows (in registers), result            with the elementwise operators after it
//
// Weights of bytes are transformed before, once for all groups.
//
// Any extents are allowed. Where images have a known size, groups are equally many whole rows of patches, or equal
// parts of rows, so that only widths and heights that are not multiples of the tile need conditions. If there are many
// groups, they are distributed over threads, otherwise the loops inside of a group are. Where images have an unknown
// size, groups and register tiles are boxes, rows by patches of a row, of which the last ones are cut. The memory of a
// group has a known size then, and the planes of its points are a constant apart:
//
//   for image, rows / group_rows, patches of a row / across:
//     for each point, panel, rows / tile_rows, across / patches:      code for each number of rows and patches left
#include <algorithm>
#include <bit>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"
#include "tir/rules/winograd.h"

namespace relaxc {

namespace {

constexpr size_t kRank = 5;          // of the result: image, filter block, y, x, lane
constexpr size_t kRankOfGroups = 6;  // of weights: y, x, panel, channels, filter, element of the group

// Bounds the patches in a group. There is at least a register tile of them, as weights are read from memory once for
// each group. Where threads share a group, it holds at most the patches whose points and products fit in half of the L2
// cache, beside weights, for a typical number of channels and filters, rounded up to a power of two.
struct GroupBounds {
  int64_t least, most, enough_groups;
};
GroupBounds group_bounds(int64_t points, const Target& target) {
  int64_t patch_bytes = points * kFloat32.bytes() * 2 * cost_model::kTypicalChannels;
  auto fit = static_cast<uint64_t>(std::max<int64_t>(1, target.l2_of_core() / 2 / patch_bytes));
  int64_t least = rows_in_registers(2, cost_model::kElementRegisters, target);
  return {least, std::max(least, static_cast<int64_t>(std::bit_ceil(fit))),
          assumed_cores(target) * cost_model::kGroupsPerTwoCores / 2};
}

// The choices for a program. Extents are those of the result, nullopt where they are symbolic.
struct WinogradPlan {
  int64_t lanes, vectors;       // of a panel of weights
  bool has_whole_rows = false;  // in groups, or equal parts of rows; otherwise in tiles, of which the last may be cut
  int64_t across = 1;           // patches of a row, or of a part of it, in a group
  int64_t row_parts = 1;
  int64_t group_rows = 1;  // of patches, in a group
  bool shares_groups = false;
  int64_t tile_patches = 1, tile_rows = 1, step = 1;
  std::string intrin = {};  // which sums several products in each lane
};

// Chooses groups of equally many whole rows, of all images, or of one image where the batch is not known.
void choose_groups(WinogradPlan& plan, int64_t rows, const GroupBounds& bounds) {
  int64_t across = plan.across;
  while (plan.group_rows < rows && (rows % plan.group_rows != 0 || plan.group_rows * across < bounds.least))
    ++plan.group_rows;
  if (plan.group_rows * across > cost_model::kGroupSlack * bounds.most) plan.group_rows = 1;
  plan.shares_groups = rows / plan.group_rows >= bounds.enough_groups;
  for (int64_t more = plan.group_rows; !plan.shares_groups && more * across <= bounds.most; ++more) {
    if (rows % more == 0) plan.group_rows = more;
  }
}

// Chooses groups where the size of images is not known: tiles of rows and patches of a row, of which the last ones are
// cut. A register tile has several rows, so that a small image fills it, too. Groups share reading weights that are not
// in a cache by twice as many patches.
void choose_tiles(WinogradPlan& plan, int64_t most, int64_t fit, int64_t in_group, Decisions& decisions) {
  const int64_t patches = std::min(in_group, cost_model::kMostPatchesOfGroup);
  int64_t side = std::min<int64_t>(most, 2);
  for (int64_t wider = side; wider <= std::min(most, cost_model::kPatchesOfRow); ++wider) {
    if (most / wider * wider >= most / side * side) side = wider;
  }
  plan.tile_patches = decisions.number("patches", numbers_between(1, fit), side);
  int64_t most_rows = fit / plan.tile_patches;
  plan.tile_rows = decisions.number("tile_rows", numbers_between(1, most_rows), std::min(most / side, most_rows));
  plan.across = decisions.number("across", numbers_between(1, patches), std::min(2 * side, patches));
  int64_t rows = std::max<int64_t>(1, patches / plan.across / plan.tile_rows) * plan.tile_rows;
  plan.group_rows = decisions.number("group_rows", numbers_between(1, patches), std::min(rows, patches));
}

// Returns the number of equal parts into which a long row of patches is cut; 1 if it is not long, or has no divisor.
int64_t parts_of_row(int64_t across, const GroupBounds& bounds) {
  if (across <= bounds.most) return 1;
  for (int64_t length = bounds.most; length >= bounds.least; --length) {
    if (across % length == 0) return across / length;
  }
  return 1;
}

struct Winograd {
  Ref<Block> products, result;
  int64_t tile, patch;      // pixels along a side, of the result and of the image
  std::string intrin = {};  // of products with several axes of sums
  bool transforms_weights = false;
};
std::variant<Winograd, std::string> find_winograd(const PrimFuncRef& program, const Target& target, Decisions&) {
  auto products = find_anchor(program, winograd::kOp);
  std::optional<Ref<Block>> rows, result;
  bool transforms_weights = false;
  walk(program->body, [&](const Ref<Block>& block) {
    if (block->name == winograd::kResult && block->iter_vars.size() == kRank) result = block;
    if (block->name == winograd::kRows && block->iter_vars.size() > 2) rows = block;
    transforms_weights |= block->name == winograd::kWeights && block->iter_vars.size() == kRankOfGroups;
  });
  if (!products || !rows || !result || operands_of(**products).empty())
    return fmt::format("it has no blocks '{}', '{}' and '{}'", winograd::kOp, winograd::kRows, winograd::kResult);
  const auto tile = as_int((*rows)->iter_vars[0].domain.extent), patch = as_int((*rows)->iter_vars[1].domain.extent);
  if (!tile || !patch || *tile < 1 || *patch < *tile)
    return fmt::format("the first axes of block '{}' are not the sides of a tile and of a patch", winograd::kRows);
  Winograd found{*products, *result, *tile, *patch, "", transforms_weights};
  if (axes_of(**products, IterKind::kReduce).size() == 1) return found;
  const std::vector<Ref<BufferLoad>> operands = operands_of(**products);
  const DotForm* form = dot_form_of(**products, dtype_of(operands[0]), dtype_of(operands.back()), target);
  const size_t rank = buffer_type(operands.back()->buffer).shape.size();
  if (!form || rank < 2 || !is_int((*products)->iter_vars.back().domain.extent, form->group))
    return "the target has no instruction that sums as many products in each lane";
  found.intrin = form->name;
  return found;
}

WinogradPlan choose_winograd(const Winograd& found, const Target& target, Decisions& decisions) {
  auto extent = [&](size_t axis) { return as_int(found.result->iter_vars[axis].domain.extent); };
  auto patches_along = [&](size_t axis) {
    auto pixels = extent(axis);
    return pixels ? std::optional(ceil_div(*pixels, found.tile)) : std::nullopt;
  };
  auto images = extent(0), rows_of_image = patches_along(2), across = patches_along(3);
  WinogradPlan plan{.lanes = extent(4).value_or(1), .vectors = 1};
  GroupBounds bounds = group_bounds(found.patch * found.patch, target);
  const Buffer& weight = operands_of(*found.products).back()->buffer;
  const std::vector<Expr>& panels = buffer_type(weight).shape;
  plan.intrin = found.intrin;
  const Expr& columns = panels[panels.size() - (plan.intrin.empty() ? 1 : 2)];
  plan.vectors = std::max<int64_t>(1, as_int(columns).value_or(0) / plan.lanes);
  int64_t fit = rows_in_registers(plan.vectors, cost_model::kElementRegisters, target);
  int64_t most = std::clamp<int64_t>(cost_model::kEnoughSums / plan.vectors, 1, fit);
  plan.has_whole_rows = rows_of_image && across;
  if (plan.has_whole_rows) {
    int64_t parts = parts_of_row(*across, bounds), most_parts = std::max(parts, cost_model::kMostParts);
    plan.row_parts = decisions.number("row_parts", divisors_between(1, most_parts, *across), parts);
    plan.across = *across / plan.row_parts;
    int64_t rows = images.value_or(1) * *rows_of_image * plan.row_parts;
    choose_groups(plan, rows, bounds);
    plan.group_rows =
        decisions.number("group_rows", divisors_between(1, std::max<int64_t>(1, rows), rows), plan.group_rows);
    int64_t patches = plan.across * plan.group_rows;
    int64_t even = patches > 0 ? ceil_div(patches, ceil_div(patches, most)) : most;
    plan.tile_patches = decisions.number("patches", numbers_between(1, fit), even);
  } else {
    bool in_cache = bytes_of(weight, 1) <= cost_model::kSmallWeightsInL2 * target.l2_of_core();
    choose_tiles(plan, most, fit, bounds.most * (in_cache ? 1 : 2), decisions);
  }
  std::string shared = plan.shares_groups ? "groups" : "inside";
  plan.shares_groups = decisions.word("shared", {"groups", "inside"}, shared) == "groups";

  bool spills =
      plan.tile_rows * plan.tile_patches * plan.vectors > target.num_vector_registers - cost_model::kUnrollingRegisters;
  int64_t step = spills ? cost_model::kSpillingChannelStep : cost_model::kChannelStep;
  plan.step = decisions.number("step", doublings_between(1, cost_model::kMostStep), step);
  return plan;
}

Loops innermost_loops(Schedule& sch, const BlockRV& block, long count) {
  Loops loops = sch.apply(GetLoops{block});
  return Loops(loops.end() - count, loops.end());
}

// Computes the block in the loop, in registers.
void compute_in_registers(Schedule& sch, const BlockRV& block, const LoopRV& loop) {
  sch.apply(ComputeAt{block, loop, true});
  sch.apply(SetScope{block, 0, "local"});
}

// The loops of a stage with axes [y, x, patch, channels], the first two inside of a patch or tile, and its `sums` loops
// over channels. Where patches are counted through all rows, there is one loop over them. Otherwise the loops over an
// image and the rows of a group stand apart.
struct StageLoops {
  Loops inside, rows;
};
StageLoops loops_of_stage(Schedule& sch, const BlockRV& block, const WinogradPlan& plan, long sums = 0) {
  if (plan.has_whole_rows) return {innermost_loops(sch, block, 4 + sums), {}};
  Loops loops = innermost_loops(sch, block, 6 + sums);
  Loops rows(loops.begin() + 2, loops.begin() + 4);
  loops.erase(loops.begin() + 2, loops.begin() + 4);
  return {loops, rows};
}

void schedule_products(Schedule& sch, const BlockRV& products, const LoopRV& group, const WinogradPlan& plan) {
  std::string weight = cast<Block>(sch.get(products))->reads.back().buffer->name;
  sch.apply(ComputeAt{products, group, true});
  const bool is_grouped = !plan.intrin.empty();
  auto [loops, rows] = loops_of_stage(sch, products, plan, is_grouped ? 2 : 1);  // y, x, patches, filters, channels
  const Loops in_lane(loops.begin() + 5, loops.end());
  Loops unrolled;
  if (!plan.has_whole_rows) {
    Loops tile_rows = sch.apply(Split{rows[1], {std::nullopt, plan.tile_rows}});
    sch.apply(Annotate{tile_rows[0], annotation<"exact_tails">(), true});
    rows[1] = tile_rows[0];
    unrolled = {tile_rows[1]};
  }
  Loops tiles = sch.apply(Split{loops[2], {std::nullopt, plan.tile_patches}});
  Loops panels = sch.apply(Split{loops[3], {std::nullopt, plan.vectors, plan.lanes}});
  Loops reduce = sch.apply(Split{loops[4], {std::nullopt, plan.step}});
  Loops in_tile = joined({unrolled, {tiles[1], panels[1]}});
  sch.apply(Reorder{joined(
      {{loops[0], loops[1], panels[0]}, rows, {tiles[0], reduce[0], reduce[1]}, in_tile, {panels[2]}, in_lane})});
  sch.apply(Annotate{panels[0], annotation<"prefetch">(), AttrList{weight}});
  if (!plan.has_whole_rows) sch.apply(Annotate{tiles[0], annotation<"exact_tails">(), true});

  BlockRV tile = sch.apply(CacheWrite{products, 0, "local"});
  sch.apply(ReverseComputeAt{tile, tiles[0], true});
  Loops of_tile = innermost_loops(sch, tile, plan.has_whole_rows ? 2 : 3);
  Loops columns = sch.apply(Split{of_tile.back(), {std::nullopt, plan.lanes}});
  of_tile.back() = columns[0];
  keep_in_registers(sch, joined({of_tile, {reduce[1]}, in_tile}), {columns[1]});
  if (!is_grouped) sch.apply(Vectorize{panels[2]});
  sch.apply(DecomposeReduction{products, reduce[0]});
  if (is_grouped) sch.apply(Tensorize{panels[2], plan.intrin, false});
  fuse_parallel(sch, {loops[0], loops[1]}, !plan.shares_groups);
}

void schedule_patches(Schedule& sch, const LoopRV& group, const WinogradPlan& plan) {
  BlockRV patches = sch.apply(GetBlock{winograd::kPatches}), columns = sch.apply(GetBlock{winograd::kColumns});
  sch.apply(ComputeAt{patches, group, true});
  auto [loops, rows] = loops_of_stage(sch, patches, plan);  // y, x, patches, channels
  // Two blocks of channels are neighbouring cache lines of patches.
  int64_t together = extent_of(sch, loops[3]).value_or(1) / plan.lanes % 2 == 0 ? 2 : 1;
  Loops channels = sch.apply(Split{loops[3], {std::nullopt, together, plan.lanes}});
  LoopRV x = loops[2];
  if (auto count = extent_of(sch, x); plan.has_whole_rows && count && *count > plan.across) {
    Loops parts = sch.apply(Split{x, {std::nullopt, plan.across}});
    rows = {parts[0]};
    x = parts[1];
  }
  Loops outside = joined({rows, {channels[0]}});
  sch.apply(Reorder{joined({outside, {x, channels[1], loops[0], loops[1], channels[2]}})});
  keep_in_registers(sch, {loops[0], loops[1]}, {channels[2]});

  compute_in_registers(sch, columns, channels[0]);
  const long of_columns = plan.has_whole_rows ? 4 : 5;
  Loops inner = innermost_loops(sch, columns, of_columns);  // y, rows, x, channels
  Loops rows_of_columns(inner.begin() + 1, inner.end() - 2);
  LoopRV column = inner[inner.size() - 2];
  Loops parts = sch.apply(Split{inner.back(), {std::nullopt, plan.lanes}});
  sch.apply(Reorder{joined({rows_of_columns, {parts[0], column, inner[0], parts[1]}})});
  keep_in_registers(sch, {inner[0]}, {parts[1]});
  BlockRV pixels = sch.apply(GetBlock{winograd::kPixels});
  compute_in_registers(sch, pixels, column);
  inner = innermost_loops(sch, pixels, of_columns);
  keep_in_registers(sch, {inner[0]}, {inner.back()});
  fuse_parallel(sch, outside, !plan.shares_groups);
}

// Transforms the windows of a vector of filters and a group of channels in registers, once for all images.
void schedule_weights(Schedule& sch, const WinogradPlan& plan) {
  Loops loops = sch.apply(GetLoops{sch.apply(GetBlock{winograd::kWeights})});  // y, x, panels, channels, filters, group
  const LoopRV numbers = sch.apply(Fuse{{loops[4], loops[5]}});
  const Loops vectors = sch.apply(Split{numbers, {std::nullopt, 2 * plan.lanes}});
  sch.apply(Reorder{{loops[2], loops[3], vectors[0], loops[0], loops[1], vectors[1]}});
  keep_in_registers(sch, {loops[0], loops[1]}, {vectors[1]});
  sch.apply(Parallel{loops[2]});
}

// Returns the loops of a block after the result in the result's order: image, filter block, y, x, lane. The block may
// store elements in another order. Returns nullopt if it reads other elements, or several.
std::optional<Loops> loops_in_result_order(Schedule& sch, const BlockRV& result, const BlockRV& epilogue) {
  Ref<Block> block = cast<Block>(sch.get(result)), last = cast<Block>(sch.get(epilogue));
  Loops loops = sch.apply(GetLoops{epilogue});
  constexpr size_t kNone = kRank;
  if (loops.size() != kRank || last->iter_vars.size() != kRank) return std::nullopt;
  std::vector<size_t> order(kRank, kNone);
  bool fits = true;
  walk(last->body, [&](const BufferLoad& load) {
    if (!same_node(load.buffer, block->writes[0].buffer)) return;
    for (size_t d = 0; d < kRank; ++d) {
      size_t found = position_of_axis(last->iter_vars, load.indices[d]);
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

// Returns the innermost loop over groups, and the loop over the patches of one.
std::pair<LoopRV, LoopRV> split_groups(Schedule& sch, const LoopRV& image, const LoopRV& y, const LoopRV& x,
                                       const WinogradPlan& plan) {
  if (!plan.has_whole_rows) {
    Loops rows = sch.apply(Split{y, {std::nullopt, plan.group_rows}});
    Loops across = sch.apply(Split{x, {std::nullopt, plan.across}});
    sch.apply(Reorder{{rows[0], across[0], rows[1], across[1]}});
    sch.apply(Annotate{rows[0], annotation<"keep_whole">(), true});
    return {across[0], sch.apply(Fuse{{rows[1], across[1]}})};
  }
  LoopRV group = sch.apply(Fuse{{image, y}}), patch = x;
  if (plan.row_parts > 1) {
    Loops part = sch.apply(Split{patch, {plan.row_parts, std::nullopt}});
    group = sch.apply(Fuse{{group, part[0]}});
    patch = part[1];
  }
  if (plan.group_rows > 1) {
    Loops rows = sch.apply(Split{group, {std::nullopt, plan.group_rows}});
    group = rows[0];
    patch = sch.apply(Fuse{{rows[1], patch}});
  }
  return {group, patch};
}

void schedule_winograd(Schedule& sch, const Winograd& found, const WinogradPlan& plan) {
  BlockRV products = sch.apply(GetBlock{winograd::kOp}), result = sch.apply(GetBlock{winograd::kResult});
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
  Loops y = sch.apply(Split{loops[2], {std::nullopt, found.tile}});
  Loops x = sch.apply(Split{loops[3], {std::nullopt, found.tile}});
  sch.apply(Reorder{{loops[0], y[0], x[0], loops[1], y[1], x[1], loops[4]}});
  auto [group, patch] = split_groups(sch, loops[0], y[0], x[0], plan);
  keep_in_registers(sch, {y[1], x[1]}, {loops[4]});
  BlockRV back = sch.apply(GetBlock{winograd::kRows});
  compute_in_registers(sch, back, loops[1]);
  Loops inner = loops_of_stage(sch, back, plan).inside;  // y, x, patch, lanes
  sch.apply(Reorder{{inner[1], inner[0]}});
  keep_in_registers(sch, {inner[0], inner[1]}, {inner[3]});
  sch.apply(Parallel{plan.shares_groups ? group : patch});
  sch.apply(Annotate{group, annotation<"keep_whole">(), true});

  if (found.transforms_weights) schedule_weights(sch, plan);
  schedule_products(sch, products, group, plan);
  schedule_patches(sch, group, plan);
}

}  // namespace

ScheduleRule winograd_rule() {
  using namespace cost_model;
  return anchored(
      {.name = "winograd",
       .op = winograd::kOp,
       .doc = "a 3x3 convolution for which the decision 'algorithm' is \"winograd\"",
       .decisions = {{"row_parts", "parts of a row of patches, one after the other",
                      "1 where a row's products fit in half of L2, else the fewest equal parts that do"},
                     {"across", "patches of a row in a group, where the size of images is not known",
                      "those of two register tiles"},
                     {"group_rows", "rows of patches whose products stay in cache",
                      "at least a register tile of patches; where threads share a group, as many as fit in half of L2"},
                     {"shared", "threads share \"groups\" or the loops \"inside\" of one",
                      fmt::format("\"groups\" where two cores have {} or more", kGroupsPerTwoCores)},
                     {"patches", "patches in a register tile",
                      fmt::format("equal tiles of up to {} / vectors of filters, as far as registers allow",
                                  kEnoughSums)},
                     {"tile_rows", "rows of patches in a register tile, where the size of images is not known",
                      fmt::format("as many as registers allow beside up to {} patches of a row", kPatchesOfRow)},
                     {"step", "iterations over channels unrolled",
                      fmt::format("{} where {} or fewer registers are left, else {}", kSpillingChannelStep,
                                  kUnrollingRegisters, kChannelStep)}}},
      find_winograd, choose_winograd, schedule_winograd);
}

}  // namespace relaxc
