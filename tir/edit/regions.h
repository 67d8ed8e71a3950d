// The region of a buffer that blocks access over all iterations of the loops below a place, which is an upper bound and
// enough to know what a read needs; and the box that they are known to write, every element of it and nothing beside
// it, which tells that a value has been computed.
#pragma once
#include "tir/analysis/bounds.h"
#include "tir/edit/tree.h"

namespace relaxc::scheduling {

RunningVars running(const Nodes& loops);

// Widens the region of the buffer to one that covers `more`, too.
void widen(std::vector<Range>& region, const std::vector<Range>& more, const Buffer& buffer, const Analyzer& facts);
// Returns the region of the block's access (in terms of its axes) over the iterations of the loops below `below`
// (exclusive), in terms of `below` and the loops above. A null `below` means all loops of the scope.
std::vector<Range> region_at(const TreeNode* block, const BufferRegion& region, const TreeNode* below);
// Returns the hull of the regions of the buffer that these blocks access.
enum class AccessKind : uint8_t { kRead, kWrite };
std::optional<std::vector<Range>> region_at(const Nodes& blocks, const Buffer& buffer, AccessKind kind,
                                            const TreeNode* below);

// Returns the box of the buffer that these blocks fill over the iterations of the loops below `below` (exclusive), in
// terms of `below` and the loops above. A null `below` means all loops of the scope. Returns nullopt when the written
// elements are not known to be a box.
std::optional<std::vector<Range>> written_at(const Nodes& blocks, const Buffer& buffer, const TreeNode* below);
// Returns whether the block reads the buffer under a condition, and for elements, or elements that may be such, at
// whose places the buffer has none: a concatenation has elements of its other operands.
bool has_other_elements(const TreeNode* block, const BufferRegion& read);
// Returns whether that box is known and contains the needed region.
bool writes_all(const Nodes& blocks, const Buffer& buffer, const TreeNode* below, const std::vector<Range>& needed);

}  // namespace relaxc::scheduling
