// The reads and writes of blocks, the dependences between them, and the forms of blocks that primitives require.
#pragma once
#include "tir/analysis/iter_map.h"
#include "tir/edit/regions.h"

namespace relaxc::scheduling {

const BufferRegion* find_region(const std::vector<BufferRegion>& regions, const Buffer& buffer);
inline const BufferRegion* read_of(const TreeNode* block, const Buffer& buffer) {
  return find_region(block->block->reads, buffer);
}
inline const BufferRegion* write_of(const TreeNode* block, const Buffer& buffer) {
  return find_region(block->block->writes, buffer);
}
// Returns whether the block reads or writes the buffer.
inline bool accesses(const TreeNode* block, const Buffer& buffer) {
  return read_of(block, buffer) || write_of(block, buffer);
}

// Return the blocks of the scope (those inside of other blocks do not count) in program order.
Nodes writers(const TreeNode* scope, const Buffer& buffer);
Nodes readers(const TreeNode* scope, const Buffer& buffer);
// Return the blocks of the same scope that write what this one reads, and those that read what it writes.
Nodes producers_of(const TreeNode* block);
Nodes consumers_of(const TreeNode* block);
// Returns whether one block writes a buffer that the other reads or writes.
bool depend(const TreeNode* a, const TreeNode* b);
// Returns whether the result is visible outside of the scope: a param, or memory of an outer block.
bool is_output(const TreeNode* block);
// Returns the block that allocates the buffer, or null for params.
TreeNode* allocating_block(const Tree& tree, const Buffer& buffer);
// Returns whether the program allocates the buffer and only blocks in the loop use it.
bool is_private_to(const TreeNode* loop, const Buffer& buffer);

// Returns the axis that the expression names, or null when it is something else.
const IterVar* axis_named(const TreeNode* block, const Expr& e);
// Returns for each axis the dim of the buffer whose index it is, absent for axes of extent 1; nullopt (`why` says the
// reason) when an index in a dim above 1 is not an axis by itself, or an axis is not an index.
using AxisDims = std::vector<std::optional<size_t>>;
std::optional<AxisDims> dims_of_axes(const TreeNode* block, const Buffer& buffer, const std::vector<Expr>& indices,
                                     std::string* why = nullptr);
// Tells whether values of spatial axes depend on the loop, and values of other axes.
struct Drives {
  bool spatial = false, reduce = false;
};
Drives drives(const TreeNode* loop, const std::vector<IterVar>& axes);
// Returns the loop, or one around it in the scope, that drives an axis that is not spatial. The block's results are
// then not final in an iteration of the loop.
struct DrivenAxis {
  TreeNode* loop;
  const IterVar* axis;
};
std::optional<DrivenAxis> find_unfinished(const TreeNode* block, TreeNode* loop);

// The loops as the analysis of iterations takes them.
std::vector<LoopRange> ranges_of(const Nodes& loops);
// Returns whether loops bring a non-spatial axis down: the init, which runs at its first value, would come last.
bool reduces_downwards(const IterMap& map, const std::vector<IterVar>& axes, std::string* why);
// Returns whether different iterations of the loops around the block give its axes different values (TVM's affine
// bindings), and none counts a reduce axis down; the result is kept in TreeNode::affine.
bool has_affine_bindings(TreeNode* block, std::string* why = nullptr);
// Does the same for some of the loops; the other loops' variables are fixed.
bool has_affine_bindings(const TreeNode* block, const Nodes& loops, std::string* why = nullptr);

// Returns true unless every value that the block writes is known to be the same in every order of its reduce iterations
// (sums of floats count as that): a sum, product, max, min or the like, or the position of the largest or smallest
// element, if the position decides between equal elements: `x > best or x == best and i < at`.
bool needs_order(const Block& block);
// Returns whether the loops bring the block's reduce axes in lexicographic order, as new loops would.
bool comes_in_order(const TreeNode* block);
// Does the same for other values of the axes, in other loops (outermost first).
bool comes_in_order(const TreeNode* block, const std::vector<Expr>& axis_values, const Nodes& loops);

// Each of these functions returns the condition that failed, or nullopt when all of them hold.
using Refusal = std::optional<std::string>;
// The axes must be spatial, and the block must not read the buffers that it writes.
Refusal not_spatial(const TreeNode* block);
// The block must be their only writer in the scope, too, so that each element always has the value that it gave it.
Refusal not_complete(const TreeNode* block);
// The block must have an init, spatial or reduce axes only, and writes that do not depend on reduce axes. No other
// block may write its buffers (within the loop).
Refusal not_reduction_within(const TreeNode* loop, const TreeNode* block);
inline Refusal not_reduction(const TreeNode* block) { return not_reduction_within(nullptr, block); }
Refusal not_complete_or_reduction(const TreeNode* block);
Refusal not_spatial_or_reduction(const TreeNode* block);  // whoever else writes its buffers
// The loop may run in any order, or in parallel: it binds spatial axes only and its iterations do not share results.
Refusal not_parallel(TreeNode* loop, bool may_reduce = false);
// The loops around the block must be free to change places: its axes are spatial or reduce, their values are one to one
// with the iterations, and no dependence is loop-carried. With `outermost`, one of these loops, only that loop and the
// loops inside of it must be free, dependences are left to `reverses_dependence`, and the loops around `outermost` may
// visit the same elements again.
Refusal not_reorderable_from(const TreeNode* outermost, TreeNode* block);
inline Refusal not_reorderable(TreeNode* block) { return not_reorderable_from(nullptr, block); }
// In another order of these loops, a chain around the block, accesses to an element that the block stores must come in
// the order in which they came before (the sign of the distance vector).
Refusal reverses_dependence(const TreeNode* block, const Nodes& before, const Nodes& after);
// The loop starts at 0, is not bound to threads and has no annotations, so that others can take its place.
Refusal not_replaceable(const TreeNode* loop);
// The scope holds statements beside its blocks, so that nothing may be moved in it.
Refusal has_other_statements(const TreeNode* scope);

// Returns a block's only statement, out[indices] = value; null: it has another form, handles vectors, or has windows.
const BufferStore* single_store(const TreeNode* block);
// Recomputes the reads and writes of the block from its body.
void refresh_regions(TreeNode* block);
// Recomputes the regions of the blocks around the node, after their content has changed.
void refresh_regions_above(TreeNode* node);
// Recomputes the block's regions first, then those of the blocks around it.
void refresh_regions_around(TreeNode* block);
// Redirects every load and store of the buffer in the subtree, and its regions, to another buffer of the same rank.
void replace_buffer(TreeNode* below, const Buffer& from, const Buffer& to);

}  // namespace relaxc::scheduling
