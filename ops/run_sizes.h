// Operators whose results have sizes that only the run can tell (OpRow::sizes), such as the positions of elements that
// are not zero. R.nonzero(x) becomes
//     sizes = R.count.nonzero(x)                          a kernel whose result is int64[1]
//     n = R.inspect.tensor_item(sizes, index=0)           the size as a scalar, which what follows has for a dim
//     y = R.fill.nonzero(x, R.shape([n]))                 a kernel whose result has that size
// The kernel that counts may leave more tensors, which the one that fills gets behind the operator's arguments. Where a
// few elements of operands tell the size (slices, axes and shapes of the run) there is nothing to count: tensor_item
// reads these elements, and the size is an expression over them. The third kind are functions of the runtime (OpRow::
// why_runtime), on strings and sequences, whose results are measured.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Returns the rows that a row stands for: the operator, which is decomposed, and the two that count and fill. A row
// without sizes stands for itself.
std::vector<OpRow> with_parts(OpRow row);

// The ways to make the calls of the two parts, and to read a size from the first result.
struct PartCalls {
  std::function<Expr(const std::string& name, std::vector<Expr> args, const Attrs& attrs)> op;
  std::function<Expr(const Expr& tuple, int64_t i)> item;
  std::function<Expr(const Expr& sizes, int64_t i, const char* name)> size;
};
// Makes the calls that a call of the operator becomes, and returns the result.
Expr call_parts(const OpRow& row, const std::vector<Expr>& args, const Attrs& attrs, const PartCalls& calls);

}  // namespace relaxc
