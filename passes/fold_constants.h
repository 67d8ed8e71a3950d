#pragma once
#include "passes/pass.h"

namespace relaxc {

// Returns whether a result has so many more bytes than its operands that it stays code, as a broadcast or a fill does.
bool is_much_larger(int64_t bytes, int64_t operand_bytes);

// Computes what depends on constants only. `keeps_weights`: but no floats or wider integers of weights in 8 bits.
IRModule fold(IRModule module, PassContext& context, bool keeps_weights);

// Returns the constant that the program (operand, result) makes of a constant operand.
Expr computed(const PrimFuncRef& program, const Expr& operand, const Type& result, const PassContext& context);

}  // namespace relaxc
