// What an index map makes of the positions of a box: the box around their images, and the way back.
#pragma once
#include "tir/edit/affine.h"
#include "tir/edit/arguments.h"

namespace relaxc::scheduling {

struct MappedBox {
  std::vector<Expr> extents;  // images are in [0, extents)
  std::vector<VarRef> vars;   // coordinates of an image
  std::vector<Expr> origins;  // the position that has it, in terms of vars
  // What holds for the images among the coordinates; empty: all are.
  std::vector<Expr> conditions;
};
// nullopt (`why` says the reason) when the map is not known to be one to one on [0, shape).
std::optional<MappedBox> map_box(Tree& tree, const IndexMap& map, const std::vector<Expr>& shape, std::string* why);

}  // namespace relaxc::scheduling
