// What blocks write for certain. Regions (bounds.h) say what may be touched, which is enough to know what must be there
// before a read; that something has been made needs the opposite: every element of the box, and nothing beside it.
#pragma once
#include "tir/edit/regions.h"

namespace relaxc::scheduling {

// The box of the buffer that these blocks fill over the iterations of the loops up to `below`, which do not count
// themselves, in terms of the loops above; `below` null: all loops of the scope. nullopt: not known to be a box.
std::optional<std::vector<Range>> written_at(const std::vector<TreeNode*>& blocks, const Buffer& buffer,
                                             const TreeNode* below);
// Whether that is known, and holds the region.
bool writes_all(const std::vector<TreeNode*>& blocks, const Buffer& buffer, const TreeNode* below,
                const std::vector<Range>& needed);

}  // namespace relaxc::scheduling
