#include "tir/schedule/rules/contraction.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "tir/schedule/loops.h"
#include "tir/schedule/rules/convolution.h"

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
  bool found = false;
  for (const Expr& index : indices) walk(index, [&](const Ref<Var>& at) { found = found || same_node(at, var); });
  return found;
}

// The distance in memory of neighbouring lanes of a tile of that many columns, wherever the tile stands.
std::optional<Expr> lane_stride(const Ref<BufferLoad>& load, const VarRef& axis, int columns, const Analyzer& outer) {
  VarRef tile = make_dim("tile"), lane = make_dim("lane");
  Analyzer facts = outer;
  facts.bind(tile, Interval{0});
  facts.bind(lane, int_imm(0), int_imm(columns - 1));
  std::vector<Expr> indices = load->indices;
  Expr at = cast_to(static_cast<const Expr&>(tile) * columns + lane, dtype_of(axis));
  for (Expr& index : indices) index = facts.simplify(substitute(index, {{axis.get(), at}}));
  return access_stride(load->buffer, indices, lane, facts);
}

}  // namespace

std::optional<ContractionTile> choose_contraction_tile(const Block& block, const Analyzer& facts,
                                                       const Target& target) {
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  int bits = 8;
  for (const Ref<BufferLoad>& load : operands) bits = std::max<int>(bits, dtype_of(load).bits);
  int lanes = target.vector_lanes(bits);
  std::optional<ContractionTile> best;
  int best_score = 0;
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    const IterVar& axis = block.iter_vars[a];
    if (axis.kind != IterKind::kSpatial) continue;
    auto known = as_int(axis.domain.extent);
    if (known && *known < 4) continue;
    ColumnTile tile = choose_column_tile(known, lanes);
    int unit = 0;
    bool contiguous = !operands.empty();
    for (const Ref<BufferLoad>& load : operands) {
      auto stride = lane_stride(load, axis.var, tile.columns(), facts);
      contiguous = contiguous && stride && (is_int(*stride, 0) || is_int(*stride, 1));
      unit += stride && is_int(*stride, 1);
    }
    if (!contiguous || unit == 0) continue;
    int score = tile.lanes * 8 + tile.vectors * 2 + (a + 1 == block.iter_vars.size() ? 1 : 0);
    if (score <= best_score) continue;
    best_score = score;
    best = {a, 0, false, 1, tile.lanes, tile.vectors};
  }
  if (!best) return best;
  // Rows: an axis that an operand with lanes misses, so that its vectors serve all of them.
  const VarRef& column = block.iter_vars[best->column_axis].var;
  for (size_t a = block.iter_vars.size(); a-- > 0 && !best->has_rows;) {
    const IterVar& axis = block.iter_vars[a];
    if (a == best->column_axis || axis.kind != IterKind::kSpatial || is_int(axis.domain.extent, 1)) continue;
    for (const Ref<BufferLoad>& load : operands) {
      if (!mentions(load->indices, column) || mentions(load->indices, axis.var)) continue;
      best->row_axis = a;
      best->has_rows = true;
    }
  }
  if (!best->has_rows) return best;
  // Accumulators fill the registers but for the vectors of an operand. One row less than fits: with all of them LLVM
  // spills one as soon as it unrolls (bench/kernels/forms).
  int fit = (target.num_vector_registers - best->vectors - 2) / best->vectors - 1;
  auto extent = as_int(block.iter_vars[best->row_axis].domain.extent);
  best->rows = std::max(1, static_cast<int>(std::min<int64_t>(fit, extent.value_or(fit))));
  for (int rows = fit + 1; extent && rows > fit / 2; --rows) {
    if (*extent % rows != 0) continue;
    best->rows = rows;
    break;
  }
  return best;
}

