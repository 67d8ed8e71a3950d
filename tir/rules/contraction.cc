#include "tir/rules/contraction.h"

#include <algorithm>

#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/cache_read.h"
#include "tir/primitives/cache_write.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/merge_epilogue.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/reverse_compute_at.h"
#include "tir/primitives/rfactor.h"
#include "tir/primitives/split.h"
#include "tir/primitives/tensorize.h"
#include "tir/primitives/transform_layout.h"
#include "tir/primitives/unroll.h"
#include "tir/primitives/vectorize.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {
std::vector<Ref<BufferLoad>> operands_of(const Block& block) {
  std::vector<Ref<BufferLoad>> result;
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store) return result;
  walk(store->value, [&](const Ref<BufferLoad>& load) {
    if (!same_node(load->buffer, store->buffer)) result.push_back(load);
  });
  return result;
}

bool mentions(const std::vector<Expr>& indices, const VarRef& var) {
  return std::any_of(indices.begin(), indices.end(), [&](const Expr& e) { return mentions(e, var); });
}

// Rows of a tile beside the vectors of an operand and a register or more for broadcasts. Loads ahead need some, too:
// with all registers taken LLVM spills an accumulator as soon as it unrolls.
int most_rows(int vectors, const Target& target) {
  int spare = target.num_vector_registers >= 32 ? 3 : 1;
  return std::max(1, (target.num_vector_registers - vectors - spare) / vectors);
}

// Whether a block with more dims than one reads a vector.
bool has_bias(const Block& block) {
  bool found = false;
  walk(block.body, [&](const BufferLoad& load) {
    found = found || (load.indices.size() == 1 && block.iter_vars.size() > 1 && load.indices[0].is<Var>());
  });
  return found;
}

// Rows in a block at most: their part of the operand without lanes stays in the second cache while all panels pass,
// unless they became so few that the panels would come from memory too often. The results of many rows at a stride of a
// power of two would meet in few of the cache's sets.
int64_t most_rows_in_block(int64_t row_bytes) {
  constexpr int64_t kBytes = 640 << 10, kLeast = 80, kMost = 320;
  return std::clamp(kBytes / row_bytes, kLeast, kMost);
}

// Row tiles in a block of rows. Blocks are also what threads share out, so the last one is to be no smaller. 0: panels
// are shared out instead, since there are few rows.
int64_t row_tiles_in_block(std::optional<int64_t> rows, int64_t panels, const ContractionTile& tile,
                           int64_t row_bytes) {
  constexpr int64_t kShares = 64, kFewPanels = 8;
  int64_t most = std::max<int64_t>(1, most_rows_in_block(row_bytes) / tile.rows);
  if (!rows) return most;
  int64_t tiles = ceil_div(*rows, tile.rows);
  if (tiles < 64 && panels >= kFewPanels) return 0;
  most = std::min(most, ceil_div(tiles * panels, kShares));
  int64_t best = most;
  auto missing = [&](int64_t in_block) { return ceil_div(tiles, in_block) * in_block - tiles; };
  for (int64_t fewer = most; fewer > most / 2; --fewer) {
    if (missing(fewer) < missing(best)) best = fewer;
  }
  return best;
}

// Parts of the reduction, where a block of rows and two panels (the next one is on its way) are too much for the second
// cache: then a part of each panel goes over the rows after the other.
int64_t reduction_parts(const Block& block, const ContractionTile& tile, std::optional<int64_t> rows,
                        int64_t row_bytes) {
  constexpr int64_t kCacheBytes = 2 << 20, kPartBytes = 256 << 10;
  auto depth = as_int(block.iter_vars.back().domain.extent);
  bool reduces_last = block.iter_vars.back().kind == IterKind::kReduce;
  int64_t panel_bytes = 2 * tile.panels * tile.vectors * tile.lanes * row_bytes;
  if (!depth || !reduces_last || !tile.has_rows || (rows && *rows <= tile.rows)) return 1;
  int64_t block_rows = most_rows_in_block(row_bytes);
  if (std::min(rows.value_or(block_rows), block_rows) * row_bytes + panel_bytes <= kCacheBytes) return 1;
  for (int64_t parts = ceil_div(panel_bytes, kPartBytes); parts <= 64; ++parts) {
    if (*depth % (parts * tile.group) == 0) return parts;
  }
  return 1;
}

