// Loops around statements without blocks. Their iterations are compared by the elements that they load and store.
#include "tir/schedule/freedom.h"

namespace relaxc {

namespace {

// Returns the index, or vector of indices, counted from `begin` on.
Expr shifted(const Expr& index, const Expr& begin) {
  const int lanes = dtype_of(index).lanes;
  return (lanes == 1 ? begin : broadcast(begin, lanes)) + cast_to(index, dtype_of(begin).with_lanes(lanes));
}

// Returns the statement with elements of the sources in place of those of windows that have their dims, or the last of
// their dims.
Stmt through_windows(const Stmt& stmt, const std::vector<MatchBuffer>& windows) {
  auto find = [&](const Buffer& buffer, const std::vector<Expr>& indices) -> std::optional<BufferLoad> {
    for (const MatchBuffer& window : windows) {
      const std::vector<Range>& ranges = window.source.ranges;
      if (!same_node(window.buffer, buffer) || ranges.size() < indices.size()) continue;
      const size_t first = ranges.size() - indices.size();
      std::vector<Expr> places;
      for (size_t d = 0; d < ranges.size(); ++d) {
        if (d < first && !is_int(ranges[d].extent, 1)) return std::nullopt;
        places.push_back(d < first ? ranges[d].min : shifted(indices[d - first], ranges[d].min));
      }
      return BufferLoad{window.source.buffer, map_each(places, [](const Expr& e) { return simplify(e); }), {}};
    }
    return std::nullopt;
  };
  return rewrite(
      stmt,
      [&](const Ref<BufferLoad>& load) -> Expr {
        auto source = find(load->buffer, load->indices);
        return source ? relaxc::load(source->buffer, source->indices) : Expr(load);
      },
      [&](const Ref<BufferStore>& at) -> Stmt {
        auto source = find(at->buffer, at->indices);
        return source ? store(source->buffer, at->value, source->indices) : Stmt(at);
      });
}

PlainLoopFreedom freedom_of(const Ref<For>& loop, const LoopedAccesses& accesses, const Analyzer& facts) {
  PlainLoopFreedom result{.loop = loop};
  IterationOrder order = find_order(accesses, loop->var, facts);
  result.effect = order.unknown;
  result.dependence = order.unknown;
  for (std::string& update : order.updates) result.reductions.push_back({nullptr, std::move(update), false});
  result.carried = std::move(order.carried);
  result.strides = strides_in(accesses, loop->var, facts);
  // An element that is combined, and otherwise used, depends on the order all the same.
  if (!result.carried.empty() && !result.dependence) result.dependence = "its iterations depend on each other";
  if (!result.reductions.empty() && !result.dependence) result.dependence = "its iterations combine into one element";
  return result;
}

// Two loops may be exchanged where one is all of the other's body and iterations of both may run in any order.
void exchange(std::vector<PlainLoopFreedom>& all) {
  auto is_free = [](const PlainLoopFreedom& freedom) {
    return freedom.carried.empty() && (!freedom.dependence || !freedom.reductions.empty());
  };
  for (size_t i = 0; i < all.size(); ++i) {
    Stmt body = all[i].loop->body;
    for (size_t j = i + 1; j < all.size() && is_free(all[i]); ++j) {
      const Ref<For>& inner = all[j].loop;
      auto next = try_cast<For>(body);
      if (!next || !same_node(*next, inner) || !is_free(all[j])) break;
      bool depends = uses_var(inner->min, all[i].loop->var) || uses_var(inner->extent, all[i].loop->var);
      if (depends) break;
      all[i].exchanged.push_back(inner);
      all[j].exchanged.push_back(all[i].loop);
      body = inner->body;
    }
  }
}

}  // namespace

std::vector<PlainLoopFreedom> find_plain_freedoms(const Stmt& stmt, const std::vector<MatchBuffer>& windows,
                                                  const Analyzer& facts) {
  LoopedAccesses accesses = accesses_of(windows.empty() ? stmt : through_windows(stmt, windows));
  auto is_seen = [&](const MatchBuffer& window) {
    return std::ranges::any_of(accesses.all,
                               [&](const LoopedAccess& at) { return same_node(at.buffer, window.buffer); });
  };
  if (std::ranges::any_of(windows, is_seen))
    accesses.opaque.emplace_back(std::vector<LoopRange>{}, "a view of another shape may hold the same elements");
  Analyzer with_ranges = facts;
  for (const Ref<For>& loop : accesses.loops) with_ranges.bind(loop->var, loop->min, loop->extent);
  std::vector<PlainLoopFreedom> result;
  for (const Ref<For>& loop : accesses.loops) result.push_back(freedom_of(loop, accesses, with_ranges));
  exchange(result);
  return result;
}

}  // namespace relaxc
