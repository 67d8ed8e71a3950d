// Operations that some operands leave undefined: an integer division by zero, and a shift by as many bits as the number
// has, or more. The interpreter reports them, and machine code gives some value (codegen/README.md). A step that takes
// such an operation out of its guard keeps the guard in another form, or gives the operation other operands where the
// guard does not hold.
#pragma once
#include "ir/arith.h"

namespace relaxc {

// Returns the divisor or count of such an operation, where the facts do not prove that it is in range.
std::optional<Expr> doubtful_operand(const Binary& node, const Analyzer& facts);
// Returns an operand with which no such operation is undefined: 1 for a divisor, 0 for the count of a shift.
Expr harmless_operand(const Binary& node, DType dtype);
// Returns `operand` of such a node, with harmless_operand() in place of the values that leave it undefined.
Expr defined_operand(const Binary& node, const Expr& operand, const Analyzer& facts);
// Returns whether the value of `e` may be undefined although all of its loads are in range.
bool may_be_undefined(const Expr& e, const Analyzer& facts);
// Returns an expression with the same value where `e` has one, and some value elsewhere.
Expr with_defined_operands(const Expr& e, const Analyzer& facts);

}  // namespace relaxc
