#include "tir/edit/parts.h"

#include <algorithm>

namespace relaxc::scheduling {

Nodes parts_with(TreeNode* block) {
  Nodes parts = {block};
  std::vector<Buffer> seen;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const BufferRegion& write : parts[i]->block->writes) {
      if (contains(seen, write.buffer)) continue;
      seen.push_back(write.buffer);
      for (TreeNode* writer : writers(scope_of(block), write.buffer)) {
        if (!contains(parts, writer)) parts.push_back(writer);
      }
    }
  }
  if (seen.size() > 1) std::ranges::sort(parts, [](auto* a, auto* b) { return a != b && precedes(a, b); });
  if (parts.size() > 1 && seen.size() == 1) parts = writers(scope_of(block), seen[0]);
  return parts;
}

// Refuses two blocks that are not known to write different elements of the buffers that both write.
static Refusal may_meet(const TreeNode* a, const TreeNode* b) {
  const Analyzer& facts = a->tree->facts;
  auto is_before = [&](const Range& first, const Range& second) {
    return facts.can_prove(end_of(first) <= cast_to(second.min, dtype_of(first.min)));
  };
  for (const BufferRegion& write : a->block->writes) {
    const BufferRegion* other = write_of(b, write.buffer);
    if (!other) continue;
    std::vector<Range> x = region_at(a, write, nullptr), y = region_at(b, *other, nullptr);
    bool apart = false;
    for (size_t d = 0; d < x.size() && !apart; ++d) apart = is_before(x[d], y[d]) || is_before(y[d], x[d]);
    if (!apart)
      return message("blocks '{}' and '{}' both write '{}', and are not known to write different elements of it", a, b,
                     write.buffer);
  }
  return std::nullopt;
}

Refusal not_apart(const Nodes& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = i + 1; j < parts.size(); ++j) {
      if (Refusal refusal = may_meet(parts[i], parts[j])) return refusal;
    }
  }
  return std::nullopt;
}

Refusal not_apart_from_others(const TreeNode* block) {
  for (const TreeNode* other : blocks_inside(scope_of(block))) {
    if (other == block) continue;
    if (Refusal refusal = may_meet(block, other)) return refusal;
  }
  return std::nullopt;
}

}  // namespace relaxc::scheduling
