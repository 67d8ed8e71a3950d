// Reductions. Three forms, by what the operands allow:
//   tiled:  a register tile of `rows` x `columns` accumulators; columns are vector lanes along a spatial axis in which
//           every operand has stride 0 or 1. Covers contractions (rows reuse the vector operand) and column sums.
//   lanes:  the innermost reduce axis is contiguous: one vector of partial results, combined in a fixed tree.
//   scalar: one accumulator for each output element.
// All three accumulate in local memory that ends up in registers, then apply the epilogue and store once. Results do
// not depend on the number of threads: parallel loops run over output elements only.
#include <algorithm>

#include "tir/compute.h"
#include "tir/schedule/loops.h"
#include "tir/schedule/tree.h"

namespace relaxc {

namespace {

using scheduling::mentions;

// The parts of `out[axes] = combine(out[axes], value)` with `out[axes] = init`.
struct Reduction {
  Buffer out;
  Expr init, value;
  BinaryOp op;
};

std::optional<Reduction> match_reduction(const Stage& stage) {
  const BufferStore* store = stage.single_store();
  const BufferStore* init = stage.block->init ? stage.block->init->as<BufferStore>() : nullptr;
  if (!store || !init || !same_node(store->buffer, init->buffer) || store->predicate) return std::nullopt;
  if (store->indices.size() != stage.num_spatial) return std::nullopt;
  for (size_t d = 0; d < stage.num_spatial; ++d) {
    if (!same_node(store->indices[d], stage.axes[d].var) || !same_node(init->indices[d], stage.axes[d].var))
      return std::nullopt;
  }
  const Binary* combine = store->value.as<Binary>();
  if (!combine) return std::nullopt;
  bool known = combine->op == BinaryOp::kAdd || combine->op == BinaryOp::kMul || combine->op == BinaryOp::kMax ||
               combine->op == BinaryOp::kMin;
  const BufferLoad* accumulated = combine->a.as<BufferLoad>();
  if (!known || !accumulated || !same_node(accumulated->buffer, store->buffer)) return std::nullopt;
  for (size_t d = 0; d < stage.num_spatial; ++d) {
    if (!same_node(accumulated->indices[d], stage.axes[d].var)) return std::nullopt;
  }
  bool reads_itself = false;
  walk(combine->b,
       [&](const BufferLoad& load) { reads_itself = reads_itself || same_node(load.buffer, store->buffer); });
  bool constant = init->value.is<IntImm>() || init->value.is<FloatImm>();
  if (reads_itself || !constant) return std::nullopt;
  return Reduction{store->buffer, init->value, combine->b, combine->op};
}

std::vector<Ref<BufferLoad>> loads_of(const Expr& value) {
  std::vector<Ref<BufferLoad>> result;
  walk(value, [&](const Ref<BufferLoad>& load) { result.push_back(load); });
  return result;
}

bool is_neutral(const Expr& init, BinaryOp op) {
  DType dtype = dtype_of(init);
  if (op == BinaryOp::kAdd) return structural_equal(init, zero(dtype));
  if (op == BinaryOp::kMul) return structural_equal(init, one(dtype));
  return structural_equal(init, op == BinaryOp::kMax ? lowest(dtype) : highest(dtype));
}

// How a stage is to be tiled.
struct Tiling {
  std::optional<size_t> row_axis, column_axis;  // positions among the spatial axes
  int rows = 1;
  int lanes = 1, vectors = 1;  // columns = lanes * vectors
  int columns() const { return lanes * vectors; }
};

class ReductionScheduler {
 public:
  ReductionScheduler(const Stage& stage, const Reduction& reduction, const Stage* epilogue, const Target& target,
                     const Analyzer& facts)
      : stage_(stage), reduction_(reduction), epilogue_(epilogue), target_(target), facts_(facts) {
    for (const IterVar& axis : stage.axes) facts_.bind(axis.var, axis.domain.min, axis.domain.extent);
  }

