// Gives params whose types a text leaves open the types that a compilation needs.
#pragma once
#include <map>

#include "ir/module.h"
#include "ir/op.h"

namespace relaxc {

// Reads "float32[n, 4]", or such a type in "sequence(...)" or "optional(...)"; the dims of a name are one dim in all
// types that share `dims`. Throws a CompileError.
Type parse_type(const std::string& text, std::map<std::string, Expr>& dims);

// Throws a CompileError for a name that no param of a graph function has.
void check_params(const IRModule& module, const std::map<std::string, Type>& types);

// TVM reads a function of tensors without shape or dtype, x: R.Tensor(ndim=2), and compiles it for no machine: kernels
// are for a rank and a dtype. Where an operator needs to know them, the params of functions that the module does not
// call get types: that of `types` for the param's name; else that of its first match_cast; else the dtype and shape of
// another param, or float32 and new dims. Each choice that `types` does not make is a warning. An annotation that says
// less than the value it stands for does not count. Functions that need nothing stay as they are.
IRModule with_open_types(IRModule module, const std::map<std::string, Type>& types, const OpTable& ops,
                         Diagnostics& warnings);

}  // namespace relaxc
