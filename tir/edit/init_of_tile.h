// Builds the init of a reduction's elements in one tile, when the tile's iterations become a separate block (blockize).
#pragma once
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

// Returns a nest of the loops inside of the tile that drive spatial axes alone. Fused loops that also reduce do not run
// where the sum is empty; the spatial axes that they drive get separate loops. `positions` maps the block's axes to
// expressions over the tile's. The conditions are those inside of the tile.
Stmt init_of_tile(TreeNode* block, const Nodes& inside, const std::vector<IterVar>& tile_axes, const VarMap& positions,
                  const std::vector<Expr>& conditions, const std::vector<VarRef>& outer_reduce_axes);

}  // namespace relaxc::scheduling
