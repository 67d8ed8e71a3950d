// Moving a block to another loop: its own loops are made anew there, over the part of its axes that the place asks for.
#pragma once
#include "tir/edit/step.h"

namespace relaxc::scheduling {

// What a place needs of each axis; absent: the whole domain.
using AxisRanges = std::vector<std::optional<Range>>;
// The axes' values for which the block touches `needed` of the region (one of its reads or writes): from dims whose
// index is linear in one axis. Other axes are left open. `exact`: false when a dim has another form.
AxisRanges solve_axes(const TreeNode* block, const std::vector<Range>& region, const std::vector<Range>& needed,
                      bool* exact = nullptr);
// Takes the block out of its loops and puts it into `loop` before child `position`, with new loops over the ranges,
// restricted to the axes' domains.
void move_block(Tree& tree, TreeNode* block, TreeNode* loop, size_t position, const AxisRanges& ranges,
                bool preserve_unit_loops);
// A nest that copies the region of one buffer to the same positions of another.
TreeNode* copy_nest(Tree& tree, const std::string& name, const Buffer& from, const Buffer& to,
                    const std::vector<Range>& region);
std::vector<Range> whole_buffer(const Buffer& buffer);
// A block that holds no other, its regions found.
TreeNode* leaf_block(Tree& tree, const std::string& name, std::vector<IterVar> axes, const Stmt& body,
                     const std::optional<Stmt>& init = {});
// A nest around a block that does the statement for each position in [0, extents).
TreeNode* compute_nest(Tree& tree, const std::string& name, const std::vector<Expr>& extents,
                       const std::function<Stmt(const std::vector<Expr>& position)>& body);
// The outermost of the loops around the block that hold nothing else; the block itself if there are none.
TreeNode* top_of_own_loops(TreeNode* block);

// Conditions that moves share.
Refusal not_movable(const TreeNode* block);  // partial domains, statements beside blocks
// Writes that come after the block to what it reads: at a later place it would read other values.
Refusal inputs_change(const TreeNode* block);

}  // namespace relaxc::scheduling
