#include <algorithm>
#include <bit>

#include "tir/analysis/annotations.h"
#include "tir/rules/blocks.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

struct Access {
  Buffer buffer;
  std::vector<Expr> indices;
};

std::vector<Access> accesses_of(const Block& block) {
  std::vector<Access> result;
  walk(
      block.body, [&](const BufferLoad& load) { result.push_back({load.buffer, load.indices}); },
      [&](const BufferStore& store) { result.push_back({store.buffer, store.indices}); });
  return result;
}

// Returns whether two axes can be fused for every buffer: stride(outer) is extent(inner) * stride(inner).
bool can_merge(const std::vector<Access>& accesses, const IterVar& outer, const IterVar& inner, const Analyzer& facts) {
  return std::ranges::all_of(accesses, [&](const Access& access) {
    auto outer_stride = access_stride(access.buffer, access.indices, outer.var, facts);
    auto inner_stride = access_stride(access.buffer, access.indices, inner.var, facts);
    return outer_stride && inner_stride && facts.can_prove_equal(*outer_stride, *inner_stride * inner.domain.extent);
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

// Returns the most vectors of a piece, a power of two.
int64_t most_vectors_of_piece(const Target& target) {
  int64_t vectors = target.l1.bytes * cost_model::kPieceQuartersOfL1 / 4 / target.vector_bytes();
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

void schedule_elementwise(Schedule& sch, const BlockRV& rv, const Target& target, Decisions& decisions) {
  Nest nest = ordered_nest(sch, rv);
  if (nest.loops.empty()) return;
  bool parallel = !is_small(nest.spatial_extents(), target, cost_model::kElementwiseWork);
  // A statement with loops inside, such as a scan, is much work for each point.
  if (!single_store(*nest.block)) return fuse_parallel(sch, nest.loops, parallel);
  const Analyzer& facts = sch.tree("").facts;
  std::vector<Access> accesses = accesses_of(*nest.block);

  // Vectors along the last axis if every access is contiguous or constant there.
  int64_t lanes = lanes_of(*nest.block, target);
  for (const Access& access : accesses) {
    if (!is_lane_stride(access_stride(access.buffer, access.indices, nest.axes.back().var, facts))) lanes = 1;
  }
  std::vector<Loops> groups;
  for (size_t d = 0; d < nest.axes.size(); ++d) {
    const IterVar& axis = nest.axes[d];
    bool merges = d > 0 && (is_int(axis.domain.extent, 1) || (only_in_indices(*nest.block, axis.var) &&
                                                              only_in_indices(*nest.block, nest.axes[d - 1].var) &&
                                                              can_merge(accesses, nest.axes[d - 1], axis, facts)));
    if (!merges) groups.emplace_back();
    groups.back().push_back(nest.loops[d]);
  }
  Loops outer;
  for (const Loops& group : groups) outer.push_back(fused(sch, group));
  LoopRV inner = outer.back();
  outer.pop_back();
  auto extent = extent_of(sch, inner);
  if (extent && *extent < lanes) lanes = 1;
  Factors factors = {std::nullopt};
  bool only_inner = std::ranges::all_of(outer, [&](const LoopRV& loop) { return extent_of(sch, loop) == 1; });
  int64_t most = most_vectors_of_piece(target);
  // One long loop is cut into pieces for all threads.
  bool in_pieces = only_inner && parallel && (!extent || *extent > most * lanes);
  int64_t piece = most;
  if (in_pieces) {
    piece = decisions.number("piece", numbers_between(1, 2 * most), choose_piece(extent, lanes, most));
    factors.emplace_back(piece);
  }
  if (lanes > 1) factors.emplace_back(lanes);
  Loops parts = sch.apply(Split{inner, factors});
  if (lanes > 1) sch.apply(Vectorize{parts.back()});
  if (!in_pieces) return fuse_parallel(sch, outer, parallel);
  // The last piece may have fewer iterations, which needs no separate code.
  if (!extent || *extent % (piece * lanes) != 0) sch.apply(Annotate{parts[0], annotation<"keep_whole">(), true});
  sch.apply(Parallel{parts[0]});
}

std::vector<DecisionRow> elementwise_decisions() {
  return {{"piece", "vectors in a piece of one long loop, which a thread takes", "a quarter of L1"}};
}

}  // namespace relaxc
