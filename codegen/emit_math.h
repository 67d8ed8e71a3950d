// Internal to codegen/: emits functions of float32 as straight-line LLVM IR, for scalars and vectors of any length.
// Includes LLVM.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <string_view>

namespace relaxc::codegen {

// The result is within 2 ulp of the exact value for every argument, with fused multiply-add and without. Infinities,
// NaN, signed zeros and subnormals are as in C99's annex F. docs/math.md has the measured error of each function.
// Returns null when the function does not have an expansion here. Each argument is a float or a vector of float.
llvm::Value* emit_float32_math(llvm::IRBuilder<>& builder, std::string_view intrinsic,
                               std::span<llvm::Value* const> args);

}  // namespace relaxc::codegen