// Copies an operand y[k, n] or y[n, k] into panels, as constant ones are laid out when compiling, where enough rows
// read it to be worth that.
bool pack_columns(Schedule& sch, const BlockRV& anchor, const Target& target) {
  constexpr int64_t kEnoughRows = 64;
  Ref<Block> block = cast<Block>(sch.get(anchor));
  std::vector<Ref<BufferLoad>> operands = operands_of(*block);
  if (operands.size() != 2 || operands[0]->indices.size() != 2 || operands[1]->indices.size() != 2) return false;
  const Buffer& operand = operands[1]->buffer;
  const Expr &row = operands[0]->indices[0], &depth = operands[0]->indices[1];
  size_t column_dim = same_node(operands[1]->indices[0], depth) ? 1 : 0;
  const BufferType& type = buffer_type(operand);
  int64_t columns = int64_t{2} * target.vector_lanes(32);
  auto width = as_int(type.shape[column_dim]), length = as_int(type.shape[1 - column_dim]);
  bool fits = type.dtype == kFloat32 && width && length && *width % columns == 0 && *length > 1 && row.is<Var>() &&
              same_node(operands[1]->indices[1 - column_dim], depth) && operands[1]->indices[column_dim].is<Var>();
  for (const IterVar& axis : block->iter_vars) {
    if (same_node(axis.var, row)) fits = fits && as_int(axis.domain.extent).value_or(0) >= kEnoughRows;
  }
  if (!fits) return false;
  int64_t position = 0;
  while (!same_node(block->reads[static_cast<size_t>(position)].buffer, operand)) ++position;
  BlockRV copy = sch.apply(CacheRead{anchor, position, "global"});
  Loops loops = sch.apply(GetLoops{copy});
  sch.apply(TransformLayout{copy, {"write", 0}, IndexMap(2, [&](const Exprs& at) {
                              return Exprs{floor_div(at[column_dim], columns), at[1 - column_dim],
                                           floor_mod(at[column_dim], columns)};
                            })});
  Loops panels = sch.apply(Split{loops[column_dim], {std::nullopt, columns}});
  sch.apply(Reorder{{panels[0], loops[1 - column_dim], panels[1]}});
  sch.apply(Vectorize{panels[1]});
  sch.apply(Parallel{panels[0]});
  return true;
}

// The loop of each axis, which are to be one to one.
Loops loops_of_axes(Schedule& sch, const BlockRV& anchor) {
  Ref<Block> block = cast<Block>(sch.get(anchor));
  Loops loops = sch.apply(GetLoops{anchor}), result;
  if (loops.size() != block->iter_vars.size())
    fail_to_fit(block.span(), "block '{}' has {} loops around {} axes; expected one for each", block->name,
                loops.size(), block->iter_vars.size());
  for (const IterVar& axis : block->iter_vars) {
    for (const LoopRV& loop : loops) {
      if (same_node(cast<For>(sch.get(loop))->var, axis.value)) result.push_back(loop);
    }
  }
  if (result.size() != loops.size()) fail_to_fit(block.span(), "the axes of block '{}' are not its loops", block->name);
  return result;
}

}  // namespace

