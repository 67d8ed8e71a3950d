#include <algorithm>
#include <bit>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/byte_tables.h"
#include "tir/rules/blocks.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

// Returns the loads of a block, and a load from each place that it stores to. Tables of bytes are read where the lanes
// are, wherever their elements lie.
std::vector<BufferLoad> accesses_of(const Block& block) {
  std::vector<BufferLoad> result;
  walk(
      block.body,
      [&](const BufferLoad& load) {
        if (!byte_table_index(load)) result.push_back(load);
      },
      [&](const BufferStore& store) { result.push_back({store.buffer, store.indices, {}}); });
  return result;
}

// Answers by how much accesses of a block move along its axes.
class Strides {
 public:
  Strides(const BufferStore* store, const Analyzer& facts) : facts(facts), store_(store) {}

  const Analyzer& facts;

  // Returns the stride of an access along an axis; nullopt: it varies. An index that is loaded, such as the row that a
  // gather copies, stays the same along an axis that its own place does not depend on.
  std::optional<Expr> of(const BufferLoad& access, const IterVar& axis) const {
    return with_fixed(access, axis, [&](const Ref<BufferLoad>& load) { return !uses_var(load, axis.var); });
  }
  // Does so with all loaded indices fixed: what an axis changes beside them.
  std::optional<Expr> beside_loads(const BufferLoad& access, const IterVar& axis) const {
    return with_fixed(access, axis, [](const Ref<BufferLoad>&) { return true; });
  }

 private:
  std::optional<Expr> with_fixed(const BufferLoad& access, const IterVar& axis,
                                 const std::function<bool(const Ref<BufferLoad>&)>& is_fixed) const {
    auto fixed = [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!store_ || same_node(load->buffer, store_->buffer) || !is_fixed(load)) return std::nullopt;
      return make_var("loaded", prim_type(dtype_of(load)));
    };
    auto replaced = [&](const Expr& index) { return holds<BufferLoad>(index) ? rewrite(index, fixed) : index; };
    return access_stride(access.buffer, map_each(access.indices, replaced), axis.var, facts);
  }

  const BufferStore* store_;  // the only one of the block, or null
};

// Returns whether two axes can be fused for every buffer: stride(outer) is extent(inner) * stride(inner). Loads of
// indices are among the accesses.
bool can_merge(const std::vector<BufferLoad>& accesses, const IterVar& outer, const IterVar& inner,
               const Strides& strides) {
  return std::ranges::all_of(accesses, [&](const BufferLoad& access) {
    auto outer_stride = strides.beside_loads(access, outer), inner_stride = strides.beside_loads(access, inner);
    return outer_stride && inner_stride &&
           strides.facts.can_prove_equal(*outer_stride, *inner_stride * inner.domain.extent);
  });
}

// Returns the last of the loops, each of so many merged axes, along which a load has its neighbours that lie apart on
// the last axis. There the store has its own. nullopt: there is none, or an access has no stride on the last axis.
std::optional<size_t> loop_of_rows(const BufferStore& store, const std::vector<BufferLoad>& accesses, const Nest& nest,
                                   const std::vector<long>& merged, const std::vector<Expr>& extents,
                                   const Strides& strides) {
  const IterVar& columns = nest.axes.back();
  for (const BufferLoad& access : accesses) {
    if (!strides.of(access, columns)) return std::nullopt;
  }
  auto stored = strides.of({store.buffer, store.indices, {}}, columns);
  if (!stored || !is_int(*stored, 1)) return std::nullopt;
  size_t axis = nest.axes.size() - static_cast<size_t>(merged.back());
  for (size_t loop = merged.size() - 1; loop-- > 0;) {
    const IterVar& rows = nest.axes[axis - 1];
    axis -= static_cast<size_t>(merged[loop]);
    if (as_int(extents[loop]).value_or(cost_model::kFewestLanes) < cost_model::kFewestLanes) continue;
    bool any = std::ranges::any_of(accesses, [&](const BufferLoad& access) {
      auto across = strides.of(access, rows);
      return across && is_int(*across, 1) && !is_lane_stride(strides.of(access, columns));
    });
    if (any) return loop;
  }
  return std::nullopt;
}

