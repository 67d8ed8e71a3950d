#include "tir/rules/contraction.h"

#include <algorithm>
#include <cmath>

#include "support/checked_math.h"
#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
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

// Rows in a block at most. Their part of the operand without lanes takes five eighths of the L2 cache, in which it
// stays while all panels pass; the rest is for panels and results. At least so many that arithmetic takes as long as a
// panel that comes from memory: a row does one product for each 4 bytes. Rows shorter than half a page count as that
// long: results at such a stride meet in few of the cache's sets.
int64_t most_rows_in_block(int64_t row_bytes, const Target& target) {
  constexpr int64_t kHalfPage = 2048;
  int64_t block_bytes = target.l2.bytes * 5 / 8;
  auto least = static_cast<int64_t>(
      std::ceil(4 * static_cast<double>(target.products_per_cycle()) / target.memory_bytes_per_cycle));
  return std::max({least, block_bytes / std::max(row_bytes, kHalfPage), int64_t{1}});
}

// Pieces of work enough for all threads to end at about the same time. An artifact may run on a larger machine than the
// one it was compiled for.
int64_t enough_shares(const Target& target) { return 4 * std::max<int64_t>(target.cores, 16); }

// Row tiles in a block of rows. Blocks are also what threads share out, so the last one is to be no smaller. 0: panels
// are shared out instead, since there are few rows.
int64_t row_tiles_in_block(std::optional<int64_t> rows, int64_t panels, const ContractionTile& tile, int64_t row_bytes,
                           const Target& target) {
  int64_t most = std::max<int64_t>(1, most_rows_in_block(row_bytes, target) / tile.rows);
  if (!rows) return most;
  int64_t tiles = ceil_div(*rows, tile.rows), shares = enough_shares(target);
  if (tiles < shares && panels >= shares / 8) return 0;
  most = std::min(most, ceil_div(tiles * panels, shares));
  int64_t best = most;
  auto missing = [&](int64_t in_block) { return ceil_div(tiles, in_block) * in_block - tiles; };
  for (int64_t fewer = most; fewer > most / 2; --fewer) {
    if (missing(fewer) < missing(best)) best = fewer;
  }
  return best;
}

// Parts of the reduction, where a block of rows and two panels (the next one is on its way) are twice the L2 cache:
// then a part of each panel, a quarter of the cache, goes over the rows after the other.
constexpr int64_t kMostParts = 64;
int64_t reduction_parts(const std::vector<int64_t>& candidates, const ContractionTile& tile,
                        std::optional<int64_t> rows, int64_t row_bytes, const Target& target) {
  int64_t panel_bytes = 2 * tile.panels * tile.columns() * row_bytes;
  if (!tile.has_rows || (rows && *rows <= tile.rows)) return 1;
  int64_t block_rows = most_rows_in_block(row_bytes, target);
  if (std::min(rows.value_or(block_rows), block_rows) * row_bytes + panel_bytes <= 2 * target.l2.bytes) return 1;
  int64_t least = ceil_div(panel_bytes, target.l2.bytes / 4);
  auto found = std::find_if(candidates.begin(), candidates.end(), [&](int64_t parts) { return parts >= least; });
  return found == candidates.end() ? 1 : *found;
}

// Bytes of the reduction in a row of the operand without lanes.
int64_t bytes_of_row(const Block& block) {
  int64_t bytes = dtype_of(operands_of(block)[0]).bytes();
  for (const IterVar& axis : block.iter_vars) {
    if (axis.kind == IterKind::kReduce) bytes *= as_int(axis.domain.extent).value_or(1);
  }
  return bytes;
}

