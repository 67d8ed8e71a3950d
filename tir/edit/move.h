// Moves a block to another loop (TVM's and Halide's compute_at): its loops are made anew there, over the part of its
// axes that the place needs.
#pragma once
#include "tir/edit/step.h"

namespace relaxc::scheduling {

// The range of each axis that a place needs; an absent range stands for the whole domain.
using AxisRanges = std::vector<std::optional<Range>>;
// Returns the axes' values for which the block touches `needed` of the region (one of its reads or writes). They are
// solved from dims whose index is linear in one axis; other axes are left open. `exact` becomes false when a dim has
// another form.
AxisRanges solve_axes(const TreeNode* block, const std::vector<Range>& region, const std::vector<Range>& needed,
                      bool* exact = nullptr);
// Moves the block out of its loops to child `position` of `loop`, in new loops over the ranges within its domains.
void move_block(Tree& tree, TreeNode* block, TreeNode* loop, size_t position, const AxisRanges& ranges,
                bool preserve_unit_loops);
// Inserts a block that copies the region of a buffer to the same place in another, as child `position` of `parent`.
TreeNode* insert_copy(TreeNode* parent, size_t position, const std::string& name, const Buffer& from, const Buffer& to,
                      const std::vector<Range>& region);
// Inserts a block that copies the region of the buffer to a new one (kRead), or back from the new one to the buffer
// (kWrite). The users access the new buffer instead.
TreeNode* insert_cache(TreeNode* parent, size_t position, const Buffer& buffer, AccessKind kind,
                       const std::string& storage_scope, const std::vector<Range>& region, const Nodes& users);
std::vector<Range> whole_buffer(const Buffer& buffer);
// Makes a block that does not hold other blocks, and finds its regions.
TreeNode* leaf_block(Tree& tree, const std::string& name, std::vector<IterVar> axes, const Stmt& body,
                     const std::optional<Stmt>& init = {});
// Makes a nest around a block that runs the statement for each position in [0, extents).
TreeNode* compute_nest(Tree& tree, const std::string& name, const std::vector<Expr>& extents,
                       const std::function<Stmt(const std::vector<Expr>& position)>& body);
// Adds a loop over [0, extent), named by its position among `loops`, and returns the axis that it drives.
IterVar add_loop_with_axis(Tree& tree, Nodes& loops, const VarRef& axis, const Expr& extent,
                           IterKind kind = IterKind::kSpatial);
// Returns the outermost of the loops around the block (or loop) that hold nothing else, if any, else the node itself.
TreeNode* top_of_exclusive_loops(TreeNode* node);
// Puts other loops in the place of those that hold nothing but the block, and forgets TreeNode::affine.
void replace_exclusive_loops(TreeNode* block, const Nodes& loops);
// Gives the axes of a block, which is alone in its loops, these extents. Loops that are the axes stay.
void extend_axes(TreeNode* block, const std::vector<Expr>& extents);
// Returns the axis with a new variable, its value over other loops; `axes` gets the variable.
IterVar fresh_axis(const IterVar& axis, const VarMap& loops, VarMap& axes);

// Returns the loop to move a block to. Returns null for a sampled location that needs no move: the root stands for the
// block's present place, the block itself for its inlining, which is done here.
template <class Inline>
TreeNode* destination(Step& step, const BlockRV& block, const LoopRV& loop) {
  TreeNode *moved = step.block(block), *sampled = step.node(loop.var);
  if (sampled == moved->tree->root()) return nullptr;
  if (sampled != moved || same_node(loop.var, block.var)) return step.loop(loop);
  step.apply(Inline{block});
  return nullptr;
}

// These are the conditions that several moves check.
Refusal not_movable(const TreeNode* block);  // partial domains, statements beside blocks
// Writes that come after the block change its inputs: at a later place it would read other values.
Refusal inputs_change(const TreeNode* block);
// The loop is in another scope, or around the block already.
Refusal not_a_destination(const TreeNode* loop, const TreeNode* block);

}  // namespace relaxc::scheduling
