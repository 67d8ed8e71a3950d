// Functions that change or copy a tensor program as a whole, and that find the dims its params bind.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "ir/visit.h"

namespace relaxc {

// Returns the function with another body, or the same node if the body is the same.
PrimFuncRef with_body(const PrimFuncRef& function, const Stmt& body);
// Returns the statement, which is a T, as `edit` changes a copy of it.
template <class T, class Edit>
Stmt edited(const Stmt& stmt, const Edit& edit) {
  T copy = *stmt.as<T>();
  edit(copy);
  return make(std::move(copy), stmt.span());
}
// Returns the symbolic dims of the buffer params, including those that are scalar params already (the attribute
// `num_dims` counts those). None of them is negative.
std::vector<VarRef> symbolic_dims(const PrimFuncRef& function);
// Returns an analyzer that knows what the params' types say about these dims.
Analyzer facts_of_params(const PrimFuncRef& function);

// Returns a size for a person: of a constant the digits alone.
std::string size_text(const Expr& size);
// Returns dtype, dims and scope for a person: "float32[n, 16] local".
std::string buffer_text(const BufferType& type);

// Returns the program with a new variable for each Let whose variable an earlier Let binds as well. Steps such as
// inlining and the merging of subexpressions may copy an expression, but a variable must be defined in one place only.
PrimFuncRef with_distinct_lets(const PrimFuncRef& function);

}  // namespace relaxc
