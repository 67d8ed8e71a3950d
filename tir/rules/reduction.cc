#include <algorithm>
#include <ranges>
#include <span>
#include <tuple>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/rules/blocks.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/windows.h"

namespace relaxc {

namespace {

// Returns the stride between the lanes of a tile of that many columns anywhere on the axis. Blocked layouts have one,
// although the axis as a whole has none.
std::optional<Expr> lane_stride(const Ref<BufferLoad>& load, const VarRef& axis, int columns, const Analyzer& outer) {
  // Quotients and remainders of an axis that was merged from two cancel in the place as a whole.
  if (auto stride = access_stride(load->buffer, load->indices, axis, outer)) return stride;
  VarRef tile = make_dim("tile"), lane = make_dim("lane");
  Analyzer facts = outer;
  facts.bind(tile, Interval{0});
  facts.bind(lane, int_imm(0), int_imm(columns - 1));
  std::vector<Expr> indices = load->indices;
  for (Expr& index : indices)
    index = facts.simplify(substitute(index, {{axis.get(), static_cast<const Expr&>(tile) * columns + lane}}));
  return access_stride(load->buffer, indices, lane, facts);
}

// Takes the last axis on which the window slides for rows, as many as an unrolled window leaves instructions for.
void choose_window(ReductionPlan& tile, const Nest& nest, const std::vector<Ref<BufferLoad>>& loads,
                   const Target& target, Decisions& decisions) {
  std::span axes(nest.axes);
  int64_t steps = tile.vectors;
  for (; tile.unrolled < tile.window; ++tile.unrolled) {
    auto extent = as_int(axes[axes.size() - 1 - tile.unrolled].domain.extent);
    if (!extent || *extent * steps > cost_model::kMostWindowSteps) break;
    steps *= *extent;
  }
  for (size_t d = nest.num_spatial; d-- > 0 && !tile.row_axis;) {
    if (d == *tile.column_axis || is_int(axes[d].domain.extent, 1)) continue;
    if (slides(loads, axes[d], axes.last(tile.window))) tile.row_axis = d;
  }
  if (!tile.row_axis) return;
  int64_t fit = rows_in_registers(tile.vectors, cost_model::kElementRegisters, target);
  auto extent = as_int(axes[*tile.row_axis].domain.extent);
  int64_t most = std::clamp(cost_model::kMostWindowTileSteps / steps, int64_t{1},
                            extent ? cost_model::kMostWindowRows : cost_model::kMostSymbolicWindowRows);
  int64_t rows = fewest_rows_beyond(extent.value_or(0), std::min({most, fit, extent.value_or(most)}));
  tile.rows = decisions.number("rows", numbers_between(1, fit), rows);
}

// Returns whether rows along an axis of the result use the vectors of the columns again.
bool reuses_columns(const Nest& nest, const std::vector<Ref<BufferLoad>>& loads, size_t column_axis, size_t axis) {
  return axis != column_axis && !is_int(nest.axes[axis].domain.extent, 1) &&
         std::ranges::any_of(loads, [&](const Ref<BufferLoad>& load) {
           return uses_var(load->indices, nest.axes[column_axis].var) && !uses_var(load->indices, nest.axes[axis].var);
         });
}

void choose_rows(ReductionPlan& tile, const Nest& nest, const std::vector<Ref<BufferLoad>>& loads, const Target& target,
                 Decisions& decisions) {
  for (size_t d = nest.num_spatial; d-- > 0 && !tile.row_axis;) {
    if (reuses_columns(nest, loads, *tile.column_axis, d)) tile.row_axis = d;
  }
  if (!tile.row_axis) return;
  int64_t fit = rows_in_registers(tile.vectors, cost_model::kElementRegisters, target);
  auto extent = as_int(nest.axes[*tile.row_axis].domain.extent);
  int64_t most = std::min(fit, extent ? cost_model::kMostRows : cost_model::kMostSymbolicRows);
  int64_t rows = extent ? fewest_rows_beyond(*extent, std::clamp<int64_t>(*extent, 1, most)) : most;
  tile.rows = decisions.number("rows", numbers_between(1, fit), rows);
}

// Returns whether a vector can be gathered from a few vectors that hold all of its elements.
bool is_short_stride(const std::optional<Expr>& stride, const Ref<BufferLoad>& load) {
  auto known = stride ? as_int(*stride) : std::nullopt;
  return known && *known > 1 && *known <= cost_model::kMostLaneStride &&
         buffer_type(load->buffer).dtype.bits >= cost_model::kFewestStridedBits;
}

bool has_lane_strides(const std::vector<Ref<BufferLoad>>& loads, const VarRef& axis, const Analyzer& facts) {
  return std::ranges::all_of(loads, [&](const Ref<BufferLoad>& load) {
    return is_lane_stride(access_stride(load->buffer, load->indices, axis, facts));
  });
}

// Returns the columns of a tile along an axis on which a window slides: one vector, whose last one may be partial.
ColumnTile row_of_window(std::optional<int64_t> extent, int lanes) {
  while (extent && lanes > cost_model::kFewestLanes && *extent <= lanes / 2) lanes /= 2;
  return {lanes, 1};
}

// Returns the columns of a tile, shorter vectors where these divide the extent, unless more than twice as many would be
// needed as full ones, of which the last one is partial. With masks the only vector may be partial.
ColumnTile tile_of_columns(std::optional<int64_t> extent, int lanes, bool has_masks) {
  if (has_masks && extent && *extent < lanes) return row_of_window(extent, lanes);
  ColumnTile exact = choose_column_tile(extent, lanes);
  // Where an odd number of vectors follow each other the last one is alone: a tile of one has few sums, which wait for
  // each other.
  if (extent && exact.lanes == lanes && exact.vectors == 1 && *extent >= int64_t{cost_model::kManyVectors} * lanes)
    return choose_column_tile(std::nullopt, lanes);
  if (!extent || exact.lanes == lanes || *extent < 2 * lanes) return exact;
  return 2 * ceil_div(*extent, int64_t{lanes}) <= *extent / exact.lanes ? choose_column_tile(std::nullopt, lanes)
                                                                        : exact;
}

// Returns the vectors of a tile of a single row, as many as hide the latency of sums and read whole cache lines in a
// row, if that leaves enough tiles for all threads.
int64_t vectors_of_row(const ReductionPlan& tile, const Nest& nest) {
  using namespace cost_model;
  const auto extent = as_int(nest.axes[*tile.column_axis].domain.extent);
  int64_t others = 1;  // tiles
  for (size_t d = 0; d < nest.num_spatial; ++d) {
    if (d != *tile.column_axis) others *= std::min(as_int(nest.axes[d].domain.extent).value_or(kFewestCores), kMostSum);
    others = std::min(others, kFewestCores);
  }
  auto fits = [&](int64_t vectors) {
    const int64_t columns = vectors * tile.lanes;
    if (!extent) return others == 1 && vectors <= kVectorsOfSymbolicRow;  // rows beside others are often short
    return *extent % columns == 0 && (!tile.parallel || others * *extent / columns >= kFewestCores / 2);
  };
  int64_t vectors = kVectorsOfOneRow;
  while (vectors > tile.vectors && !fits(vectors)) vectors /= 2;
  return std::max(vectors, tile.vectors);
}

// Takes the spatial axis with the best columns, if there is one, and decides their width.
void choose_columns(ReductionPlan& tile, const Nest& nest, const std::vector<Ref<BufferLoad>>& loads, int lanes,
                    bool has_masks, const Analyzer& facts, Decisions& decisions) {
  std::tuple best_score{false, 0, 0, false};
  for (size_t d = 0; d < nest.num_spatial; ++d) {
    auto known = as_int(nest.axes[d].domain.extent);
    if (known && *known < cost_model::kFewestLanes) continue;
    bool is_last = d + 1 == nest.num_spatial;
    bool is_row = slides(loads, nest.axes[d], std::span(nest.axes).last(tile.window));
    ColumnTile columns = is_row ? row_of_window(known, lanes) : tile_of_columns(known, lanes, has_masks);
    bool fits = true, contiguous = true, reads_vectors = false;
    for (const Ref<BufferLoad>& load : loads) {
      auto stride = lane_stride(load, nest.axes[d].var, columns.columns(), facts);
      contiguous = contiguous && is_lane_stride(stride);
      fits = fits && (is_lane_stride(stride) || (is_last && is_short_stride(stride, load)));
      reads_vectors = reads_vectors || (stride && !is_int(*stride, 0));
    }
    if (!fits || !reads_vectors) continue;
    // Contiguous vectors are preferred, then full ones, several ones, and the axis in which the output is contiguous.
    std::tuple score{contiguous, columns.lanes, columns.vectors, is_last};
    if (score <= best_score) continue;
    best_score = score;
    tile.column_axis = d;
    tile.lanes = columns.lanes;
    tile.vectors = columns.vectors;
  }
  if (!tile.column_axis) return;
  // In a blocked layout only parts of these columns are as contiguous.
  bool any = has_lane_strides(loads, nest.axes[*tile.column_axis].var, facts);
  int64_t fewest = std::min<int64_t>(cost_model::kFewestLanes, tile.lanes);
  tile.lanes = decisions.number("lanes", doublings_between(fewest, any ? lanes : tile.lanes), tile.lanes);
  const size_t column_axis = *tile.column_axis;
  auto is_reused = [&](size_t d) { return reuses_columns(nest, loads, column_axis, d); };
  if (any && tile.window == 0 && tile.lanes == lanes &&
      std::ranges::none_of(std::views::iota(size_t{0}, nest.num_spatial), is_reused))
    tile.vectors = vectors_of_row(tile, nest);
  auto widths = any ? numbers_between(1, std::max(cost_model::kMostColumnVectors, tile.vectors))
                    : divisors_between(1, tile.vectors, tile.vectors);
  tile.vectors = decisions.number("vectors", widths, tile.vectors);
}

// Returns how many of the innermost reduce axes are one in every operand, such as the rows and columns of an image.
// Where whole vectors of that width fill the inner ones, there is nothing to gain from outer ones.
long num_merged_axes(const Nest& nest, const std::vector<Ref<BufferLoad>>& loads, int64_t width,
                     const Analyzer& facts) {
  size_t first = nest.axes.size() - 1;
  std::optional<int64_t> extent = as_int(nest.axes[first].domain.extent);
  auto merges = [&](const Ref<BufferLoad>& load) {
    return is_one_axis(*load, nest.axes[first - 1], nest.axes[first], facts);
  };
  while (first > nest.num_spatial && !(extent && *extent % width == 0) && std::ranges::all_of(loads, merges)) {
    auto outer = as_int(nest.axes[--first].domain.extent);
    extent = extent && outer ? checked_mul(*extent, *outer) : std::nullopt;
  }
  return static_cast<long>(nest.axes.size() - first);
}

// Returns whether the results fill L2, beside the operands, and each sums so few products that storing them is what
// takes time. Sizes that are not known are large.
bool has_short_sums(const Nest& nest, const Target& target) {
  int64_t products = 1, bytes = buffer_type(match_reduction(*nest.block)->out).dtype.bytes();
  for (size_t d = 0; d < nest.axes.size(); ++d) {
    int64_t& count = d < nest.num_spatial ? bytes : products;
    count *= std::min(as_int(nest.axes[d].domain.extent).value_or(cost_model::kMostSum), cost_model::kMostSum);
    if (count > (int64_t{1} << 40)) break;
  }
  return products <= cost_model::kShortSum && 2 * bytes > target.l2_of_core();
}

// Decides the lanes for partial results, two vectors of them if possible; 1 if lanes are not possible.
void choose_partial_lanes(ReductionPlan& plan, const Nest& nest, const std::vector<Ref<BufferLoad>>& loads, int lanes,
                          const Analyzer& facts, Decisions& decisions) {
  constexpr int64_t kFewest = 2 * cost_model::kFewestLanes;
  std::vector<int64_t> candidates = {1};
  int64_t formula = 2 * lanes;
  if (formula >= kFewest && nest.num_reduced() > 0 && has_lane_strides(loads, nest.axes.back().var, facts)) {
    plan.merged = num_merged_axes(nest, loads, formula, facts);
    std::optional<int64_t> extent = 1;
    for (const IterVar& axis : std::span(nest.axes).last(static_cast<size_t>(plan.merged))) {
      auto known = as_int(axis.domain.extent);
      extent = extent && known ? checked_mul(*extent, *known) : std::nullopt;
    }
    std::ranges::copy(doublings_between(kFewest, formula), std::back_inserter(candidates));
    while (formula > extent.value_or(formula)) formula /= 2;
  }
  plan.lanes = decisions.number("lanes", candidates, candidates.size() == 1 || formula < kFewest ? 1 : formula);
}

bool is_parallel(const Nest& nest, const Target& target) {
  int64_t work = 1;
  for (size_t d = nest.num_spatial; d < nest.axes.size(); ++d)
    work *= std::min(as_int(nest.axes[d].domain.extent).value_or(cost_model::kGuessedSum), cost_model::kMostSum);
  return !is_small(nest.spatial_extents(), target, work);
}

// Lays the block's result, which only the tile reads, out with the columns' axis last: the lanes of a vector would else
// lie apart in it, and it would not be kept in registers.
void make_lanes_last(Schedule& sch, const BlockRV& rv, const Nest& nest, size_t column_axis) {
  const BufferStore* store = single_store(*nest.block);
  if (column_axis + 1 == nest.num_spatial || !store || store->indices.size() != nest.num_spatial) return;
  const IndexMap map(nest.num_spatial, [&](const Exprs& at) {
    Exprs result = at;
    std::rotate(result.begin() + static_cast<long>(column_axis), result.begin() + static_cast<long>(column_axis) + 1,
                result.end());
    return result;
  });
  sch.apply(TransformLayout{rv, {"write", 0}, map});
}

// Orders the loops, from the outside: other axes, column tiles and row tiles, which are distributed over threads; the
// reduction; the tile. Neighbouring row tiles reuse columns; windows go through the image in its order.
void schedule_tile(Schedule& sch, const Nest& nest, const BlockRV& rv, const std::optional<BlockRV>& epilogue,
                   const ReductionPlan& tile, const Blocks& producers) {
  Loops shared, rows, columns, inside,
      reduce(nest.loops.begin() + static_cast<long>(nest.num_spatial), nest.loops.end());
  const size_t first_slid = tile.band ? first_axis_of_windows(nest, tile.groups) : nest.num_spatial;
  // The results stay in registers until the last block reads them.
  BlockRV last = epilogue ? *epilogue : sch.apply(CacheWrite{rv, 0, "local"});
  if (tile.lanes > 1) make_lanes_last(sch, rv, nest, *tile.column_axis);
  std::optional<LoopRV> row_tiles;
  size_t outside = 0;  // loops around the part of an image that producers compute
  Loops filters;       // of a group, which all read that part
  auto share = [&](LoopRV loop, size_t axis) {
    if (axis == first_slid && *tile.band > 0) {
      Loops bands = sch.apply(Split{loop, {std::nullopt, *tile.band}});
      shared.push_back(bands[0]);
      loop = bands[1];
    }
    if (axis == first_slid) outside = shared.size();
    if (axis == first_slid) shared.insert(shared.end(), filters.begin(), filters.end());
    shared.push_back(loop);
  };
  for (size_t d = 0; d < nest.num_spatial; ++d) {
    LoopRV loop = nest.loops[d];
    if (d == tile.row_axis) {
      rows = sch.apply(Split{loop, {std::nullopt, tile.rows}});
      if (tile.window > 0 || tile.columns_inside) share(rows[0], d);
      if (tile.window > 0) row_tiles = shared.back();
      continue;
    }
    if (d == tile.column_axis) {
      columns = sch.apply(Split{loop, {std::nullopt, tile.vectors, tile.lanes}});
      loop = columns[0];
    }
    if (tile.groups && d == tile.groups->axis) {
      Loops groups = sch.apply(Split{loop, {std::nullopt, tile.groups->filters}});
      loop = groups[0];
      filters = {groups[1]};
    }
    share(loop, d);
  }
  if (nest.num_spatial == 0) shared = {sch.apply(AddUnitLoop{reduce[0]})};
  if (!rows.empty()) {
    if (tile.window == 0 && !tile.columns_inside) shared.push_back(rows[0]);
    inside.push_back(rows[1]);
  }
  if (!columns.empty()) inside.insert(inside.end(), {columns[1], columns[2]});
  sch.apply(Reorder{joined({shared, reduce, inside})});

  sch.apply(ReverseComputeAt{last, shared.back(), true});
  Loops last_loops = loops_inside(sch, last, shared.size()), order, tail;
  for (size_t d = 0; d < last_loops.size(); ++d) {
    if (d == tile.column_axis) tail = sch.apply(Split{last_loops[d], {tile.vectors, tile.lanes}});
    if (d != tile.column_axis && d != tile.row_axis) order.push_back(last_loops[d]);
  }
  if (tile.row_axis) order.push_back(last_loops[*tile.row_axis]);
  order = joined({order, tail});
  if (order.size() > 1) sch.apply(Reorder{order});
  if (tile.row_axis) unroll(sch, {rows[1], last_loops[*tile.row_axis]});
  if (row_tiles && tile.window > 0 && !as_int(nest.axes[*tile.row_axis].domain.extent))
    sch.apply(Annotate{*row_tiles, annotation<"exact_tails">(), true});
  if (tile.masks_columns) sch.apply(Annotate{columns[0], annotation<"keep_whole">(), true});
  if (tile.column_axis) keep_in_registers(sch, {columns[1], tail[0]}, {columns[2], tail[1]});
  unroll(sch, Loops(reduce.end() - static_cast<long>(tile.unrolled), reduce.end()));
  sch.apply(DecomposeReduction{rv, reduce[0]});
  if (outside > 0) {
    for (size_t i = producers.size(); i-- > 0;) make_in_band(sch, producers[i], shared[outside - 1], tile);
    shared.resize(outside);
  }
  // Tails of loops that are not fused are code of their own, and indices in them are sums.
  shared.resize(enough_for_threads(sch, shared, tile.window > 0 ? cost_model::kFewestCores : cost_model::kLoopShares));
  fuse_parallel(sch, shared, tile.parallel);
}

void schedule_lanes(Schedule& sch, const Nest& nest, const BlockRV& rv, const std::optional<BlockRV>& epilogue,
                    const ReductionPlan& plan) {
  if (nest.num_spatial == 0) sch.apply(AddUnitLoop{nest.loops[0]});
  const LoopRV loop = fused(sch, Loops(nest.loops.end() - plan.merged, nest.loops.end()));
  const Loops shared = reduce_in_lanes(sch, rv, loop, plan.lanes);
  if (epilogue) sch.apply(ReverseComputeAt{*epilogue, shared.back()});
  fuse_parallel(sch, shared, plan.parallel);
}

}  // namespace

Loops reduce_in_lanes(Schedule& sch, const BlockRV& rv, LoopRV loop, int64_t lanes) {
  // There are partial results in all lanes, then in half as many, and so on. The block itself adds up the last ones.
  Blocks partial;
  for (int64_t width = lanes; width >= cost_model::kFewestLanes; width /= 2) {
    Factor outer = width == lanes ? Factor(std::nullopt) : Factor(2);
    partial.push_back(sch.apply(Rfactor{sch.apply(Split{loop, {outer, width}})[1], -1}));
    loop = sch.apply(GetLoops{rv}).back();
  }
  Loops outside = sch.apply(GetLoops{rv});
  outside.pop_back();
  for (size_t i = partial.size(); i-- > 0;) {
    sch.apply(ComputeAt{partial[i], outside.back(), true});
    sch.apply(SetScope{partial[i], 0, "local"});
    Loops loops = loops_inside(sch, partial[i], outside.size());
    std::rotate(loops.begin(), loops.begin() + 1, loops.end());
    sch.apply(Reorder{loops});
    sch.apply(Vectorize{loops.back()});
    const size_t num_reduced = axes_of(*cast<Block>(sch.get(partial[i])), IterKind::kReduce).size();
    LoopRV first = loops[loops.size() - 1 - num_reduced];
    if (i > 0) sch.apply(Unroll{first});
    sch.apply(DecomposeReduction{partial[i], first});
  }
  sch.apply(DecomposeReduction{rv, loop});
  sch.apply(Unroll{loop});
  return outside;
}

bool fits_as_epilogue(Schedule& sch, const BlockRV& rv, const BlockRV& epilogue_rv) {
  Ref<Block> block = cast<Block>(sch.get(rv)), epilogue = cast<Block>(sch.get(epilogue_rv));
  std::optional<Reduction> reduction = match_reduction(*block);
  const BufferStore* store = single_store(*epilogue);
  std::vector<IterVar> axes = axes_of(*block, IterKind::kSpatial);
  if (!reduction || !store || !is_at(store->indices, epilogue->iter_vars)) return false;
  if (sch.tree("").is_param(reduction->out) || sch.apply(GetConsumers{rv}).size() != 1) return false;
  bool fits = axes.size() == epilogue->iter_vars.size(), reads = false;
  for (size_t d = 0; fits && d < axes.size(); ++d)
    fits = structural_equal(axes[d].domain.extent, epilogue->iter_vars[d].domain.extent);
  walk(store->value, [&](const BufferLoad& load) {
    if (same_node(load.buffer, store->buffer)) fits = false;
    if (!same_node(load.buffer, reduction->out)) return;
    reads = true;
    // The index in a dim of 1 may be the literal 0.
    fits = fits && load.indices.size() == axes.size();
    for (size_t d = 0; fits && d < axes.size(); ++d) {
      const IterVar& axis = epilogue->iter_vars[d];
      fits = same_node(load.indices[d], axis.var) || (is_int(load.indices[d], 0) && is_int(axis.domain.extent, 1));
    }
  });
  return reads && fits;
}

ReductionPlan choose_reduction(const Ref<Block>& block, const Analyzer& facts, const Target& target,
                               Decisions& decisions, bool makes_operand) {
  Nest nest = nest_of(block);
  ReductionPlan plan{.parallel = is_parallel(nest, target)};
  std::optional<Reduction> reduction = match_reduction(*block);
  plan.has_combiner = reduction.has_value();
  if (!reduction) return plan;
  std::vector<Ref<BufferLoad>> loads = loads_of(reduction->value);
  int lanes = lanes_of(*block, target);
  plan.window = axes_of_window(nest, loads);
  // A mask costs a product nothing, and other operations an instruction.
  bool has_masks = target.vector_bits >= cost_model::kMaskedBits && is_contraction(*block);
  if (lanes > 1) choose_columns(plan, nest, loads, lanes, has_masks, facts, decisions);
  if (plan.column_axis) {
    if (plan.window > 0) choose_window(plan, nest, loads, target, decisions);
    choose_rows(plan, nest, loads, target, decisions);
    plan.columns_inside = plan.window == 0 && plan.row_axis && has_short_sums(nest, target);
    if (plan.window > 0 && makes_operand) choose_band(plan, nest, facts, target, decisions);
    has_masks = has_masks || (plan.band && target.vector_bits >= cost_model::kMaskedBits);
    plan.masks_columns =
        has_masks && plan.window > 0 && plan.row_axis && !as_int(nest.axes[*plan.column_axis].domain.extent);
  } else {
    choose_partial_lanes(plan, nest, loads, lanes, facts, decisions);
  }
  return plan;
}

void schedule_reduction(Schedule& sch, const BlockRV& rv, const std::optional<BlockRV>& epilogue,
                        const ReductionPlan& plan, const Blocks& producers) {
  Nest nest = ordered_nest(sch, rv);
  if (!plan.has_combiner) {
    if (nest.block->init) sch.apply(DecomposeReduction{rv, nest.loops[nest.num_spatial]});
    return fuse_parallel(sch, Loops(nest.loops.begin(), nest.loops.begin() + static_cast<long>(nest.num_spatial)),
                         plan.parallel);
  }
  if (plan.lanes > 1 && !plan.column_axis) return schedule_lanes(sch, nest, rv, epilogue, plan);
  schedule_tile(sch, nest, rv, epilogue, plan, producers);
}

std::vector<DecisionRow> reduction_decisions() {
  using namespace cost_model;
  return {{"vectors", "vectors of columns in a register tile",
           fmt::format("{}; 3 or 1 where they divide the columns; up to {} of a single row", kSideBySide,
                       kVectorsOfOneRow)},
          {"rows", "rows of a register tile",
           fmt::format(
               "(vector registers - vectors - {}) / vectors, at most {}; of symbolic rows {}; {} / window, at most {}, "
               "where a window slides along them",
               kElementRegisters, kMostRows, kMostSymbolicRows, kMostWindowSteps, kMostWindowRows)},
          {"band", "row tiles of a band, in which the operand of windows is made; 0: everything that these slide along",
           fmt::format("{} where the axes outside have fewer than {} iterations", kRowTilesInBand, kFewestCores)}};
}

}  // namespace relaxc
