// Index maps, "lambda i, j: (i // 4, j, i % 4)": functions from the positions in one tensor to those in another.
#pragma once
#include "ir/module.h"

namespace relaxc {

// Reads the attribute that stands for T.index_map(...). Returns nullopt for anything else. Indices are int64.
std::optional<Ref<Lambda>> read_index_map(const AttrValue& attr, const Span& span);
// Returns that attribute.
AttrValue index_map_attr(const Lambda& map);
// Returns the positions that the map gives these positions.
std::vector<Expr> mapped(const Lambda& map, const std::vector<Expr>& positions);
// Returns the smallest box around the images of all positions in a tensor of this shape, which begins at 0. Returns
// nullopt for a map that also gives negative positions, or has other operators than + - * // %.
std::optional<std::vector<Expr>> mapped_shape(const Lambda& map, const std::vector<Expr>& shape);

}  // namespace relaxc
