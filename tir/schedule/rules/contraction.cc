#include "tir/schedule/rules/contraction.h"

#include <algorithm>

#include "support/checked_math.h"
#include "support/diagnostic.h"

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
  return std::any_of(indices.begin(), indices.end(), [&](const Expr& e) { return scheduling::mentions(e, var); });
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

// A block's part of the operand without lanes.
constexpr int64_t kBlockBytes = 768 << 10;

// Row tiles in a block of rows. A block's part of the other operand stays in the second cache while all panels pass;
// blocks are also what threads share out, so the last one is to be no smaller. The results of many rows at a stride of
// a power of two would meet in few of the cache's sets. 0: panels are shared out instead, since there are few rows.
int64_t row_tiles_in_block(std::optional<int64_t> rows, int64_t panels, const ContractionTile& tile,
                           int64_t row_bytes) {
  constexpr int64_t kShares = 64, kFewPanels = 8, kMostRows = 320;
  int64_t most = std::max<int64_t>(1, std::min(kBlockBytes / row_bytes, kMostRows) / tile.rows);
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
  if (std::min(rows.value_or(kBlockBytes) * row_bytes, kBlockBytes) + panel_bytes <= kCacheBytes) return 1;
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
  BlockRV copy = sch.cache_read(anchor, position, "global");
  Loops loops = sch.get_loops(copy);
  sch.transform_layout(copy, {"write", 0}, IndexMap(2, [&](const Exprs& at) {
                         return Exprs{floor_div(at[column_dim], columns), at[1 - column_dim],
                                      floor_mod(at[column_dim], columns)};
                       }));
  Loops panels = sch.split(loops[column_dim], {std::nullopt, columns});
  sch.reorder({panels[0], loops[1 - column_dim], panels[1]});
  sch.vectorize(panels[1]);
  sch.parallel(panels[0]);
  return true;
}

