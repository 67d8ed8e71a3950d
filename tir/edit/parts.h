// Blocks that write one buffer in parts, each of them other elements, as those of a concatenation do.
#pragma once
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

// Returns the block, and those of its scope that write a buffer with it or with another of them, in program order.
Nodes parts_with(TreeNode* block);
// Refuses blocks of which two may write the same element.
Refusal not_apart(const Nodes& parts);
// Refuses a block of which another one may write the same element.
Refusal not_apart_from_others(const TreeNode* block);

}  // namespace relaxc::scheduling
