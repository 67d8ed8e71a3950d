// Blocks under index maps: the image of a box of positions, and copies of a buffer that are laid out by a block's axes.
#pragma once
#include "tir/edit/step.h"

namespace relaxc::scheduling {

// The image of a box under an index map: the box around the images of its positions, and the inverse map.
struct MappedBox {
  std::vector<Expr> extents;  // images are in [0, extents)
  std::vector<VarRef> vars;   // coordinates of an image
  std::vector<Expr> origins;  // the position with that image, in terms of vars
  // The conditions under which coordinates are an image; when empty, all of them are.
  std::vector<Expr> conditions;
};
// Returns the box of the images, which are expressions over the positions. Returns nullopt (`why` says the reason) when
// positions do not start at 0, or when the images are not known to be one to one with them.
std::optional<MappedBox> map_box(Tree& tree, const std::vector<LoopRange>& positions, const std::vector<Expr>& images,
                                 std::string* why);
// The same for positions that are values of these axes.
std::optional<MappedBox> map_box(Tree& tree, const std::vector<IterVar>& axes, const std::vector<Expr>& images,
                                 std::string* why);

// The block accesses the buffer at one place per iteration. The access goes to a new buffer, at map(axes) (without a
// map: at the axes that the place depends on). The copying block, which is the result, stands before (reads) or behind
// (writes) all of the block's loops.
BlockRV reindex_stage(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind, const std::string& name,
                      const std::string& storage_scope, const IndexMap* map = nullptr);

}  // namespace relaxc::scheduling