// Returns how many vectors of lanes run together through what would else wait for itself. Each step of a scan goes to
// another row, of which a single vector would take one line of the cache, and waits for the last one. So do the
// instructions of a function.
int64_t vectors_together(const Ref<Block>& block, std::optional<int64_t> extent, int64_t lanes, bool is_long) {
  using namespace cost_model;
  const For* loop = block->body.as<For>();
  const bool is_scan = loop && loop->body.is<BufferStore>();
  int64_t vectors = is_scan ? kScanVectors : loop ? 1 : vectors_for_functions(*block);
  auto fits = [&](int64_t columns) {
    if (is_scan) return !extent || *extent >= columns;
    return extent ? *extent % columns == 0 || *extent >= kFullTiles * columns : is_long;
  };
  while (vectors > 1 && !fits(vectors * lanes)) vectors /= 2;
  return vectors;
}

// Returns the lanes of a tile of a transpose, as many as it has rows: as many as a register has, and fewer where an
// axis is shorter or fewer divide both axes. A network of shuffles holds all rows in registers.
int64_t lanes_of_tile(const Expr& rows, const Expr& columns, int64_t widest, const Target& target) {
  auto of = [](const Expr& extent, int64_t otherwise) { return as_int(extent).value_or(otherwise); };
  int64_t lanes = std::min<int64_t>(widest, target.num_vector_registers);
  while (lanes > 1 && std::min(of(rows, lanes), of(columns, lanes)) < lanes) lanes /= 2;
  for (int64_t fewer = lanes; fewer >= cost_model::kFewestWholeLanes; fewer /= 2) {
    if (of(rows, 0) % fewer == 0 && of(columns, 0) % fewer == 0) return fewer;
  }
  return lanes < cost_model::kFewestLanes ? 1 : lanes;
}

// Returns whether vectors gather what lies where loaded indices say, while the store has neighbours along the last
// axis. Narrow elements are not gathered in an instruction.
bool gathers_in_lanes(const BufferStore& store, const std::vector<BufferLoad>& accesses, const IterVar& axis,
                      const Strides& strides, const Target& target) {
  using namespace cost_model;
  auto stored = strides.of({store.buffer, store.indices, {}}, axis);
  bool fits = std::ranges::all_of(accesses, [&](const BufferLoad& access) {
    bool is_gathered = std::ranges::any_of(access.indices, holds<BufferLoad>) &&
                       buffer_type(access.buffer).dtype.bits >= kFewestGatheredBits;
    return is_gathered || is_lane_stride(strides.of(access, axis));
  });
  return fits && stored && is_int(*stored, 1) && target.vector_bits >= kMaskedBits;
}

// Returns the most vectors of a piece, a power of two.
int64_t most_vectors_of_piece(const Target& target) {
  int64_t vectors = target.l1_of_core() * cost_model::kPieceQuartersOfL1 / 4 / target.vector_bytes();
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(2, vectors))));
}
// Returns the vectors of a piece, if possible such that pieces divide the extent.
int64_t choose_piece(std::optional<int64_t> extent, int64_t lanes, int64_t most) {
  for (int64_t piece = most; extent && piece > most / 2; --piece) {
    if (*extent % (piece * lanes) == 0) return piece;
  }
  return most;
}

}  // namespace

ElementwisePlan choose_elementwise(const Ref<Block>& block, const Analyzer& facts, const Target& target,
                                   Decisions& decisions) {
  Nest nest = nest_of(block);
  ElementwisePlan plan{.parallel = !is_small(nest.spatial_extents(), target, cost_model::kElementwiseWork)};
  // A statement with a loop inside, such as a scan, is much work for each point. Its lanes run through it together.
  const bool has_loop = block->body.is<For>();
  if (nest.axes.empty() || !(single_store(*block) || has_loop)) return plan;
  std::vector<BufferLoad> accesses = accesses_of(*block);
  const BufferStore* store = single_store(*block);
  const Strides strides(store, facts);
  std::vector<Expr> extents;  // of the merged loops
  for (size_t d = 0; d < nest.axes.size(); ++d) {
    const IterVar& axis = nest.axes[d];
    bool merges = d > 0 && (is_int(axis.domain.extent, 1) ||
                            (only_in_indices(*block, axis.var) && only_in_indices(*block, nest.axes[d - 1].var) &&
                             can_merge(accesses, nest.axes[d - 1], axis, strides)));
    if (merges) {
      ++plan.merged.back();
      extents.back() = facts.simplify(extents.back() * cast_to(axis.domain.extent, dtype_of(extents.back())));
    } else {
      plan.merged.push_back(1);
      extents.push_back(axis.domain.extent);
    }
  }
  auto extent = as_int(extents.back());
  // Vectors along the last axis if every access is contiguous or constant there.
  bool has_lanes = std::ranges::all_of(
      accesses, [&](const BufferLoad& access) { return is_lane_stride(strides.of(access, nest.axes.back())); });
  int64_t widest = has_lanes ? lanes_of(*block, target) : 1;
  if (has_loop && widest == 1) return ElementwisePlan{.parallel = plan.parallel};
  const bool only_inner =
      std::all_of(extents.begin(), extents.end() - 1, [](const Expr& outer) { return is_int(outer, 1); });
  const int64_t side_by_side = widest > 1 ? vectors_together(block, extent, widest, only_inner) : 1;
  widest *= side_by_side;
  if (!has_lanes && !has_loop) plan.rows = loop_of_rows(*store, accesses, nest, plan.merged, extents, strides);
  if (plan.rows) {
    plan.tile = lanes_of(*block, target);
    widest = lanes_of_tile(extents[*plan.rows], extents.back(), plan.tile, target);
  } else if (!has_lanes && !has_loop && gathers_in_lanes(*store, accesses, nest.axes.back(), strides, target)) {
    widest = lanes_of(*block, target);
  }
  plan.lanes = decisions.number("lanes", doublings_between(1, widest), extent && *extent < widest ? 1 : widest);
  if (plan.rows && plan.lanes > 1) plan.tile = plan.lanes;
  int64_t most = std::max<int64_t>(1, most_vectors_of_piece(target) / side_by_side);
  if (plan.rows || !only_inner || !plan.parallel || (extent && *extent <= most * plan.lanes)) return plan;
  plan.piece = decisions.number("piece", numbers_between(1, 2 * most), choose_piece(extent, plan.lanes, most));
  plan.has_whole_pieces = extent && *extent % (plan.piece * plan.lanes) == 0;
  return plan;
}

