#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// The statement with its loops over these variables (as keys) as one loop around it, over [0, count); nullopt where a
// row may use what another one writes. Other statements that store stand in none of them and are such a case.
std::optional<Stmt> row_by_row(const Stmt& tile, const std::unordered_set<const NodeHeader*>& rows, const Expr& count,
                               const Analyzer& facts);

}  // namespace relaxc
