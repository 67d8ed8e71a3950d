// Internal to codegen/: transcendental functions of float32 as straight-line LLVM IR, for scalars and vectors of any
// length. Includes LLVM.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <string_view>

namespace relaxc::codegen {

// The bound on the error in units in the last place over all float32 arguments, with fused multiply-add and without;
// tests/codegen/math_test.cc measures it. Infinities, NaN, signed zeros and subnormals are right.
//   exp 1.1, log 1, tanh 1.5, sigmoid 2.5, erf 1.5
// Null when the function has no expansion here; `x` is float or a vector of float.
llvm::Value* emit_float32_math(llvm::IRBuilder<>& builder, std::string_view intrinsic, llvm::Value* x);

}  // namespace relaxc::codegen