// The loop of each axis, which are to be one to one.
Loops loops_of_axes(Schedule& sch, const BlockRV& anchor) {
  Ref<Block> block = cast<Block>(sch.get(anchor));
  Loops loops = sch.get_loops(anchor), result;
  if (loops.size() != block->iter_vars.size())
    fail(block.span(), "block '{}' has {} loops around {} axes; expected one for each", block->name, loops.size(),
         block->iter_vars.size());
  for (const IterVar& axis : block->iter_vars) {
    for (const LoopRV& loop : loops) {
      if (same_node(cast<For>(sch.get(loop))->var, axis.value)) result.push_back(loop);
    }
  }
  if (result.size() != loops.size()) fail(block.span(), "the axes of block '{}' are not its loops", block->name);
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

void schedule_contraction(Schedule& sch, BlockRV anchor, const ContractionTile& chosen) {
  ContractionTile tile = chosen;
  Ref<Block> block = cast<Block>(sch.get(anchor));
  Loops loop_of = loops_of_axes(sch, anchor);

  Blocks behind = sch.merge_epilogue(anchor);
  std::optional<int64_t> num_rows;
  if (tile.has_rows) num_rows = as_int(block->iter_vars[tile.row_axis].domain.extent);
  // One row of the operand without lanes.
  int64_t row_bytes = dtype_of(operands_of(*block)[0]).bytes();
  for (const IterVar& axis : block->iter_vars) {
    if (axis.kind == IterKind::kReduce) row_bytes *= as_int(axis.domain.extent).value_or(1);
  }
  // Each part of the reduction is a sum of its own, over a tile; those are added up, and the epilogue takes a panel's.
  Loops parts;
  BlockRV sum = anchor;
  if (int64_t count = reduction_parts(*block, tile, num_rows, row_bytes); count > 1) {
    if (behind.size() != 1) behind = {sch.cache_write(sum, 0, "global")};
    parts = sch.split(loop_of.back(), {count, std::nullopt});
    anchor = sch.rfactor(parts[0], 0);
    block = cast<Block>(sch.get(anchor));
    loop_of = loops_of_axes(sch, anchor);
    ++tile.row_axis;
    ++tile.column_axis;
  }
  // A bias is loaded once for all row tiles: LLVM keeps its vectors in registers, at the cost of accumulators if all
  // are taken.
  bool several_tiles = tile.has_rows && tile.rows > 1 && (!num_rows || *num_rows > tile.rows);
  if (several_tiles && tile.panels == 2 && parts.empty() && behind.size() == 1 &&
      has_bias(*cast<Block>(sch.get(behind[0]))))
    --tile.rows;
  int64_t tiles_in_block = 0;
  if (tile.has_rows) {
    auto num_columns = as_int(block->iter_vars[tile.column_axis].domain.extent);
    int64_t num_panels = ceil_div(num_columns.value_or(1 << 30), tile.panels * tile.vectors * tile.lanes);
    tiles_in_block = row_tiles_in_block(num_rows, num_panels, tile, row_bytes);
  }
  const VarRef& column_var = block->iter_vars[tile.column_axis].var;
  // The operand with lanes: its panels are what the caches are to hold.
  Buffer panel = operands_of(*block)[0]->buffer;
  for (const Ref<BufferLoad>& load : operands_of(*block)) {
    if (mentions(load->indices, column_var)) panel = load->buffer;
  }

  Loops columns = sch.split(loop_of[tile.column_axis], {std::nullopt, tile.vectors, tile.lanes});
  Loops panels;
  if (tile.panels > 1) {
    panels = sch.split(columns[0], {std::nullopt, tile.panels});
    columns[0] = panels[0];
  }
  Loops rows, row_blocks;
  if (tile.has_rows) {
    LoopRV row_loop = loop_of[tile.row_axis];
    if (tiles_in_block > 0) {
      row_blocks = sch.split(row_loop, {std::nullopt, tiles_in_block * tile.rows});
      row_loop = row_blocks[1];
    }
    rows = sch.split(row_loop, {std::nullopt, tile.rows});
  }
  // Outside: the other axes, row blocks, column tiles, which threads share; row tiles; the reduction; inside: the tile.
  // Neighbouring row tiles share a panel of columns.
  Loops outer, reduce;
  for (size_t a = 0; a < loop_of.size(); ++a) {
    bool is_other = a != tile.column_axis && !(tile.has_rows && a == tile.row_axis);
    if (block->iter_vars[a].kind == IterKind::kReduce) {
      reduce.push_back(loop_of[a]);
    } else if (is_other && (parts.empty() || a > 0)) {
      outer.push_back(loop_of[a]);
    }
  }
  if (!row_blocks.empty()) outer.push_back(row_blocks[0]);
  outer.push_back(columns[0]);
  const Loops shared = outer;
  if (!parts.empty()) outer.push_back(parts[0]);
  if (tile.has_rows) outer.push_back(rows[0]);
  Loops order = outer;
  // The innermost reduce loop in steps: fewer branches, and loads ahead of their use. More accumulators leave no
  // registers for loads ahead.
  auto depth = as_int(block->iter_vars.back().domain.extent);
  Loops steps, group;
  if (tile.group > 1) {
    group = sch.split(reduce.back(), {std::nullopt, tile.group});
    reduce.back() = group[0];
    group.erase(group.begin());
    depth = *depth / tile.group;
  }
  // One that reads a panel once waits for memory and needs none.
  bool used_once = !tile.has_rows || (num_rows && *num_rows <= tile.rows);
  for (int step : {tile.panels > 1 || tile.vectors > 2 ? 4 : 8, 4, 2}) {
    if (used_once || !steps.empty() || !depth || *depth % step != 0 || *depth == step) continue;
    if (block->iter_vars.back().kind != IterKind::kReduce) continue;
    steps = sch.split(reduce.back(), {std::nullopt, step});
    reduce.back() = steps[0];
    reduce.push_back(steps[1]);
  }
  order.insert(order.end(), reduce.begin(), reduce.end());
  if (tile.has_rows) order.push_back(rows[1]);
  if (!panels.empty()) order.push_back(panels[1]);
  order.insert(order.end(), {columns[1], columns[2]});
  order.insert(order.end(), group.begin(), group.end());
  sch.reorder(order);
  if (!steps.empty()) sch.unroll(steps[1]);
  if (!panels.empty()) sch.unroll(panels[1]);
  if (tile.has_rows && !num_rows) sch.annotate(rows[0], "exact_tails", true);
  auto in_registers = [&](const LoopRV* row, const LoopRV& vector, const LoopRV& lane) {
    if (row) sch.unroll(*row);
    sch.unroll(vector);
    if (tile.lanes > 1) sch.vectorize(lane);
  };

  // The tile's result lives in registers (memory of a tile's size, once lowered); the last block behind the anchor, or
  // the sum of parts, takes it from there.
  if (behind.size() != 1) behind = {sch.cache_write(anchor, 0, "local")};
  const BlockRV taker = parts.empty() ? behind[0] : sum;
  sch.reverse_compute_at(taker, outer.back(), true);
  Loops inner = sch.get_loops(taker);
  inner.erase(inner.begin(), inner.begin() + static_cast<long>(outer.size()));
  // Its loops follow its axes, which are the anchor's spatial ones.
  size_t column = 0, row = 0, spatial = 0;
  for (size_t a = 0; a < block->iter_vars.size(); ++a) {
    if (block->iter_vars[a].kind != IterKind::kSpatial) continue;
    if (a == tile.column_axis) column = spatial;
    if (tile.has_rows && a == tile.row_axis) row = spatial;
    ++spatial;
  }
  if (inner.size() == spatial) {
    LoopRV row_loop = inner[row];
    Loops parts = sch.split(inner[column], {std::nullopt, tile.vectors, tile.lanes});
    sch.unroll(parts[0]);
    Loops inside;
    for (size_t d = 0; d < spatial; ++d) {
      if (d != column && !(tile.has_rows && d == row)) inside.push_back(inner[d]);
    }
    if (tile.has_rows) inside.push_back(row_loop);
    inside.insert(inside.end(), parts.begin(), parts.end());
    if (inside.size() > 1) sch.reorder(inside);
    in_registers(tile.has_rows ? &row_loop : nullptr, parts[1], parts[2]);
  }
  in_registers(tile.has_rows ? &rows[1] : nullptr, columns[1], columns[2]);
  if (!reduce.empty()) sch.decompose_reduction(anchor, reduce.front());
  if (!parts.empty()) {
    sch.decompose_reduction(sum, parts[0]);
    sch.reverse_compute_at(behind[0], columns[0], true);
    Loops lanes = sch.split(sch.get_loops(behind[0]).back(), {std::nullopt, tile.lanes});
    if (tile.lanes > 1) sch.vectorize(lanes[1]);
  }
  if (!tile.intrin.empty()) sch.tensorize(columns[2], tile.intrin, false);
  LoopRV parallel = shared.size() > 1 ? sch.fuse(shared) : shared[0];
  // Panels come from memory: the next one while this one is used, or, where a panel is used once, some rows ahead.
  if (used_once && !reduce.empty()) {
    sch.annotate(reduce[0], "prefetch_ahead", AttrList{panel->name, tile.has_rows ? 64 : 16});
  } else {
    sch.annotate(parts.empty() ? parallel : parts[0], "prefetch", AttrList{panel->name});
  }
  // The row loop has its tails; full blocks apart would only double the code.
  if (tile.has_rows && !num_rows) sch.annotate(parallel, "keep_whole", true);
  sch.parallel(parallel);
}

std::optional<ContractionTile> prepare_panels(Schedule& sch, const BlockRV& anchor, const Target& target) {
  auto tile = choose_panel_tile(*cast<Block>(sch.get(anchor)), target);
  if (!tile && pack_columns(sch, anchor, target)) tile = choose_panel_tile(*cast<Block>(sch.get(anchor)), target);
  return tile;
}

ScheduleRule contraction_rule(const Target& target) {
  auto contraction = [target](Schedule& sch) {
    BlockRV anchor = sch.get_block("matmul");
    auto tile = prepare_panels(sch, anchor, target);
    if (!tile) fail(sch.get(anchor).span(), "no operand lies in panels of a tile's columns");
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
