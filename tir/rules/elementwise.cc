#include <algorithm>
#include <bit>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/rules/blocks.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

// Returns the loads of a block, and a load from each place that it stores to.
std::vector<BufferLoad> accesses_of(const Block& block) {
  std::vector<BufferLoad> result;
  walk(
      block.body, [&](const BufferLoad& load) { result.push_back(load); },
      [&](const BufferStore& store) { result.push_back({store.buffer, store.indices, {}}); });
  return result;
}

// Answers by how much accesses of a block move along its axes.
struct Strides {
  const BufferStore* store;  // the only one of the block, or null
  const Analyzer& facts;

  // Returns the stride of an access along an axis; nullopt: it varies. An index that is loaded, such as the row that a
  // gather copies, stays the same along an axis that its own place does not depend on.
  std::optional<Expr> of(const BufferLoad& access, const IterVar& axis) const {
    auto fixed = [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!store || same_node(load->buffer, store->buffer) || uses_var(load, axis.var)) return std::nullopt;
      return make_var("loaded", prim_type(dtype_of(load)));
    };
    auto with_fixed = [&](const Expr& index) { return holds<BufferLoad>(index) ? rewrite(index, fixed) : index; };
    return access_stride(access.buffer, map_each(access.indices, with_fixed), axis.var, facts);
  }
};

// Returns whether two axes can be fused for every buffer: stride(outer) is extent(inner) * stride(inner).
bool can_merge(const std::vector<BufferLoad>& accesses, const IterVar& outer, const IterVar& inner,
               const Strides& strides) {
  return std::ranges::all_of(accesses, [&](const BufferLoad& access) {
    auto outer_stride = strides.of(access, outer), inner_stride = strides.of(access, inner);
    return outer_stride && inner_stride &&
           strides.facts.can_prove_equal(*outer_stride, *inner_stride * inner.domain.extent);
  });
}

