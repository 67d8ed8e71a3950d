// What blocks read and write, who depends on whom, and the forms of blocks that primitives ask for.
#pragma once
#include "tir/edit/regions.h"

namespace relaxc::scheduling {

const BufferRegion* find_region(const std::vector<BufferRegion>& regions, const Buffer& buffer);
inline const BufferRegion* read_of(const TreeNode* block, const Buffer& buffer) {
  return find_region(block->block->reads, buffer);
}
inline const BufferRegion* write_of(const TreeNode* block, const Buffer& buffer) {
  return find_region(block->block->writes, buffer);
}

// Blocks of the scope (those inside of other blocks do not count) in program order.
std::vector<TreeNode*> writers(const TreeNode* scope, const Buffer& buffer);
std::vector<TreeNode*> readers(const TreeNode* scope, const Buffer& buffer);
// Blocks of the same scope that write what this one reads, and that read what it writes.
std::vector<TreeNode*> producers_of(const TreeNode* block);
std::vector<TreeNode*> consumers_of(const TreeNode* block);
// Whether one writes what the other reads or writes.
bool depend(const TreeNode* a, const TreeNode* b);
// Seen from outside of the scope: a param, or memory of an outer block.
bool is_output(const TreeNode* block);
// The block whose memory the buffer is; null for params.
TreeNode* allocating_block(const Tree& tree, const Buffer& buffer);

// The axis that the expression names; null: it is something else.
const IterVar* axis_named(const TreeNode* block, const Expr& e);
// Whether values of spatial axes depend on the loop, and values of others.
struct Drives {
  bool spatial = false, reduce = false;
};
Drives drives(const TreeNode* loop, const std::vector<IterVar>& axes);
// The loop, or one around it in the scope, that drives an axis that is not spatial: the block's results are not final
// in an iteration of the loop.
struct DrivenAxis {
  TreeNode* loop;
  const IterVar* axis;
};
std::optional<DrivenAxis> find_unfinished(const TreeNode* block, TreeNode* loop);

// Each says which condition failed; nullopt: none.
using Refusal = std::optional<std::string>;
// Axes are spatial and reads leave alone what the block writes.
Refusal not_spatial(const TreeNode* block);
// Spatial, and nobody else in the scope writes its buffers: each element is what the block made of it, always.
Refusal not_complete(const TreeNode* block);
// Has an init, axes are spatial or reduce, writes do not depend on reduce axes, nobody else writes its buffers (within
// the loop).
Refusal not_reduction(const TreeNode* block, const TreeNode* within = nullptr);
Refusal not_complete_or_reduction(const TreeNode* block);
// The loop may run in any order, or at once: it binds spatial axes only and its iterations do not share results.
Refusal not_parallel(const TreeNode* loop);
// The loops of these blocks may change places: axes spatial or reduce, values of axes one to one with iterations,
// nothing carried from one iteration to the next. Loops outside of `outermost` may repeat elements.
Refusal not_reorderable(TreeNode* block, const TreeNode* outermost = nullptr);
// The loop starts at 0, is not bound to threads and has no annotations, so that others can take its place.
Refusal not_replaceable(const TreeNode* loop);
// Statements beside the blocks of the scope, among which nothing may be moved.
Refusal has_other_statements(const TreeNode* scope);

// A block's only statement, out[indices] = value; null when it has another form, handles vectors, or has windows.
const BufferStore* single_store(const TreeNode* block);
// What the body accesses as reads and writes again, and of the blocks around it.
void refresh_regions(TreeNode* block);
// Of the blocks that the node stands in, after what they hold changed.
void refresh_regions_above(TreeNode* node);
// Every load and store of the buffer in the subtree, and its regions, go to another of the same rank.
void replace_buffer(TreeNode* below, const Buffer& from, const Buffer& to);

}  // namespace relaxc::scheduling