// A right operand y[k, n] or y[n, k] of float32 that can be copied into panels, as constant ones are laid out when
// compiling.
struct PlainOperand {
  Buffer buffer;
  size_t column_dim;
  int64_t columns, panels;
  VarRef row, column;
};
std::optional<PlainOperand> match_plain_operand(const Block& block, const Target& target) {
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  if (operands.size() != 2 || operands[0]->indices.size() != 2 || operands[1]->indices.size() != 2) return std::nullopt;
  const Expr& depth = operands[0]->indices[1];
  size_t column_dim = same_node(operands[1]->indices[0], depth) ? 1 : 0;
  const BufferType& type = buffer_type(operands[1]->buffer);
  int64_t columns = int64_t{2} * target.vector_lanes(32);
  auto width = as_int(type.shape[column_dim]), length = as_int(type.shape[1 - column_dim]);
  auto row = try_cast<Var>(operands[0]->indices[0]), column = try_cast<Var>(operands[1]->indices[column_dim]);
  bool is_matrix = type.dtype == kFloat32 && width && length && *width % columns == 0 && *length > 1;
  if (!is_matrix || !row || !column || !same_node(operands[1]->indices[1 - column_dim], depth)) return std::nullopt;
  return PlainOperand{operands[1]->buffer, column_dim, columns, *width / columns, *row, *column};
}

// Whether so many rows read the operand that copying it pays: a copied element takes about two cycles.
bool pays_for_copy(const Block& block, const PlainOperand& operand, const Target& target) {
  return std::any_of(block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVar& axis) {
    return same_node(axis.var, operand.row) &&
           as_int(axis.domain.extent).value_or(0) >= 2 * target.products_per_cycle();
  });
}

void copy_into_panels(Schedule& sch, const BlockRV& anchor, const PlainOperand& operand) {
  Ref<Block> block = cast<Block>(sch.get(anchor));
  size_t column_dim = operand.column_dim;
  int64_t position = 0, columns = operand.columns;
  while (!same_node(block->reads[static_cast<size_t>(position)].buffer, operand.buffer)) ++position;
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

namespace {

// An operand in panels: how many columns a panel has, how many panels there are, which axes run over them.
struct Panels {
  ContractionTile tile;  // axes, lanes, vectors and the instruction
  std::optional<int64_t> count;
  Expr row;
};

// The instruction that sums `group` products of the operands' dtypes in each lane; empty: the target has none.
std::string dot_instruction(const ContractionTile& tile, DType left, DType right, DType result, const Target& target) {
  bool bytes = target.has_int8_dot && tile.group == 4 && right == DType::int_(8) && result == kInt32;
  bool halves = target.has_bfloat16_dot && tile.group == 2 && right == DType::bfloat16() && left == right;
  if (bytes) return fmt::format("dot_{}x4_{}s8s32_vnni", tile.lanes, left.is_uint() ? "u8" : "s8");
  return halves ? fmt::format("dot_{}x2_bf16bf16f32_avx512", tile.lanes) : "";
}

size_t axis_position(const Block& block, const Expr& var) {
  size_t a = 0;
  while (a < block.iter_vars.size() && !same_node(block.iter_vars[a].var, var)) ++a;
  return a;
}

// y[j // columns, k // group, j % columns, k % group] and x[..., i, k].
std::optional<Panels> match_panels(const Block& block, const Target& target) {
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store || operands.size() != 2 || operands[0]->indices.size() < 2) return std::nullopt;
  const std::vector<Expr>&x = operands[0]->indices, &y = operands[1]->indices;
  ContractionTile tile{0, 0, false, 1, target.vector_lanes(32), 1};
  if (auto plain = match_plain_operand(block, target)) {
    tile.vectors = static_cast<int>(plain->columns) / tile.lanes;
    tile.column_axis = axis_position(block, plain->column);
    tile.copies_operand = true;
    return Panels{tile, plain->panels, x[x.size() - 2]};
  }
  const BufferType &left = buffer_type(operands[0]->buffer), &right = buffer_type(operands[1]->buffer);
  if (right.shape.size() != 3 && right.shape.size() != 4) return std::nullopt;
  const Binary* column = y[2].as<Binary>();
  auto columns = as_int(right.shape[2]);
  if (!columns || !column || column->op != BinaryOp::kFloorMod || !is_int(column->b, *columns)) return std::nullopt;
  if (right.shape.size() == 4) {
    const Binary* group = y[3].as<Binary>();
    auto size = as_int(right.shape[3]);
    if (!group || !size || group->op != BinaryOp::kFloorMod || !same_node(group->a, x.back())) return std::nullopt;
    tile.group = static_cast<int>(*size);
    tile.intrin = dot_instruction(tile, left.dtype, right.dtype, dtype_of(store->value), target);
    if (tile.intrin.empty() || *columns % tile.lanes != 0) return std::nullopt;
  } else if (!same_node(y[1], x.back())) {
    return std::nullopt;
  }
  while (*columns % tile.lanes != 0) tile.lanes /= 2;
  tile.vectors = static_cast<int>(*columns) / tile.lanes;
  tile.column_axis = axis_position(block, column->a);
  return Panels{tile, as_int(right.shape[0]), x[x.size() - 2]};
}

// Panels side by side. A single row is bound by memory: several, each a stream of its own. Else two load least for each
// multiply-add, unless all rows fit a tile on one, read once.
int64_t panels_side_by_side(const ContractionTile& tile, std::optional<int64_t> count, std::optional<int64_t> rows,
                            const Target& target) {
  if (tile.vectors != 2 || !count) return 1;
  if (!tile.has_rows) return *count % 4 == 0 ? 4 : 1;
  int narrow = most_rows(tile.vectors, target), wide = most_rows(2 * tile.vectors, target);
  bool read_once = rows && *rows > wide && *rows <= narrow;
  return wide >= 4 && *count % 2 == 0 && !read_once ? 2 : 1;
}

// A bias is loaded once for all row tiles: LLVM keeps its vectors in registers, at the cost of accumulators if all are
// taken.
bool holds_bias(const ContractionTile& tile, std::optional<int64_t> rows, const std::vector<Ref<Block>>& behind) {
  bool several_tiles = tile.has_rows && tile.rows > 1 && (!rows || *rows > tile.rows);
  return several_tiles && tile.panels == 2 &&
         std::any_of(behind.begin(), behind.end(), [](const Ref<Block>& block) { return has_bias(*block); });
}

// The innermost reduce loop in steps: fewer branches, and loads ahead of their use. More accumulators leave no
// registers for loads ahead; there only a long loop is worth the compile time of large steps. Of symbolic rows the tile
// is written once for every number that the last one may have: the less of it is unrolled, the better. A panel that is
// read once comes from memory, which is what takes time.
int64_t step_of_reduction(const std::vector<int64_t>& candidates, int64_t depth, const ContractionTile& tile,
                          std::optional<int64_t> rows) {
  constexpr int64_t kLong = 2048;
  bool is_used_once = !tile.has_rows || (rows && *rows <= tile.rows);
  if (is_used_once) return 1;
  bool is_wide = tile.panels > 1 || tile.vectors > 2;
  int64_t most = !rows || (is_wide && depth < kLong) ? 4 : 8;
  int64_t best = 1;
  for (int64_t step : candidates) best = step <= most && step != depth ? step : best;
  return best;
}

}  // namespace

