// The elements that blocks are known to write. Regions (bounds.h) are upper bounds of the elements touched, which is
// enough to know what a read needs. To know that a value has been computed, the opposite is needed: every element of a
// box, and nothing beside it.
#pragma once
#include "tir/edit/regions.h"

namespace relaxc::scheduling {

// Returns the box of the buffer that these blocks fill over the iterations of the loops below `below` (exclusive), in
// terms of `below` and the loops above. A null `below` means all loops of the scope. Returns nullopt when the written
// elements are not known to be a box.
std::optional<std::vector<Range>> written_at(const Nodes& blocks, const Buffer& buffer, const TreeNode* below);
// Returns whether that box is known and contains the needed region.
bool writes_all(const Nodes& blocks, const Buffer& buffer, const TreeNode* below, const std::vector<Range>& needed);

}  // namespace relaxc::scheduling
