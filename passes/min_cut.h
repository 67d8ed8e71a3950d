// The minimum cut of a graph (Ford and Fulkerson, 1956): the cheapest way to give each node one of two sides.
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

namespace relaxc {

class MinCut {
 public:
  static constexpr size_t kSource = 0, kSink = 1;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // Adds a node that is on either side.
  size_t add_node();
  // The cut costs so much more where `a` is on the source's side and `b` is not.
  void add_cost(size_t a, size_t b, double cost);
  // Returns for each node whether it is on the source's side in the cheapest cut, the one with the fewest such nodes.
  std::vector<bool> solve();

 private:
  struct Arc {
    size_t to;
    double capacity;  // that is left; arcs 2 * i and 2 * i + 1 are each other's reverse
  };
  bool push_flow();
  std::vector<Arc> arcs_;
  std::vector<std::vector<size_t>> from_{2};  // arcs by node
};

}  // namespace relaxc