// Returns whether the axis occurs in indices of stores and plain loads alone, not in a condition, value or nested load.
bool only_in_indices(const Block& block, const VarRef& axis) {
  bool ok = true;
  walk(block.body, [&](const BufferStore& store) {
    walk(
        store.value, [&](const BufferLoad&) { return false; },
        [&](const Ref<Var>& var) { ok = ok && !same_node(var, axis); });
  });
  return ok;
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

// Returns how many vectors of lanes run through a scan together. Each step goes to another row, of which a single
// vector would take one line of the cache.
int64_t vectors_of_scan(const Block& block, std::optional<int64_t> extent, int64_t lanes) {
  if (!block.body.as<For>()->body.is<BufferStore>()) return 1;
  if (!extent) return cost_model::kSymbolicScanVectors;
  int64_t vectors = cost_model::kScanVectors;
  while (vectors > 1 && *extent < vectors * lanes) vectors /= 2;
  return vectors;
}

// Returns whether whole tiles cover a transpose, each a rectangle of its only operand.
bool has_whole_tiles(const std::vector<Ref<BufferLoad>>& loads, const Nest& nest, const ElementwisePlan& plan,
                     const std::vector<Expr>& extents) {
  auto is_whole = [](const Expr& extent, int64_t size) { return as_int(extent).value_or(1) % size == 0; };
  size_t rows = 0;  // the last axis of the rows
  for (size_t loop = 0; loop <= *plan.rows; ++loop) rows += static_cast<size_t>(plan.merged[loop]);
  return loads.size() == 1 && is_whole(extents[*plan.rows], plan.tile) && is_whole(extents.back(), plan.lanes) &&
         is_whole(nest.axes[rows - 1].domain.extent, plan.tile) && is_whole(nest.axes.back().domain.extent, plan.lanes);
}

// Returns whether the lines that a column is gathered from drive each other out of the cache.
bool share_a_set(const BufferLoad& load, const Nest& nest, const Strides& strides, const Target& target) {
  auto stride = strides.of(load, nest.axes.back());
  auto elements = stride ? as_int(*stride) : std::nullopt;
  auto bytes = elements ? checked_mul(*elements, buffer_type(load.buffer).dtype.bits / 8) : std::nullopt;
  return bytes && *bytes != 0 && *bytes % std::max<int64_t>(1, target.l1.bytes / target.l1.ways) == 0;
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
  const Strides strides{single_store(*block), facts};
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
  const int64_t side_by_side = has_loop ? vectors_of_scan(*block, extent, widest) : 1;
  widest *= side_by_side;
  if (!has_lanes && !has_loop) plan.rows = loop_of_rows(*strides.store, accesses, nest, plan.merged, extents, strides);
  if (plan.rows) {
    plan.tile = widest = lanes_of(*block, target);
    if (extent && *extent < widest) widest = 1;
  }
  plan.lanes = decisions.number("lanes", doublings_between(1, widest), extent && *extent < widest ? 1 : widest);
  auto loads = loads_of(block->body);
  if (plan.rows && plan.lanes > 1 && has_whole_tiles(loads, nest, plan, extents))
    plan.copies_tile = decisions.flag("copy_tile", share_a_set(*loads[0], nest, strides, target));
  bool only_inner = std::all_of(extents.begin(), extents.end() - 1, [](const Expr& outer) { return is_int(outer, 1); });
  int64_t most = std::max<int64_t>(1, most_vectors_of_piece(target) / side_by_side);
  if (plan.rows || !only_inner || !plan.parallel || (extent && *extent <= most * plan.lanes)) return plan;
  plan.piece = decisions.number("piece", numbers_between(1, 2 * most), choose_piece(extent, plan.lanes, most));
  plan.has_whole_pieces = extent && *extent % (plan.piece * plan.lanes) == 0;
  return plan;
}

// Distributes the outer loops, as many as keep all threads busy. The others stay loops, in which an index is a sum: of
// fused ones each digit is a division.
static void distribute(Schedule& sch, Loops outer, const ElementwisePlan& plan) {
  if (!plan.parallel) return;
  size_t count = 0;
  for (int64_t shares = 1; count < outer.size() && shares < cost_model::kElementwiseShares; ++count)
    shares *= extent_of(sch, outer[count]).value_or(1);
  outer.resize(count);
  fuse_parallel(sch, outer, true);
}

// Orders the loops, from the outside: those of other axes and tiles of rows, which threads share, tiles of columns, and
// the rows and columns of a tile. Each column of a tile uses lines of the cache that the one before has loaded, or of a
// copy of the tile.
static void schedule_transpose(Schedule& sch, const BlockRV& rv, Loops outer, const ElementwisePlan& plan) {
  std::optional<BlockRV> copy;
  if (plan.copies_tile) copy = sch.apply(CacheRead{rv, 0, "local"});
  Loops rows = sch.apply(Split{outer[*plan.rows], {std::nullopt, plan.tile}}), columns = {outer.back()};
  if (plan.lanes > 1) columns = sch.apply(Split{outer.back(), {std::nullopt, plan.lanes}});
  outer.pop_back();
  outer.erase(outer.begin() + static_cast<long>(*plan.rows));
  outer.push_back(rows[0]);
  Loops tiles(columns.begin(), columns.end() - 1);
  sch.apply(Reorder{joined({outer, tiles, {rows[1], columns.back()}})});
  if (copy) {
    sch.apply(ComputeAt{*copy, tiles.back(), true});
    sch.apply(Vectorize{sch.apply(GetLoops{*copy}).back()});
  }
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
  if (plan.rows) return schedule_transpose(sch, rv, outer, plan);
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
       "a full vector, two of partial results; fewer in a short loop; 1 where elements are not neighbours, but for a "
       "transpose"},
      {"copy_tile", "a tile of a transpose is copied before its columns are gathered, where whole tiles cover all",
       "its lines lie a multiple of a way of the L1 cache apart"},
      {"piece", "vectors in a piece of one long loop, which a thread takes",
       fmt::format("{}/4 L1", cost_model::kPieceQuartersOfL1)}};
}

}  // namespace relaxc