std::optional<ContractionTile> choose_panel_tile(const Block& block, const Target& target) {
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store || operands.size() != 2 || operands[0]->indices.size() < 2) return std::nullopt;
  const BufferType &left = buffer_type(operands[0]->buffer), &right = buffer_type(operands[1]->buffer);
  if (right.shape.size() != 3 && right.shape.size() != 4) return std::nullopt;
  // y[j // columns, k // group, j % columns, k % group] and x[..., i, k].
  const Expr& depth = operands[0]->indices.back();
  const Binary* column = operands[1]->indices[2].as<Binary>();
  auto columns = as_int(right.shape[2]);
  if (!columns || !column || column->op != BinaryOp::kFloorMod || !is_int(column->b, *columns)) return std::nullopt;
  ContractionTile tile{0, 0, false, 1, target.vector_lanes(32), 1};
  if (right.shape.size() == 4) {
    const Binary* group = operands[1]->indices[3].as<Binary>();
    auto size = as_int(right.shape[3]);
    if (!group || !size || group->op != BinaryOp::kFloorMod || !same_node(group->a, depth)) return std::nullopt;
    tile.group = static_cast<int>(*size);
    bool bytes =
        target.has_int8_dot && tile.group == 4 && right.dtype == DType::int_(8) && dtype_of(store->value) == kInt32;
    bool halves =
        target.has_bfloat16_dot && tile.group == 2 && right.dtype == DType::bfloat16() && left.dtype == right.dtype;
    if (bytes) tile.intrin = fmt::format("dot_{}x4_{}s8s32_vnni", tile.lanes, left.dtype.is_uint() ? "u8" : "s8");
    if (halves) tile.intrin = fmt::format("dot_{}x2_bf16bf16f32_avx512", tile.lanes);
    if (tile.intrin.empty() || *columns % tile.lanes != 0) return std::nullopt;
  } else if (!same_node(operands[1]->indices[1], depth)) {
    return std::nullopt;
  }
  while (*columns % tile.lanes != 0) tile.lanes /= 2;
  tile.vectors = static_cast<int>(*columns) / tile.lanes;
  auto panels = as_int(right.shape[0]);
  bool even = panels && *panels % 2 == 0;
  // A single row is bound by memory: several panels side by side, each a stream of its own.
  tile.panels = tile.vectors == 2 && panels && *panels % 4 == 0 ? 4 : 1;
  const Expr& row = operands[0]->indices[operands[0]->indices.size() - 2];
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& axis = block.iter_vars[a];
    if (same_node(axis.var, column->a)) tile.column_axis = a;
    if (!same_node(axis.var, row) || is_int(axis.domain.extent, 1)) continue;
    tile.row_axis = a;
    tile.has_rows = true;
    // Two panels side by side load least for each multiply-add, unless all rows fit a tile on one, read once.
    auto rows = as_int(axis.domain.extent);
    int narrow = most_rows(tile.vectors, target), wide = most_rows(2 * tile.vectors, target);
    bool read_once = rows && *rows > wide && *rows <= narrow;
    tile.panels = tile.vectors == 2 && wide >= 4 && even && !read_once ? 2 : 1;
    int fit = tile.panels == 2 ? wide : narrow;
    tile.rows = static_cast<int>(std::clamp<int64_t>(rows.value_or(fit), 1, fit));
  }
  return tile;
}

namespace {

// The loops and blocks of a contraction while its schedule is made. Outside stand the other axes, row blocks and column
// tiles, which threads share; then row tiles, the reduction, and the tile inside.
class ContractionSchedule {
 public:
  ContractionSchedule(Schedule& sch, BlockRV anchor, const ContractionTile& tile)
      : sch_(sch), anchor_(std::move(anchor)), sum_(anchor_), tile_(tile), block_(cast<Block>(sch.get(anchor_))) {}

  void run() {
    loop_of_ = loops_of_axes(sch_, anchor_);
    behind_ = sch_.apply(MergeEpilogue{anchor_});
    if (tile_.has_rows) num_rows_ = as_int(block_->iter_vars[tile_.row_axis].domain.extent);
    int64_t row_bytes = bytes_of_row();
    sum_in_parts(row_bytes);
    leave_room_for_bias();
    panel_ = panel();
    split_columns();
    split_rows(row_bytes);
    sort_loops();
    split_reduction();
    reorder();
    take_result();
    if (!reduce_.empty()) sch_.apply(DecomposeReduction{anchor_, reduce_.front()});
    if (!parts_.empty()) add_parts_up();
    if (!tile_.intrin.empty()) sch_.apply(Tensorize{columns_[2], tile_.intrin, false});
    share_out();
  }

 private:
  // Of the operand without lanes.
  int64_t bytes_of_row() const {
    int64_t bytes = dtype_of(operands_of(*block_)[0]).bytes();
    for (const IterVar& axis : block_->iter_vars) {
      if (axis.kind == IterKind::kReduce) bytes *= as_int(axis.domain.extent).value_or(1);
    }
    return bytes;
  }

