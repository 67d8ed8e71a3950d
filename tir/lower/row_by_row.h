#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

// Returns the statement with its loops over these variables (as keys) merged into one loop over [0, count) around it.
// Returns nullopt where a row may use an element that another row writes, and where a statement outside of these loops
// stores.
std::optional<Stmt> row_by_row(const Stmt& tile, const NodeSet& rows, const Expr& count, const Analyzer& facts);

}  // namespace relaxc