  Stmt run() {
    Tiling tiling = choose_tiling();
    if (tiling.lanes == 1) {
      if (int lanes = reduce_lanes(); lanes > 1)
        return over_outputs([&](const std::vector<Expr>& base) { return lane_reduction(base, lanes); });
      return over_outputs([&](const std::vector<Expr>& base) { return tile(base, {}, 1, 1, 1); });
    }
    return tiled(tiling);
  }

 private:
  const IterVar& spatial(size_t d) const { return stage_.axes[d]; }
  size_t num_reduced() const { return stage_.axes.size() - stage_.num_spatial; }
  const IterVar& reduced(size_t d) const { return stage_.axes[stage_.num_spatial + d]; }

  // ---- Choosing the tile

  Tiling choose_tiling() const {
    Tiling best;
    int lanes = stage_lanes(stage_, target_);
    if (lanes == 1) return best;
    std::vector<Ref<BufferLoad>> loads = loads_of(reduction_.value);
    int best_score = 0;
    for (size_t d = 0; d < stage_.num_spatial; ++d) {
      const Expr& extent = spatial(d).domain.extent;
      auto known = as_int(extent);
      if (known && *known < 4) continue;
      ColumnTile tile = choose_column_tile(known, lanes);
      bool contiguous = !loads.empty();
      int unit = 0;
      for (const Ref<BufferLoad>& load : loads) {
        auto stride = lane_stride(load, spatial(d).var, tile.columns());
        bool one = stride && is_int(*stride, 1);
        contiguous = contiguous && stride && (one || is_int(*stride, 0));
        unit += one;
      }
      if (!contiguous || unit == 0) continue;
      // Full vectors first, several of them next, then the axis that the output is contiguous in.
      int score = tile.lanes * 8 + tile.vectors * 2 + (d + 1 == stage_.num_spatial ? 1 : 0);
      if (score <= best_score) continue;
      best_score = score;
      best.column_axis = d;
      best.lanes = tile.lanes;
      best.vectors = tile.vectors;
    }
    if (!best.column_axis) return best;
    choose_rows(best, loads);
    return best;
  }

  // The stride between the lanes of a tile of that many columns, wherever on the axis the tile stands; blocked layouts
  // have one although the axis as a whole has none.
  std::optional<Expr> lane_stride(const Ref<BufferLoad>& load, const VarRef& axis, int columns) const {
    VarRef tile = make_dim("tile"), lane = make_dim("lane");
    Analyzer facts = facts_;
    facts.bind(tile, Interval{0});
    facts.bind(lane, int_imm(0), int_imm(columns - 1));
    std::vector<Expr> indices = load->indices;
    for (Expr& index : indices)
      index = facts.simplify(substitute(index, {{axis.get(), static_cast<const Expr&>(tile) * columns + lane}}));
    return access_stride(load->buffer, indices, lane, facts);
  }

  // The row axis: one that an operand with vector lanes misses, so that its vectors serve all rows.
  void choose_rows(Tiling& tiling, const std::vector<Ref<BufferLoad>>& loads) const {
    const VarRef& column = spatial(*tiling.column_axis).var;
    for (size_t d = stage_.num_spatial; d-- > 0;) {
      if (d == *tiling.column_axis || is_int(spatial(d).domain.extent, 1)) continue;
      bool reused = false;
      for (const Ref<BufferLoad>& load : loads) {
        bool has_lanes = false, has_row = false;
        for (const Expr& index : load->indices) {
          has_lanes = has_lanes || mentions(index, column);
          has_row = has_row || mentions(index, spatial(d).var);
        }
        reused = reused || (has_lanes && !has_row);
      }
      if (!reused) continue;
      tiling.row_axis = d;
      break;
    }
    if (!tiling.row_axis) return;
    // Accumulators fill the registers but for the vectors of the operands.
    int budget = (target_.num_vector_registers - tiling.vectors - 2) / tiling.vectors;
    auto extent = as_int(spatial(*tiling.row_axis).domain.extent);
    tiling.rows = std::min(budget, extent ? 14 : 8);
    if (!extent) return;
    if (*extent <= tiling.rows) {
      tiling.rows = std::max(1, static_cast<int>(*extent));  // also of an empty axis
      return;
    }
    for (int rows = tiling.rows; rows >= std::max(2, tiling.rows / 2); --rows) {
      if (*extent % rows == 0) {
        tiling.rows = rows;
        return;
      }
    }
  }