  // Each part of the reduction is a sum of its own, over a tile; those are added up, and the epilogue takes a panel's.
  void sum_in_parts(int64_t row_bytes) {
    int64_t count = reduction_parts(*block_, tile_, num_rows_, row_bytes);
    if (count <= 1) return;
    if (behind_.size() != 1) behind_ = {sch_.apply(CacheWrite{sum_, 0, "global"})};
    parts_ = sch_.apply(Split{loop_of_.back(), {count, std::nullopt}});
    anchor_ = sch_.apply(Rfactor{parts_[0], 0});
    block_ = cast<Block>(sch_.get(anchor_));
    loop_of_ = loops_of_axes(sch_, anchor_);
    ++tile_.row_axis;
    ++tile_.column_axis;
  }

  // A bias is loaded once for all row tiles: LLVM keeps its vectors in registers, at the cost of accumulators if all
  // are taken.
  void leave_room_for_bias() {
    bool several_tiles = tile_.has_rows && tile_.rows > 1 && (!num_rows_ || *num_rows_ > tile_.rows);
    if (several_tiles && tile_.panels == 2 && parts_.empty() && behind_.size() == 1 &&
        has_bias(*cast<Block>(sch_.get(behind_[0]))))
      --tile_.rows;
  }

  // The operand with lanes: its panels are what the caches are to hold.
  std::string panel() const {
    std::vector<Ref<BufferLoad>> operands = operands_of(*block_);
    for (const Ref<BufferLoad>& load : operands) {
      if (mentions(load->indices, block_->iter_vars[tile_.column_axis].var)) return load->buffer->name;
    }
    return operands[0]->buffer->name;
  }

  void split_columns() {
    columns_ = sch_.apply(Split{loop_of_[tile_.column_axis], {std::nullopt, tile_.vectors, tile_.lanes}});
    if (tile_.panels == 1) return;
    panels_ = sch_.apply(Split{columns_[0], {std::nullopt, tile_.panels}});
    columns_[0] = panels_[0];
  }

  void split_rows(int64_t row_bytes) {
    if (!tile_.has_rows) return;
    auto num_columns = as_int(block_->iter_vars[tile_.column_axis].domain.extent);
    int64_t num_panels = ceil_div(num_columns.value_or(1 << 30), tile_.panels * tile_.vectors * tile_.lanes);
    int64_t tiles_in_block = row_tiles_in_block(num_rows_, num_panels, tile_, row_bytes);
    LoopRV row_loop = loop_of_[tile_.row_axis];
    if (tiles_in_block > 0) {
      row_blocks_ = sch_.apply(Split{row_loop, {std::nullopt, tiles_in_block * tile_.rows}});
      row_loop = row_blocks_[1];
    }
    rows_ = sch_.apply(Split{row_loop, {std::nullopt, tile_.rows}});
  }

  // Neighbouring row tiles share a panel of columns.
  void sort_loops() {
    for (size_t a = 0; a < loop_of_.size(); ++a) {
      bool is_other = a != tile_.column_axis && !(tile_.has_rows && a == tile_.row_axis);
      if (block_->iter_vars[a].kind == IterKind::kReduce) {
        reduce_.push_back(loop_of_[a]);
      } else if (is_other && (parts_.empty() || a > 0)) {
        shared_.push_back(loop_of_[a]);
      }
    }
    if (!row_blocks_.empty()) shared_.push_back(row_blocks_[0]);
    shared_.push_back(columns_[0]);
    outer_ = shared_;
    if (!parts_.empty()) outer_.push_back(parts_[0]);
    if (tile_.has_rows) outer_.push_back(rows_[0]);
  }

