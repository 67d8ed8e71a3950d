#pragma once
#include "ir/module.h"
#include "ir/visit.h"

namespace relaxc {

// A copy of the statement with variables replaced and every variable bound inside made new.
Stmt instantiate(const Stmt& stmt, const VarMap& axes);

// The program with new variables for each Let that another one like it precedes. Steps put an expression where it is
// needed, in several places if need be (inlining, merging of subexpressions); a variable is defined in one place.
PrimFuncRef with_distinct_lets(const PrimFuncRef& function);

}  // namespace relaxc
