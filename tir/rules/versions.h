// Programs that compute one result in two ways and take one of them by a condition on their dims.
#pragma once
#include <optional>
#include <vector>

#include "tir/program.h"

namespace relaxc {

// Returns the program for these values of dims. Dims that are scalar params stay params, which nothing reads.
PrimFuncRef with_sizes(const PrimFuncRef& program, const VarMap& sizes);

struct VersionsByDims {
  struct Special {
    Expr condition;       // on the program's dims
    PrimFuncRef program;  // with the dims' values
  };
  std::vector<Special> special;
  PrimFuncRef general;  // where no condition holds
};
// Returns the versions of a program that has a block `chosen_by_dims`: one for each small size of a single dim for
// which the condition holds, or one where all of several dims are 1; none has what computes the other result.
std::optional<VersionsByDims> versions_by_dims(const PrimFuncRef& program);

}  // namespace relaxc