std::optional<ContractionTile> choose_contraction(const Block& block, const std::vector<Ref<Block>>& behind,
                                                  const Target& target, Decisions& decisions) {
  auto panels = match_panels(block, target);
  if (!panels) return std::nullopt;
  ContractionTile tile = panels->tile;
  if (tile.copies_operand) {
    bool pays = pays_for_copy(block, *match_plain_operand(block, target), target);
    if (!decisions.flag("copy_operand", pays)) return std::nullopt;
  }
  size_t row_axis = axis_position(block, panels->row);
  tile.has_rows = row_axis < block.iter_vars.size() && !is_int(block.iter_vars[row_axis].domain.extent, 1);
  tile.row_axis = tile.has_rows ? row_axis : 0;
  auto num_rows = tile.has_rows ? as_int(block.iter_vars[row_axis].domain.extent) : std::optional<int64_t>(1);

  std::vector<int64_t> columns;
  for (int64_t side_by_side : {1, 2, 4}) {
    if (side_by_side == 1 || (panels->count && *panels->count % side_by_side == 0))
      columns.push_back(side_by_side * tile.columns());
  }
  int64_t formula = panels_side_by_side(tile, panels->count, num_rows, target) * tile.columns();
  tile.panels = static_cast<int>(decisions.number("columns", columns, formula) / tile.columns());

  int64_t row_bytes = bytes_of_row(block);
  int most = most_rows(tile.panels * tile.vectors, target);
  tile.rows = tile.has_rows ? static_cast<int>(std::clamp<int64_t>(num_rows.value_or(most), 1, most)) : 1;
  const IterVar& last = block.iter_vars.back();
  auto depth = last.kind == IterKind::kReduce ? as_int(last.domain.extent) : std::nullopt;
  bool divides = tile.has_rows && depth && *depth % tile.group == 0;
  std::vector<int64_t> parts = divides ? divisors_between(1, kMostParts, *depth / tile.group) : std::vector<int64_t>{1};
  tile.parts = decisions.number("reduction_parts", parts, reduction_parts(parts, tile, num_rows, row_bytes, target));
  if (tile.has_rows) {
    int64_t rows = tile.rows - (tile.parts == 1 && holds_bias(tile, num_rows, behind) ? 1 : 0);
    tile.rows = static_cast<int>(decisions.number("rows", numbers_between(1, most), rows));
    auto num_columns = as_int(block.iter_vars[tile.column_axis].domain.extent);
    int64_t num_panels = ceil_div(num_columns.value_or(1 << 30), tile.panels * tile.columns());
    int64_t tiles = row_tiles_in_block(num_rows, num_panels, tile, row_bytes, target);
    tile.row_tiles = decisions.number("row_tiles", numbers_between(0, std::max<int64_t>(tiles, 64)), tiles);
  }
  if (depth) {
    int64_t steps = *depth / tile.parts / tile.group;
    std::vector<int64_t> candidates;
    for (int64_t step : {1, 2, 4, 8}) {
      if (steps % step == 0) candidates.push_back(step);
    }
    tile.step = decisions.number("step", candidates, step_of_reduction(candidates, steps, tile, num_rows));
  }
  bool is_long_behind = std::any_of(behind.begin(), behind.end(), [](const Ref<Block>& b) { return is_long(*b); });
  bool loops = tile.parts == 1 && tile.has_rows && !num_rows && is_long_behind;
  tile.unrolls_epilogue = decisions.word("epilogue", {"unrolled", "loop"}, loops ? "loop" : "unrolled") == "unrolled";
  return tile;
}

