#include "passes/min_cut.h"

#include <algorithm>
#include <optional>

namespace relaxc {

size_t MinCut::add_node() {
  from_.emplace_back();
  return from_.size() - 1;
}

void MinCut::add_cost(size_t a, size_t b, double cost) {
  from_[a].push_back(arcs_.size());
  arcs_.push_back({b, cost});
  from_[b].push_back(arcs_.size());
  arcs_.push_back({a, 0});
}

// Sends as much as fits along a shortest path (Edmonds and Karp, 1972). Returns false when there is none.
bool MinCut::push_flow() {
  std::vector<std::optional<size_t>> arrived(from_.size());
  std::vector<size_t> queue = {kSource};
  for (size_t next = 0; next < queue.size() && !arrived[kSink]; ++next) {
    for (size_t arc : from_[queue[next]]) {
      const size_t to = arcs_[arc].to;
      if (to == kSource || arrived[to] || arcs_[arc].capacity <= 0) continue;
      arrived[to] = arc;
      queue.push_back(to);
    }
  }
  if (!arrived[kSink]) return false;
  double least = kNever;
  auto along_path = [&](auto&& visit) {
    for (size_t node = kSink; node != kSource; node = arcs_[*arrived[node] ^ 1].to) visit(*arrived[node]);
  };
  along_path([&](size_t arc) { least = std::min(least, arcs_[arc].capacity); });
  along_path([&](size_t arc) {
    arcs_[arc].capacity -= least;
    arcs_[arc ^ 1].capacity += least;
  });
  return least < kNever;
}

std::vector<bool> MinCut::solve() {
  while (push_flow()) {
  }
  std::vector<bool> side(from_.size(), false);
  std::vector<size_t> queue = {kSource};
  side[kSource] = true;
  for (size_t next = 0; next < queue.size(); ++next) {
    for (size_t arc : from_[queue[next]]) {
      const size_t to = arcs_[arc].to;
      if (side[to] || arcs_[arc].capacity <= 0) continue;
      side[to] = true;
      queue.push_back(to);
    }
  }
  return side;
}

}  // namespace relaxc