  // The innermost reduce loop in steps: fewer branches, and loads ahead of their use. More accumulators leave no
  // registers for loads ahead; there only a long loop is worth the compile time of large steps.
  void split_reduction() {
    auto depth = as_int(block_->iter_vars.back().domain.extent);
    if (tile_.group > 1) {
      group_ = sch_.apply(Split{reduce_.back(), {std::nullopt, tile_.group}});
      reduce_.back() = group_[0];
      group_.erase(group_.begin());
      depth = *depth / tile_.group;
    }
    if (is_panel_used_once() || !depth || block_->iter_vars.back().kind != IterKind::kReduce) return;
    constexpr int64_t kLong = 2048;
    bool is_wide = tile_.panels > 1 || tile_.vectors > 2;
    for (int step : {copies_tails() || (is_wide && *depth < kLong) ? 4 : 8, 4, 2}) {
      if (*depth % step != 0 || *depth == step) continue;
      steps_ = sch_.apply(Split{reduce_.back(), {std::nullopt, step}});
      reduce_.back() = steps_[0];
      reduce_.push_back(steps_[1]);
      return;
    }
  }
  // The tile is written once for every number of rows that the last one may have: the less of it is unrolled, the
  // better.
  bool copies_tails() const { return tile_.has_rows && !num_rows_; }
  // One that reads a panel once waits for memory.
  bool is_panel_used_once() const { return !tile_.has_rows || (num_rows_ && *num_rows_ <= tile_.rows); }

  void reorder() {
    Loops order = outer_;
    order.insert(order.end(), reduce_.begin(), reduce_.end());
    if (tile_.has_rows) order.push_back(rows_[1]);
    if (!panels_.empty()) order.push_back(panels_[1]);
    order.insert(order.end(), {columns_[1], columns_[2]});
    order.insert(order.end(), group_.begin(), group_.end());
    sch_.apply(Reorder{order});
    if (!steps_.empty()) sch_.apply(Unroll{steps_[1]});
    if (!panels_.empty()) sch_.apply(Unroll{panels_[1]});
    if (copies_tails()) sch_.apply(Annotate{rows_[0], "exact_tails", true});
  }

  // The tile's result lives in registers (memory of a tile's size, once lowered); the last block behind the anchor, or
  // the sum of parts, takes it from there.
  void take_result() {
    if (behind_.size() != 1) behind_ = {sch_.apply(CacheWrite{anchor_, 0, "local"})};
    if (parts_.empty() && copies_tails() && is_long(*cast<Block>(sch_.get(behind_[0])))) {
      take(sch_.apply(CacheWrite{anchor_, 0, "local"}), true);
      take(behind_[0], false);
    } else {
      take(parts_.empty() ? behind_[0] : sum_, true);
    }
    keep_in_registers(tile_.has_rows ? &rows_[1] : nullptr, columns_[1], columns_[2]);
  }
  // All rows of the tile at once, or in a loop.
  void take(const BlockRV& taker, bool at_once) {
    sch_.apply(ReverseComputeAt{taker, outer_.back(), true});
    Loops inner = sch_.apply(GetLoops{taker});
    inner.erase(inner.begin(), inner.begin() + static_cast<long>(outer_.size()));
    // Its loops follow its axes, which are the anchor's spatial ones.
    size_t column = 0, row = 0, spatial = 0;
    for (size_t a = 0; a < block_->iter_vars.size(); ++a) {
      if (block_->iter_vars[a].kind != IterKind::kSpatial) continue;
      if (a == tile_.column_axis) column = spatial;
      if (tile_.has_rows && a == tile_.row_axis) row = spatial;
      ++spatial;
    }
    if (inner.size() == spatial) {
      LoopRV row_loop = inner[row];
      Loops vectors = sch_.apply(Split{inner[column], {std::nullopt, tile_.vectors, tile_.lanes}});
      sch_.apply(Unroll{vectors[0]});
      Loops inside;
      for (size_t d = 0; d < spatial; ++d) {
        if (d != column && !(tile_.has_rows && d == row)) inside.push_back(inner[d]);
      }
      if (tile_.has_rows) inside.push_back(row_loop);
      inside.insert(inside.end(), vectors.begin(), vectors.end());
      if (inside.size() > 1) sch_.apply(Reorder{inside});
      keep_in_registers(tile_.has_rows && at_once ? &row_loop : nullptr, vectors[1], vectors[2]);
    }
  }
  void keep_in_registers(const LoopRV* row, const LoopRV& vector, const LoopRV& lane) {
    if (row) sch_.apply(Unroll{*row});
    sch_.apply(Unroll{vector});
    if (tile_.lanes > 1) sch_.apply(Vectorize{lane});
  }

