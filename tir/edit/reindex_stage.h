// A copy of the part of a buffer that one block reads or writes, laid out by the block's axes.
#pragma once
#include "tir/edit/step.h"

namespace relaxc::scheduling {

// The block accesses the buffer at one place per iteration. The access goes to a new buffer, at map(axes) (without a
// map: at the axes that the place depends on). The copying block, which is the result, stands before (reads) or behind
// (writes) all of the block's loops.
BlockRV reindex_stage(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind, const std::string& name,
                      const std::string& storage_scope, const IndexMap* map = nullptr);

}  // namespace relaxc::scheduling
