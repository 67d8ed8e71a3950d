#include "tir/rules/elementwise.h"

#include <algorithm>
#include <bit>

#include "tir/primitives/annotate.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/split.h"
#include "tir/primitives/vectorize.h"
#include "tir/rules/lanes.h"

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

// Axes `outer` and `inner` (its right neighbour) walk every buffer as one: stride(outer) = extent(inner) *
// stride(inner).
bool can_merge(const std::vector<Access>& accesses, const IterVar& outer, const IterVar& inner, const Analyzer& facts) {
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    auto outer_stride = access_stride(access.buffer, access.indices, outer.var, facts);
    auto inner_stride = access_stride(access.buffer, access.indices, inner.var, facts);
    return outer_stride && inner_stride && facts.can_prove_equal(*outer_stride, *inner_stride * inner.domain.extent);
  });
}

// Uses an axis elsewhere than in an index of a plain access: in a condition, as a value, in a nested load's index.
bool only_in_indices(const Block& block, const VarRef& axis) {
  bool ok = true;
  walk(block.body, [&](const BufferStore& store) {
    walk(
        store.value, [&](const BufferLoad&) { return false; },
        [&](const Ref<Var>& var) { ok = ok && !same_node(var, axis); });
  });
  return ok;
}

// Vectors of a piece, which divides the whole if possible: a quarter of the L1 cache, so that operands and result fit,
// rounded down to a power of two.
int64_t most_vectors_of_piece(const Target& target) {
  auto vectors = static_cast<uint64_t>(std::max<int64_t>(2, target.l1.bytes / 4 / target.vector_bytes()));
  return static_cast<int64_t>(std::bit_floor(vectors));
}
int64_t choose_piece(std::optional<int64_t> extent, int64_t lanes, int64_t most) {
  for (int64_t piece = most; extent && piece > most / 2; --piece) {
    if (*extent % (piece * lanes) == 0) return piece;
  }
  return most;
}

}  // namespace

void schedule_elementwise(Schedule& sch, const BlockRV& rv, const Target& target, Decisions& decisions) {
  Nest nest = in_order(sch, rv);
  if (nest.loops.empty()) return;
  bool parallel = !is_small(nest.spatial_extents(), target, 4);
  // Statements with loops of their own, such as scans: each is much work.
  if (!single_store(*nest.block)) return share_out(sch, nest.loops, parallel);
  const Analyzer& facts = sch.tree("").facts;
  std::vector<Access> accesses = accesses_of(*nest.block);

  // Vectors along the last axis if every access is contiguous or constant there.
  int64_t lanes = lanes_of(*nest.block, target);
  for (const Access& access : accesses) {
    auto stride = access_stride(access.buffer, access.indices, nest.axes.back().var, facts);
    if (!stride || (!is_int(*stride, 1) && !is_int(*stride, 0))) lanes = 1;
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
  for (const Loops& group : groups) outer.push_back(group.size() > 1 ? sch.apply(Fuse{group}) : group[0]);
  LoopRV inner = outer.back();
  outer.pop_back();
  auto extent_of = [&](const LoopRV& loop) { return as_int(cast<For>(sch.get(loop))->extent); };
  auto extent = extent_of(inner);
  if (extent && *extent < lanes) lanes = 1;
  Factors factors = {std::nullopt};
  bool only_inner = std::all_of(outer.begin(), outer.end(), [&](const LoopRV& l) { return extent_of(l) == 1; });
  int64_t most = most_vectors_of_piece(target);
  // One long loop: pieces of it on all threads.
  bool in_pieces = only_inner && parallel && (!extent || *extent > most * lanes);
  int64_t piece = most;
  if (in_pieces) {
    piece = decisions.number("piece", numbers_between(1, 2 * most), choose_piece(extent, lanes, most));
    factors.emplace_back(piece);
  }
  if (lanes > 1) factors.emplace_back(lanes);
  Loops parts = sch.apply(Split{inner, factors});
  if (lanes > 1) sch.apply(Vectorize{parts.back()});
  if (!in_pieces) return share_out(sch, outer, parallel);
  // The last piece may differ by the number of its iterations.
  if (!extent || *extent % (piece * lanes) != 0) sch.apply(Annotate{parts[0], "keep_whole", true});
  sch.apply(Parallel{parts[0]});
}

std::vector<DecisionRow> elementwise_decisions() {
  return {{"*.piece", "vectors in a piece of one long loop, which a thread takes", "a quarter of L1"}};
}

}  // namespace relaxc
