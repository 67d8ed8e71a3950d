// The region of a buffer that blocks access over all iterations of the loops below a place.
#pragma once
#include "tir/analysis/bounds.h"
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

RunningVars running(const std::vector<TreeNode*>& loops);

// The region of the block's access (in terms of its axes) over the iterations of the loops up to `below`, which do not
// count themselves; in terms of the loops above. `below` null: all loops of the scope.
std::vector<Range> region_at(const TreeNode* block, const BufferRegion& region, const TreeNode* below);
// The hull of what these blocks access of the buffer.
enum class AccessKind : uint8_t { kRead, kWrite };
std::optional<std::vector<Range>> region_at(const std::vector<TreeNode*>& blocks, const Buffer& buffer, AccessKind kind,
                                            const TreeNode* below);

}  // namespace relaxc::scheduling