  // ---- Building

  Expr spatial_extent(size_t d) const { return spatial(d).domain.extent; }

  int64_t reduce_work() const {
    int64_t work = 1;
    for (size_t d = 0; d < num_reduced(); ++d)
      work *= std::min<int64_t>(as_int(reduced(d).domain.extent).value_or(64), 1 << 16);
    return work;
  }

  Stmt over_outputs(const std::function<Stmt(const std::vector<Expr>&)>& body) const {
    std::vector<Expr> extents;
    for (size_t d = 0; d < stage_.num_spatial; ++d) extents.push_back(spatial_extent(d));
    ForKind kind = is_small(extents, reduce_work()) ? ForKind::kSerial : ForKind::kParallel;
    return fused_loop(extents, kind, body);
  }

  Stmt tiled(const Tiling& tiling) const {
    size_t column = *tiling.column_axis;
    Expr columns = spatial_extent(column);
    Expr rows = tiling.row_axis ? spatial_extent(*tiling.row_axis) : int_imm(1);
    // Loops outside the tile: the other axes, then column tiles, then row tiles, so that neighbours share the vectors.
    std::vector<Expr> extents;
    std::vector<size_t> other;
    for (size_t d = 0; d < stage_.num_spatial; ++d) {
      if (d == column || (tiling.row_axis && d == *tiling.row_axis)) continue;
      // Axes inside of the column axis walk with the rows.
      other.push_back(d);
    }
    std::vector<size_t> before, after;
    for (size_t d : other) (d < column ? before : after).push_back(d);
    for (size_t d : before) extents.push_back(spatial_extent(d));
    extents.push_back(facts_.simplify(ceil_div(columns, tiling.columns())));
    for (size_t d : after) extents.push_back(spatial_extent(d));
    extents.push_back(facts_.simplify(ceil_div(rows, tiling.rows)));
    std::vector<Expr> all;
    for (size_t d = 0; d < stage_.num_spatial; ++d) all.push_back(spatial_extent(d));
    ForKind kind = is_small(all, reduce_work()) ? ForKind::kSerial : ForKind::kParallel;
    return fused_loop(extents, kind, [&](const std::vector<Expr>& positions) {
      std::vector<Expr> base(stage_.num_spatial, int_imm(0));
      size_t next = 0;
      for (size_t d : before) base[d] = positions[next++];
      Expr first_column = positions[next++] * tiling.columns();
      for (size_t d : after) base[d] = positions[next++];
      Expr first_row = positions[next++] * tiling.rows;
      base[column] = first_column;
      if (tiling.row_axis) base[*tiling.row_axis] = first_row;
      return tile_or_edges(base, tiling, first_row, rows, first_column, columns);
    });
  }

