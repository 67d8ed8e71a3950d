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
// A block that copies the region of one buffer to the same positions of another, in loops of its own that become child
// `position` of `parent`.
TreeNode* insert_copy(TreeNode* parent, size_t position, const std::string& name, const Buffer& from, const Buffer& to,
                      const std::vector<Range>& region);
std::vector<Range> whole_buffer(const Buffer& buffer);
// A block that holds no other, its regions found.
TreeNode* leaf_block(Tree& tree, const std::string& name, std::vector<IterVar> axes, const Stmt& body,
                     const std::optional<Stmt>& init = {});
// A nest around a block that does the statement for each position in [0, extents).
TreeNode* compute_nest(Tree& tree, const std::string& name, const std::vector<Expr>& extents,
                       const std::function<Stmt(const std::vector<Expr>& position)>& body);
// A new loop over [0, extent), named by its position among `loops`, and the axis that it drives.
IterVar add_loop_with_axis(Tree& tree, std::vector<TreeNode*>& loops, const VarRef& axis, const Expr& extent,
                           IterKind kind = IterKind::kSpatial);
// The outermost of the loops around the block (or loop) that hold nothing else; the node itself if there are none.
TreeNode* top_of_own_loops(TreeNode* node);
// Other loops take the place of those that hold nothing but the block.
void replace_own_loops(TreeNode* block, const std::vector<TreeNode*>& loops);
// The axis with a new variable, its value over other loops; `axes` gets the variable.
IterVar fresh_axis(const IterVar& axis, const VarMap& loops, VarMap& axes);

// Conditions that moves share.
Refusal not_movable(const TreeNode* block);  // partial domains, statements beside blocks
// Writes that come after the block to what it reads: at a later place it would read other values.
Refusal inputs_change(const TreeNode* block);
// The loop is in another scope, or around the block already.
Refusal not_a_destination(const TreeNode* loop, const TreeNode* block);

}  // namespace relaxc::scheduling