// Distributes the outer loops, as many as keep all threads busy.
static void distribute(Schedule& sch, Loops outer, const ElementwisePlan& plan) {
  outer.resize(enough_for_threads(sch, outer, cost_model::kLoopShares));
  if (plan.parallel) fuse_parallel(sch, outer);
}

// Orders the loops, from the outside: those of other axes and tiles of rows, which threads share, tiles of columns, and
// the rows and columns of a tile, which lowering transposes in registers.
static void schedule_transpose(Schedule& sch, Loops outer, const ElementwisePlan& plan) {
  Loops rows = sch.apply(Split{outer[*plan.rows], {std::nullopt, plan.tile}}), columns = {outer.back()};
  if (plan.lanes > 1) columns = sch.apply(Split{outer.back(), {std::nullopt, plan.lanes}});
  outer.pop_back();
  outer.erase(outer.begin() + static_cast<long>(*plan.rows));
  outer.push_back(rows[0]);
  Loops tiles(columns.begin(), columns.end() - 1);
  sch.apply(Reorder{joined({outer, tiles, {rows[1], columns.back()}})});
  if (plan.lanes > 1) sch.apply(Vectorize{columns.back()});
  fuse_parallel(sch, outer, plan.parallel);
}

void schedule_elementwise(Schedule& sch, const BlockRV& rv, const ElementwisePlan& plan) {
  Nest nest = ordered_nest(sch, rv);
  if (plan.merged.empty()) return fuse_parallel(sch, nest.loops, plan.parallel);
  Loops outer;
  auto first = nest.loops.begin();
  for (long count : plan.merged) {
    outer.push_back(fused(sch, Loops(first, first + count)));
    first += count;
  }
  if (plan.rows) return schedule_transpose(sch, outer, plan);
  Factors factors = {std::nullopt};
  if (plan.piece > 0) factors.emplace_back(plan.piece);
  if (plan.lanes > 1) factors.emplace_back(plan.lanes);
  Loops parts = sch.apply(Split{outer.back(), factors});
  outer.pop_back();
  if (plan.lanes > 1) sch.apply(Vectorize{parts.back()});
  if (plan.piece == 0) return distribute(sch, outer, plan);
  // The last piece may have fewer iterations, which needs no separate code.
  if (!plan.has_whole_pieces) sch.apply(Annotate{parts[0], annotation<"keep_whole">(), true});
  sch.apply(Parallel{parts[0]});
}

std::vector<DecisionRow> elementwise_decisions() {
  return {
      {"lanes", "lanes of a vector of elements, of columns, or of partial results",
       fmt::format("a full vector, two of partial results, {} of functions such as exp; fewer in a short loop; 1 where "
                   "elements are not neighbours, but for a transpose, and where vectors gather well",
                   cost_model::kFunctionVectors)},
      {"piece", "vectors in a piece of one long loop, which a thread takes",
       fmt::format("{}/4 L1", cost_model::kPieceQuartersOfL1)}};
}

}  // namespace relaxc