std::vector<DecisionRow> contraction_decisions() {
  return {
      {"copy_operand", "copy a computed right operand into panels first", "rows >= 2 * products per cycle"},
      {"columns", "columns of a register tile, one panel or several", "two panels; of a single row four"},
      {"rows", "rows of a register tile", "(vector registers - vectors of columns - spare) / vectors of columns"},
      {"row_tiles", "row tiles in a block of rows; 0: threads share panels", "rows * row bytes = 5/8 L2 (BLIS's mc)"},
      {"reduction_parts", "parts of the reduction, one after the other", "a part of a panel = 1/4 L2 (BLIS's kc)"},
      {"step", "iterations of the reduction unrolled", "8; with more accumulators 4, of a depth of 2048 or more 8"},
      {"epilogue", "the blocks behind are \"unrolled\" in the tile, or a \"loop\" over its rows",
       "\"loop\" where rows are symbolic and the blocks are long"},
      {"specialize", "symbolic rows that have code of their own", "1, and those just above a tile"}};
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
    sum_in_parts();
    panel_ = panel();
    split_columns();
    split_rows();
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
  // Each part of the reduction is a sum of its own, over a tile; those are added up, and the epilogue takes a panel's.
  void sum_in_parts() {
    if (tile_.parts <= 1) return;
    if (behind_.size() != 1) behind_ = {sch_.apply(CacheWrite{sum_, 0, "global"})};
    parts_ = sch_.apply(Split{loop_of_.back(), {tile_.parts, std::nullopt}});
    anchor_ = sch_.apply(Rfactor{parts_[0], 0});
    block_ = cast<Block>(sch_.get(anchor_));
    loop_of_ = loops_of_axes(sch_, anchor_);
    ++tile_.row_axis;
    ++tile_.column_axis;
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

  void split_rows() {
    if (!tile_.has_rows) return;
    LoopRV row_loop = loop_of_[tile_.row_axis];
    if (tile_.row_tiles > 0) {
      row_blocks_ = sch_.apply(Split{row_loop, {std::nullopt, tile_.row_tiles * tile_.rows}});
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

  void split_reduction() {
    if (tile_.group > 1) {
      group_ = sch_.apply(Split{reduce_.back(), {std::nullopt, tile_.group}});
      reduce_.back() = group_[0];
      group_.erase(group_.begin());
    }
    if (tile_.step == 1) return;
    steps_ = sch_.apply(Split{reduce_.back(), {std::nullopt, tile_.step}});
    reduce_.back() = steps_[0];
    reduce_.push_back(steps_[1]);
  }
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
    if (parts_.empty() && !tile_.unrolls_epilogue) {
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

void schedule_contraction(Schedule& sch, BlockRV anchor, const Target& target, const ContractionTile& tile) {
  if (tile.copies_operand) copy_into_panels(sch, anchor, *match_plain_operand(*cast<Block>(sch.get(anchor)), target));
  ContractionSchedule(sch, std::move(anchor), tile).run();
}

namespace {

// The anchor and the blocks behind it in a program of plain nests.
struct Product {
  Ref<Block> block;
  std::vector<Ref<Block>> behind;
};
std::optional<Product> find_product(const PrimFuncRef& program) {
  auto anchor = find_anchor(program, "matmul");
  auto nests = find_nests(program);
  if (!anchor || !nests) return std::nullopt;
  auto at = std::find_if(nests->begin(), nests->end(), [&](const Ref<Block>& b) { return same_node(b, *anchor); });
  if (at == nests->end()) return std::nullopt;
  return Product{*anchor, {at + 1, nests->end()}};
}

std::optional<VarRef> symbolic_rows(const Product& product, const ContractionTile& tile) {
  if (!tile.has_rows || tile.group > 1) return std::nullopt;
  return try_cast<Var>(product.block->iter_vars[tile.row_axis].domain.extent);
}

// Few rows have code of their own where a second tile of the general form would read each panel again for less than its
// own number of rows. Each costs 8 ms of compile time.
std::vector<int64_t> rows_with_own_code(int64_t rows, int64_t vectors, const Target& target) {
  std::vector<int64_t> result = {1};
  int64_t most = std::min<int64_t>(rows + 2, most_rows(static_cast<int>(vectors), target));
  for (int64_t few = rows + 1; few <= most; ++few) result.push_back(few);
  return result;
}

std::optional<std::string> fits_contraction(const PrimFuncRef& program, const Target& target) {
  auto product = find_product(program);
  if (!product) return "it is not a list of plain nests with a block of 'matmul'";
  Decisions none;
  if (!choose_contraction(*product->block, product->behind, target, none))
    return "no operand of 'matmul' lies in panels of a tile's columns, or is worth a copy into panels";
  return std::nullopt;
}

void decide_contraction(const PrimFuncRef& program, const Target& target, Decisions& decisions) {
  auto product = find_product(program);
  auto tile = product ? choose_contraction(*product->block, product->behind, target, decisions) : std::nullopt;
  if (!tile || !symbolic_rows(*product, *tile)) return;
  // The formula counts from a whole tile, which a bias leaves no room for.
  int64_t whole = most_rows(tile->panels * tile->vectors, target);
  decisions.list("specialize", numbers_between(1, most_rows(1, target)),
                 rows_with_own_code(whole, tile->vectors, target));
}

}  // namespace

ScheduleRule contraction_rule() {
  return {.name = "contraction",
          .op = "matmul",
          .apply =
              [](Schedule& sch, const Target& target, Decisions& decisions) {
                BlockRV anchor = sch.apply(GetBlock{"matmul"});
                auto product = find_product(sch.function());
                auto tile =
                    product ? choose_contraction(*product->block, product->behind, target, decisions) : std::nullopt;
                if (!tile) fail_to_fit(sch.get(anchor).span(), "no operand lies in panels of a tile's columns");
                schedule_contraction(sch, anchor, target, *tile);
              },
          .fits = fits_contraction,
          .space = decide_contraction,
          .specialized_dim = [](const PrimFuncRef& program, const Target& target) -> std::optional<VarRef> {
            Decisions none;
            auto product = find_product(program);
            auto tile = product ? choose_contraction(*product->block, product->behind, target, none) : std::nullopt;
            return tile ? symbolic_rows(*product, *tile) : std::nullopt;
          },
          .doc = "a product of matrices whose right operand lies in panels or is worth copying into them",
          .decisions = contraction_decisions()};
}

}  // namespace relaxc