std::optional<ContractionTile> choose_dot_tile(const Block& block, const Target& target) {
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  if (operands.size() != 2 || operands[1]->indices.size() != 4 || operands[0]->indices.size() < 2) return std::nullopt;
  const BufferType &left = buffer_type(operands[0]->buffer), &right = buffer_type(operands[1]->buffer);
  const BufferStore* store = block.body.as<BufferStore>();
  // y[j // columns, k // group, j % columns, k % group] and x[..., i, k].
  const Binary* column = operands[1]->indices[2].as<Binary>();
  const Binary* group = operands[1]->indices[3].as<Binary>();
  auto columns = as_int(right.shape[2]), group_size = as_int(right.shape[3]);
  bool packed = column && group && column->op == BinaryOp::kFloorMod && group->op == BinaryOp::kFloorMod && columns &&
                group_size && same_node(group->a, operands[0]->indices.back());
  if (!packed || !store) return std::nullopt;
  int lanes = target.vector_lanes(32);
  ContractionTile tile{0, 0, false, 1, lanes, static_cast<int>(*columns) / lanes};
  tile.group = static_cast<int>(*group_size);
  bool bytes =
      target.has_int8_dot && *group_size == 4 && right.dtype == DType::int_(8) && dtype_of(store->value) == kInt32;
  bool halves =
      target.has_bfloat16_dot && *group_size == 2 && right.dtype == DType::bfloat16() && left.dtype == right.dtype;
  if (bytes) tile.intrin = fmt::format("dot_{}x4_{}s8s32_vnni", lanes, left.dtype.is_uint() ? "u8" : "s8");
  if (halves) tile.intrin = fmt::format("dot_{}x2_bf16bf16f32_avx512", lanes);
  if (tile.intrin.empty() || *columns % lanes != 0) return std::nullopt;
  const Expr& row = operands[0]->indices[operands[0]->indices.size() - 2];
  for (size_t a = 0; a < block.iter_vars.size(); ++a) {
    if (same_node(block.iter_vars[a].var, column->a)) tile.column_axis = a;
    if (!same_node(block.iter_vars[a].var, row) || is_int(block.iter_vars[a].domain.extent, 1)) continue;
    tile.row_axis = a;
    tile.has_rows = true;
    int fit = (target.num_vector_registers - tile.vectors - 2) / tile.vectors;
    tile.rows = static_cast<int>(std::clamp<int64_t>(as_int(block.iter_vars[a].domain.extent).value_or(fit), 1, fit));
  }
  return tile;
}