  void add_parts_up() {
    sch_.apply(DecomposeReduction{sum_, parts_[0]});
    sch_.apply(ReverseComputeAt{behind_[0], columns_[0], true});
    Loops lanes = sch_.apply(Split{sch_.apply(GetLoops{behind_[0]}).back(), {std::nullopt, tile_.lanes}});
    if (tile_.lanes > 1) sch_.apply(Vectorize{lanes[1]});
  }

  void share_out() {
    LoopRV parallel = shared_.size() > 1 ? sch_.apply(Fuse{shared_}) : shared_[0];
    // Panels come from memory: the next one while this one is used, or, where a panel is used once, some rows ahead.
    if (is_panel_used_once() && !reduce_.empty()) {
      sch_.apply(Annotate{reduce_[0], "prefetch_ahead", AttrList{panel_, tile_.has_rows ? 64 : 16}});
    } else {
      sch_.apply(Annotate{parallel, "prefetch", AttrList{panel_}});
      if (!parts_.empty()) sch_.apply(Annotate{parts_[0], "prefetch", AttrList{panel_}});
      // With rows at addresses of their own, LLVM spills.
      if (num_rows_) sch_.apply(Annotate{parts_.empty() ? rows_[0] : parallel, "prefetch_own", AttrList{result()}});
    }
    // The row loop has its tails; full blocks apart would only double the code.
    if (tile_.has_rows && !num_rows_) sch_.apply(Annotate{parallel, "keep_whole", true});
    sch_.apply(Parallel{parallel});
  }

  // What the last block writes: stores that miss the cache would hold the next tile's loads up.
  std::string result() const { return cast<Block>(sch_.get(behind_[0]))->writes[0].buffer->name; }

  Schedule& sch_;
  BlockRV anchor_, sum_;  // the block that multiplies, and the one that has the whole sum
  ContractionTile tile_;
  Ref<Block> block_;  // the anchor as it was before its loops were split
  std::optional<int64_t> num_rows_;
  std::string panel_;
  Blocks behind_;                                                       // what follows the sum
  Loops loop_of_;                                                       // by axis
  Loops columns_, panels_, row_blocks_, rows_, parts_, group_, steps_;  // as they were split, outermost first
  Loops shared_, outer_, reduce_;  // among threads; around the reduction; the reduction
};

}  // namespace

void schedule_contraction(Schedule& sch, BlockRV anchor, const ContractionTile& tile) {
  ContractionSchedule(sch, std::move(anchor), tile).run();
}

std::optional<ContractionTile> prepare_panels(Schedule& sch, const BlockRV& anchor, const Target& target) {
  auto tile = choose_panel_tile(*cast<Block>(sch.get(anchor)), target);
  if (!tile && pack_columns(sch, anchor, target)) tile = choose_panel_tile(*cast<Block>(sch.get(anchor)), target);
  return tile;
}

ScheduleRule contraction_rule(const Target& target) {
  auto contraction = [target](Schedule& sch) {
    BlockRV anchor = sch.apply(GetBlock{"matmul"});
    auto tile = prepare_panels(sch, anchor, target);
    if (!tile) fail_to_fit(sch.get(anchor).span(), "no operand lies in panels of a tile's columns");
    schedule_contraction(sch, anchor, *tile);
  };
  // Few rows are tiles of their own, where a second tile of the general form would read each panel again for less than
  // its own number of rows. Each costs 8 ms of compile time.
  auto apart = [target](const Block& anchor) {
    std::vector<std::pair<VarRef, int64_t>> result;
    auto tile = choose_panel_tile(anchor, target);
    if (!tile || !tile->has_rows || tile->group > 1) return result;
    auto rows = try_cast<Var>(anchor.iter_vars[tile->row_axis].domain.extent);
    if (!rows) return result;
    result.emplace_back(*rows, 1);
    int most = std::min(tile->rows + 2, most_rows(tile->vectors, target));
    for (int few = tile->rows + 1; few <= most; ++few) result.emplace_back(*rows, few);
    return result;
  };
  return {"contraction", "", "matmul", {}, contraction, apart};
}

}  // namespace relaxc
