// Gives symbolic dims and params of a module's functions constant values.
#pragma once
#include <limits>
#include <map>

#include "ir/module.h"

namespace relaxc {

// Replaces the dims of these names in the public graph functions, or, in a module that has none, in its tensor programs
// (TVM's BindSymbolicVars). Throws a CompileError for a name that no dim has.
IRModule with_dims_bound(IRModule module, const std::map<std::string, int64_t>& dims);

// The numbers that a symbolic dim may be, both included.
struct DimRange {
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
};
using DimRanges = std::map<std::string, DimRange>;

// Notes ranges of the dims of these names in the public graph functions, where every run tests them (TVM's attributes
// tir_var_lower_bound and tir_var_upper_bound). Throws a CompileError for a name that no dim has.
IRModule with_dim_ranges(IRModule module, const DimRanges& ranges);
// Returns the ranges that are noted in a graph function. Throws a CompileError for a range without a number in it.
DimRanges dim_ranges(const Function& function);

// Returns the name of the graph function whose params are meant; "" is "main", or the only public one. Throws a
// CompileError that lists them where there is none.
std::string function_with_params(const IRModule& module, const std::string& wanted);

// Makes constants of params of the function of that name; "" is "main", or the only public graph function (TVM's
// BindParams). Dims that follow from a tensor's shape are bound to it. Throws a CompileError for a name that no param
// has, and for a tensor that does not fit its param.
IRModule with_params_bound(IRModule module, const std::string& function, const std::map<std::string, Tensor>& values);

}  // namespace relaxc