void schedule_contraction(Schedule& sch, const BlockRV& anchor, const ContractionTile& tile) {
  Ref<Block> block = cast<Block>(sch.get(anchor));
  Loops loops = sch.get_loops(anchor);
  if (loops.size() != block->iter_vars.size())
    fail(block.span(), "block '{}' has {} loops around {} axes; expected one for each", block->name, loops.size(),
         block->iter_vars.size());
  // The loop of each axis.
  std::vector<LoopRV> loop_of;
  for (const IterVar& axis : block->iter_vars) {
    for (const LoopRV& loop : loops) {
      if (same_node(cast<For>(sch.get(loop))->var, axis.value)) loop_of.push_back(loop);
    }
  }
  if (loop_of.size() != loops.size()) fail(block.span(), "the axes of block '{}' are not its loops", block->name);

  Blocks behind = sch.merge_epilogue(anchor);
  const VarRef& column_var = block->iter_vars[tile.column_axis].var;
  // The operand with lanes: its panels are what the caches are to hold.
  Buffer panel = operands_of(*block)[0]->buffer;
  for (const Ref<BufferLoad>& load : operands_of(*block)) {
    if (mentions(load->indices, column_var)) panel = load->buffer;
  }
  int64_t panel_bytes = buffer_type(panel).dtype.bytes();
  for (const Expr& dim : buffer_type(panel).shape) panel_bytes *= as_int(dim).value_or(1 << 20);

  Loops columns = sch.split(loop_of[tile.column_axis], {std::nullopt, tile.vectors, tile.lanes});
  // A single row is bound by memory: several panels side by side, each a stream of its own.
  Loops panels;
  if (auto count = as_int(cast<For>(sch.get(columns[0]))->extent); !tile.has_rows && count && *count % 4 == 0) {
    panels = sch.split(columns[0], {std::nullopt, 4});
    columns[0] = panels[0];
  }
  Loops rows, row_blocks;
  std::optional<int64_t> num_rows;
  if (tile.has_rows) {
    LoopRV row_loop = loop_of[tile.row_axis];
    num_rows = as_int(block->iter_vars[tile.row_axis].domain.extent);
    // Blocks of rows of which the other operand's part stays in the second cache; also the threads' share.
    for (int64_t size = 288; num_rows && *num_rows >= 512 && row_blocks.empty() && size >= 96; --size) {
      if (*num_rows % size == 0 && *num_rows / size % 2 == 0) row_blocks = sch.split(row_loop, {std::nullopt, size});
    }
    if (!row_blocks.empty()) row_loop = row_blocks[1];
    rows = sch.split(row_loop, {std::nullopt, tile.rows});
  }
  // Outside: the other axes, row blocks, column tiles, row tiles; the reduction; inside: the tile. Neighbouring row
  // tiles share a panel of columns; where all panels fit the second cache, neighbouring panels share the rows.
  bool rows_outside = !row_blocks.empty() && panel_bytes <= (1 << 20);
  Loops outer, reduce;
  for (size_t a = 0; a < loop_of.size(); ++a) {
    if (a == tile.column_axis && row_blocks.empty()) outer.push_back(columns[0]);
    if (block->iter_vars[a].kind == IterKind::kReduce) reduce.push_back(loop_of[a]);
    bool is_other = a != tile.column_axis && !(tile.has_rows && a == tile.row_axis);
    if (is_other && block->iter_vars[a].kind == IterKind::kSpatial) outer.push_back(loop_of[a]);
  }
  if (!row_blocks.empty()) outer.push_back(row_blocks[0]);
  size_t parallel_loops = outer.size();
  if (rows_outside) outer.push_back(rows[0]);
  if (!row_blocks.empty()) outer.push_back(columns[0]);
  if (tile.has_rows && !rows_outside) outer.push_back(rows[0]);
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
  std::vector<int> step_sizes = tile.rows * tile.vectors > 26 ? std::vector<int>{2} : std::vector<int>{8, 4, 2};
  for (int step : step_sizes) {
    if (!steps.empty() || !depth || *depth % step != 0 || *depth == step) continue;
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
  // Panels come from memory: the next one while this one is used, or, where a panel is used once, some rows ahead.
  bool used_once = !tile.has_rows || (num_rows && *num_rows <= tile.rows);
  if (used_once && !reduce.empty()) {
    sch.annotate(reduce[0], "prefetch_ahead", AttrList{panel->name, tile.has_rows ? 64 : 16});
  } else if (!rows_outside) {
    sch.annotate(columns[0], "prefetch", AttrList{panel->name});
  }
  if (tile.has_rows && !num_rows) sch.annotate(rows[0], "exact_tails", true);
  auto in_registers = [&](const LoopRV* row, const LoopRV& vector, const LoopRV& lane) {
    if (row) sch.unroll(*row);
    sch.unroll(vector);
    if (tile.lanes > 1) sch.vectorize(lane);
  };

  // The tile's result lives in registers (memory of a tile's size, once lowered); the last block behind the anchor
  // takes it from there.
  if (behind.size() != 1) behind = {sch.cache_write(anchor, 0, "local")};
  sch.reverse_compute_at(behind[0], outer.back(), true);
  Loops inner = sch.get_loops(behind[0]);
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
  if (!tile.intrin.empty()) sch.tensorize(columns[2], tile.intrin, false);
  LoopRV parallel = outer[0];
  if (parallel_loops > 1) {
    Loops together(outer.begin(), outer.begin() + static_cast<long>(parallel_loops));
    parallel = sch.fuse(together);
  }
  sch.parallel(parallel);
}

std::vector<ScheduleRule> builtin_schedule_rules(const Target& target) {
  auto contraction = [target](Schedule& sch) {
    BlockRV anchor = sch.get_block("matmul");
    Ref<Block> block = cast<Block>(sch.get(anchor));
    if (auto dot = choose_dot_tile(*block, target)) return schedule_contraction(sch, anchor, *dot);
    // Operands in panels only: others have strides between the rows of a tile's columns.
    bool in_panels = false;
    for (const Ref<BufferLoad>& load : operands_of(*block)) {
      for (const Expr& index : load->indices) {
        const Binary* node = index.as<Binary>();
        in_panels = in_panels || (node && node->op == BinaryOp::kFloorMod);
      }
    }
    Analyzer facts;
    for (const IterVar& axis : block->iter_vars) facts.bind(axis.var, axis.domain.min, axis.domain.extent);
    auto tile = in_panels ? choose_contraction_tile(*block, facts, target) : std::nullopt;
    if (!tile) fail(block.span(), "no operand lies in panels of a tile's columns");
    schedule_contraction(sch, anchor, *tile);
  };
  return {{"contraction", "", "matmul", {}, contraction}, convolution_rule(target)};
}

}  // namespace relaxc
