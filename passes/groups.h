// Connected groups of an acyclic graph, such that each group can be computed as one step (TVM:
// MergeCompositeFunctions).
#pragma once
#include <cstddef>
#include <set>
#include <vector>

namespace relaxc {

class ConnectedGroups {
 public:
  // `needs`: the nodes, all before it, on which each node depends. Two nodes that may join, of which one needs the
  // other, come into one group unless a path leads out of that and back in.
  ConnectedGroups(const std::vector<std::vector<size_t>>& needs, const std::vector<bool>& may_join);

  size_t group(size_t node) const { return group_[node]; }
  // Returns all groups, nodes that did not join included, each after those on which it depends, otherwise in the order
  // of their last nodes. Members are in order.
  std::vector<std::vector<size_t>> in_order() const;

 private:
  bool is_convex(size_t a, size_t b) const;
  void merge(size_t a, size_t b);

  // The following are by group, which has the number of one of its members.
  std::vector<std::vector<size_t>> members_;
  std::vector<std::set<size_t>> needs_;  // nodes of other groups
  std::vector<size_t> group_;            // of each node
};

}  // namespace relaxc
