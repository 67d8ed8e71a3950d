// Gives symbolic dims and params of a module's functions constant values.
#pragma once
#include <map>

#include "ir/module.h"

namespace relaxc {

// Replaces the dims of these names in the public graph functions, or, in a module that has none, in its tensor programs
// (TVM's BindSymbolicVars). Throws a CompileError for a name that no dim has.
IRModule with_dims_bound(IRModule module, const std::map<std::string, int64_t>& dims);

// Makes constants of params of the function of that name; "" is "main", or the only public graph function (TVM's
// BindParams). Dims that follow from a tensor's shape are bound to it. Throws a CompileError for a name that no param
// has, and for a tensor that does not fit its param.
IRModule with_params_bound(IRModule module, const std::string& function, const std::map<std::string, Tensor>& values);

}  // namespace relaxc
