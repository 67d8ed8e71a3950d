// The image of a box under an index map: the box around the images of its positions, and the inverse map.
#pragma once
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

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

}  // namespace relaxc::scheduling