  // The full tile where it fits; at the edges single rows, and single columns.
  Stmt tile_or_edges(const std::vector<Expr>& base, const Tiling& tiling, const Expr& first_row, const Expr& rows,
                     const Expr& first_column, const Expr& columns) const {
    auto divides = [&](const Expr& extent, int by) {
      auto known = as_int(extent);
      return by == 1 || (known && *known % by == 0);
    };
    bool even_rows = divides(rows, tiling.rows), even_columns = divides(columns, tiling.columns());
    Expr rows_left = min(int_imm(tiling.rows), rows - first_row);
    Expr columns_left = min(int_imm(tiling.columns()), columns - first_column);
    Expr rows_fit = even_rows ? bool_imm(true) : first_row + tiling.rows <= rows;
    Expr columns_fit = even_columns ? bool_imm(true) : first_column + tiling.columns() <= columns;
    Stmt full = tile(base, tiling, tiling.rows, tiling.lanes, tiling.vectors);
    if (even_rows && even_columns) return full;
    auto single_row = [&](const std::vector<Expr>& at) -> Stmt {
      Stmt wide = tile(at, tiling, 1, tiling.lanes, tiling.vectors);
      if (even_columns) return wide;
      Stmt narrow = make_loop("j", columns_left, ForKind::kSerial, [&](const Expr& j) {
        std::vector<Expr> element = at;
        element[*tiling.column_axis] = at[*tiling.column_axis] + j;
        return tile(element, {}, 1, 1, 1);
      });
      return Stmt(make(IfThenElse{columns_fit, wide, narrow}));
    };
    Stmt edges = tiling.row_axis ? make_loop("i", rows_left, ForKind::kSerial,
                                             [&](const Expr& i) {
                                               std::vector<Expr> row = base;
                                               row[*tiling.row_axis] = base[*tiling.row_axis] + i;
                                               return single_row(row);
                                             })
                                 : single_row(base);
    if (!tiling.row_axis) return edges;
    return make(IfThenElse{rows_fit && columns_fit, full, edges});
  }

  // One accumulator buffer, its init, the reduce loops around the update, the epilogue's store.
  Stmt tile(const std::vector<Expr>& base, const Tiling& tiling, int rows, int lanes, int vectors) const {
    int columns = lanes * vectors;
    DType dtype = dtype_of(reduction_.init);
    Buffer accumulator = make_buffer(reduction_.out->name + "_local", dtype, {int_imm(rows * columns)}, "local");
    // Runs body(position in the accumulator, spatial position) for every element of the tile.
    auto over_tile = [&](const std::function<Stmt(const Expr&, const std::vector<Expr>&)>& body) {
      return make_loop("ti", int_imm(rows), ForKind::kUnrolled, [&](const Expr& row) {
        return make_loop("tv", int_imm(vectors), ForKind::kUnrolled, [&](const Expr& vector) {
          return make_loop("lane", int_imm(lanes), ForKind::kVectorized, [&](const Expr& lane) {
            Expr column = vector * lanes + lane;
            std::vector<Expr> position = base;
            if (rows > 1) position[*tiling.row_axis] = base[*tiling.row_axis] + row;
            if (columns > 1) position[*tiling.column_axis] = base[*tiling.column_axis] + column;
            return body(row * columns + column, position);
          });
        });
      });
    };
    Stmt init = over_tile(
        [&](const Expr& slot, const std::vector<Expr>&) { return store(accumulator, reduction_.init, {slot}); });
    std::vector<VarRef> loops;
    for (size_t d = 0; d < num_reduced(); ++d) loops.push_back(make_dim(fmt::format("k{}", d)));
    Stmt update = over_tile([&](const Expr& slot, const std::vector<Expr>& position) {
      VarMap axes;
      for (size_t d = 0; d < stage_.num_spatial; ++d) axes.emplace(spatial(d).var.get(), position[d]);
      for (size_t d = 0; d < num_reduced(); ++d) axes.emplace(reduced(d).var.get(), loops[d]);
      return store(accumulator, binary(reduction_.op, load(accumulator, {slot}), substitute(reduction_.value, axes)),
                   {slot});
    });
    for (size_t d = num_reduced(); d-- > 0;) update = loop(loops[d], reduced(d).domain.extent, update);
    Stmt write = over_tile([&](const Expr& slot, const std::vector<Expr>& position) {
      return finish(position, load(accumulator, {slot}));
    });
    return seq({make(AllocBuffer{accumulator, {}}), init, update, write});
  }

