// Declares the einsum row of linear_algebra_ops().
#pragma once
#include "ir/op.h"

namespace relaxc {

OpRow einsum();

}  // namespace relaxc
