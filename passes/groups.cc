#include "passes/groups.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

namespace relaxc {

ConnectedGroups::ConnectedGroups(const std::vector<std::vector<size_t>>& needs, const std::vector<bool>& may_join) {
  for (size_t node = 0; node < needs.size(); ++node) {
    group_.push_back(node);
    members_.push_back({node});
    needs_.emplace_back(needs[node].begin(), needs[node].end());
    for (size_t other : needs[node]) {
      bool is_candidate = may_join[node] && may_join[other] && group_[other] != group_[node];
      if (is_candidate && is_convex(group_[other], group_[node])) merge(group_[other], group_[node]);
    }
  }
}

// Returns whether no path leads out of the two and back in.
bool ConnectedGroups::is_convex(size_t a, size_t b) const {
  std::vector<size_t> todo;
  std::unordered_set<size_t> seen;
  auto add_needs = [&](size_t group) {
    for (size_t node : needs_[group]) {
      if (seen.insert(group_[node]).second) todo.push_back(group_[node]);
    }
  };
  // An edge between the two becomes an inner one.
  add_needs(a), add_needs(b);
  std::erase_if(todo, [&](size_t group) { return group == a || group == b; });
  seen.erase(a), seen.erase(b);
  while (!todo.empty()) {
    size_t group = todo.back();
    todo.pop_back();
    if (group == a || group == b) return false;
    add_needs(group);
  }
  return true;
}

void ConnectedGroups::merge(size_t a, size_t b) {
  if (members_[a].size() < members_[b].size()) std::swap(a, b);
  for (size_t node : members_[b]) group_[node] = a;
  members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
  needs_[a].merge(needs_[b]);
  std::erase_if(needs_[a], [&](size_t node) { return group_[node] == a; });
  members_[b].clear(), needs_[b].clear();
}

std::vector<std::vector<size_t>> ConnectedGroups::in_order() const {
  using Entry = std::pair<size_t, size_t>;  // the last member, the group
  std::vector<size_t> missing(group_.size());
  std::vector<std::vector<size_t>> users(group_.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t group = 0; group < group_.size(); ++group) {
    std::set<size_t> needed;
    for (size_t node : needs_[group]) needed.insert(group_[node]);
    for (size_t other : needed) users[other].push_back(group);
    missing[group] = needed.size();
    if (needed.empty() && !members_[group].empty()) ready.emplace(std::ranges::max(members_[group]), group);
  }
  std::vector<std::vector<size_t>> result;
  while (!ready.empty()) {
    size_t group = ready.top().second;
    ready.pop();
    result.push_back(members_[group]);
    std::ranges::sort(result.back());
    for (size_t user : users[group]) {
      if (--missing[user] == 0) ready.emplace(std::ranges::max(members_[user]), user);
    }
  }
  return result;
}

}  // namespace relaxc