  // The store of a result element: the epilogue's statement with the result in place of the load.
  Stmt finish(const std::vector<Expr>& position, const Expr& result) const {
    if (!epilogue_) return store(reduction_.out, result, position);
    VarMap axes;
    for (size_t d = 0; d < stage_.num_spatial; ++d) axes.emplace(epilogue_->axes[d].var.get(), position[d]);
    Stmt body = instantiate(epilogue_->block->body, axes);
    return rewrite(body, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!same_node(load->buffer, reduction_.out)) return std::nullopt;
      return result;
    });
  }

  // ---- Lanes along the reduce axis

  int reduce_lanes() const {
    int lanes = stage_lanes(stage_, target_) * 2;
    if (lanes <= 2 || num_reduced() == 0 || !is_neutral(reduction_.init, reduction_.op)) return 1;
    const IterVar& axis = reduced(num_reduced() - 1);
    if (auto known = as_int(axis.domain.extent); known && *known < lanes) return 1;
    for (const Ref<BufferLoad>& load : loads_of(reduction_.value)) {
      auto stride = access_stride(load->buffer, load->indices, axis.var, facts_);
      if (!stride || (!is_int(*stride, 1) && !is_int(*stride, 0))) return 1;
    }
    return lanes;
  }

  Stmt lane_reduction(const std::vector<Expr>& base, int lanes) const {
    DType dtype = dtype_of(reduction_.init);
    Buffer partial = make_buffer(reduction_.out->name + "_lanes", dtype, {int_imm(lanes)}, "local");
    auto combine_into = [&](const Expr& slot, const Expr& value) {
      return store(partial, binary(reduction_.op, load(partial, {slot}), value), {slot});
    };
    auto value_at = [&](const std::vector<Expr>& reduce_position) {
      VarMap axes;
      for (size_t d = 0; d < stage_.num_spatial; ++d) axes.emplace(spatial(d).var.get(), base[d]);
      for (size_t d = 0; d < num_reduced(); ++d) axes.emplace(reduced(d).var.get(), reduce_position[d]);
      return substitute(reduction_.value, axes);
    };
    Expr extent = reduced(num_reduced() - 1).domain.extent;
    Expr whole = facts_.simplify(floor_div(extent, lanes)), rest = facts_.simplify(floor_mod(extent, lanes));
    auto over_outer = [&](const std::function<Stmt(std::vector<Expr>)>& body) {
      std::vector<VarRef> loops;
      std::vector<Expr> position;
      for (size_t d = 0; d + 1 < num_reduced(); ++d) {
        loops.push_back(make_dim(fmt::format("k{}", d)));
        position.push_back(loops.back());
      }
      Stmt result = body(position);
      for (size_t d = loops.size(); d-- > 0;) result = loop(loops[d], reduced(d).domain.extent, result);
      return result;
    };
    auto over_lanes = [&](int64_t count, const std::function<Stmt(const Expr&)>& body) {
      return make_loop("lane", int_imm(count), ForKind::kVectorized, body);
    };
    std::vector<Stmt> stmts = {make(AllocBuffer{partial, {}})};
    stmts.push_back(over_lanes(lanes, [&](const Expr& lane) { return store(partial, reduction_.init, {lane}); }));
    stmts.push_back(over_outer([&](std::vector<Expr> position) {
      Stmt main = make_loop("k", whole, ForKind::kSerial, [&](const Expr& k) {
        return over_lanes(lanes, [&](const Expr& lane) {
          std::vector<Expr> full = position;
          full.push_back(k * lanes + lane);
          return combine_into(lane, value_at(full));
        });
      });
      if (is_int(rest, 0)) return main;
      Stmt tail = make_loop("tail", rest, ForKind::kSerial, [&](const Expr& t) {
        std::vector<Expr> full = position;
        full.push_back(whole * lanes + t);
        return combine_into(t, value_at(full));
      });
      return seq({main, tail});
    }));
    for (int64_t half = lanes / 2; half >= 1; half /= 2) {
      stmts.push_back(
          over_lanes(half, [&](const Expr& lane) { return combine_into(lane, load(partial, {lane + half})); }));
    }
    stmts.push_back(finish(base, load(partial, {int_imm(0)})));
    return seq(std::move(stmts));
  }

