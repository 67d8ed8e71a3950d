// A tensor program as a whole: another body, copies with variables of their own, the dims that its params bring.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "ir/visit.h"

namespace relaxc {

// The function with another body; itself where that is the same.
PrimFuncRef with_body(const PrimFuncRef& function, const Stmt& body);
// The symbolic dims of the buffer params, also where they are scalar params already (the attribute `num_dims` counts
// those): variables that are never negative.
std::vector<VarRef> symbolic_dims(const PrimFuncRef& function);
// What the params' types say about these dims.
Analyzer facts_of_params(const PrimFuncRef& function);

// A copy of the statement with variables replaced and every variable bound inside made new.
Stmt instantiate(const Stmt& stmt, const VarMap& axes);

// The program with new variables for each Let that another one like it precedes. Steps put an expression where it is
// needed, in several places if need be (inlining, merging of subexpressions); a variable is defined in one place.
PrimFuncRef with_distinct_lets(const PrimFuncRef& function);

}  // namespace relaxc
