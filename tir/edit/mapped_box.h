// The image of a box under an index map: the box around the images of its positions, and the inverse map.
#pragma once
#include "tir/edit/affine.h"
#include "tir/edit/arguments.h"

namespace relaxc::scheduling {

struct MappedBox {
  std::vector<Expr> extents;  // images are in [0, extents)
  std::vector<VarRef> vars;   // coordinates of an image
  std::vector<Expr> origins;  // the position with that image, in terms of vars
  // The conditions under which coordinates are an image; when empty, all of them are.
  std::vector<Expr> conditions;
};
// Returns nullopt (`why` says the reason) when the map is not known to be one to one on [0, shape).
std::optional<MappedBox> map_box(Tree& tree, const IndexMap& map, const std::vector<Expr>& shape, std::string* why);

}  // namespace relaxc::scheduling