  const Stage& stage_;
  const Reduction& reduction_;
  const Stage* epilogue_;
  const Target& target_;
  Analyzer facts_;
};

}  // namespace

bool is_contraction(const Stage& stage) {
  std::optional<Reduction> reduction = stage.reduces() ? match_reduction(stage) : std::nullopt;
  if (!reduction) return false;
  for (const Ref<BufferLoad>& load : loads_of(reduction->value)) {
    for (size_t d = 0; d < stage.num_spatial; ++d) {
      if (is_int(stage.axes[d].domain.extent, 1)) continue;
      bool used = false;
      for (const Expr& index : load->indices) used = used || mentions(index, stage.axes[d].var);
      if (!used) return true;
    }
  }
  return false;
}

bool fits_as_epilogue(const Stage& stage, const Stage& epilogue, const StagedProgram& program) {
  std::optional<Reduction> reduction = match_reduction(stage);
  const BufferStore* store = epilogue.single_store();
  if (!reduction || !store || epilogue.reduces() || epilogue.num_spatial != stage.num_spatial) return false;
  if (!program.is_intermediate(reduction->out) || program.readers(reduction->out).size() != 1) return false;
  for (size_t d = 0; d < stage.num_spatial; ++d) {
    if (!structural_equal(stage.axes[d].domain.extent, epilogue.axes[d].domain.extent)) return false;
    if (!same_node(store->indices[d], epilogue.axes[d].var)) return false;
  }
  bool reads = false, fits = store->indices.size() == stage.num_spatial;
  walk(store->value, [&](const BufferLoad& load) {
    if (same_node(load.buffer, store->buffer)) fits = false;
    if (!same_node(load.buffer, reduction->out)) return;
    reads = true;
    for (size_t d = 0; d < stage.num_spatial; ++d) fits = fits && same_node(load.indices[d], epilogue.axes[d].var);
  });
  return reads && fits;
}

Stmt schedule_reduction(const Stage& stage, const Stage* epilogue, const Target& target, const Analyzer& facts) {
  std::optional<Reduction> reduction = match_reduction(stage);
  CHECK(reduction || !epilogue, "an epilogue needs a plain reduction");
  if (!reduction) return schedule_fallback(stage);
  return ReductionScheduler(stage, *reduction, epilogue, target, facts).run();
}

PrimFuncRef default_schedule(const PrimFuncRef& function, const Target& target) {
  if (function->attrs.get_bool("tir.is_scheduled", false)) return function;
  PrimFuncRef promoted = promote_indices(function);
  std::optional<StagedProgram> program = find_stages(promoted);
  if (!program) return promoted;
  *program = inline_stages(std::move(*program));
  Analyzer facts;
  for (const VarRef& param : promoted->params) facts.assume_dims(param.type());
  std::vector<Stmt> nests;
  for (size_t i = 0; i < program->stages.size(); ++i) {
    const Stage& stage = program->stages[i];
    const Stage* next = i + 1 < program->stages.size() ? &program->stages[i + 1] : nullptr;
    if (!stage.reduces()) {
      nests.push_back(stage.single_store() ? schedule_elementwise(stage, target, facts) : schedule_fallback(stage));
    } else if (next && fits_as_epilogue(stage, *next, *program)) {
      nests.push_back(schedule_reduction(stage, next, target, facts));
      ++i;
    } else {
      nests.push_back(schedule_reduction(stage, nullptr, target, facts));
    }
  }
  return replace_stages(*program, std::move(nests));
}

}  // namespace relaxc
