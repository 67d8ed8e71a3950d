#pragma once
#include "ir/module.h"
#include "ir/visit.h"

namespace relaxc {

// A copy of the statement with variables replaced and every variable bound inside made new.
Stmt instantiate(const Stmt& stmt, const VarMap& axes);

}  // namespace relaxc
