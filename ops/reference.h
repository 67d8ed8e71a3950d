// Helpers for OpRow::reference: the results of an operator in plain C++, one element at a time. A reference takes its
// shapes from operands and attributes, not from `infer`, so that a mistake there is found as well.
#pragma once
#include "ir/op.h"

namespace relaxc::reference {

using Tensors = std::vector<Tensor>;
using Index = std::vector<int64_t>;
using Values = const std::vector<double>&;

double element(const Tensor& x, const Index& index);
// Returns the index with another position along the axis.
Index with_position(Index index, int64_t axis, int64_t position);
// Returns the position in `shape` that numpy's broadcasting gives an index of the result.
Index broadcast_index(const Index& index, const Index& shape);
// Makes the tensor whose element at each index is value(index).
Tensor tensor_of(const Index& shape, DType dtype, const std::function<double(Index)>& value);
// Makes the tensor whose element at each index is x's element at source(index).
Tensor moved(const Tensor& x, const Index& shape, const std::function<Index(Index)>& source);
OpRow with(OpRow row, Reference reference);
// Gives an elementwise operator the reference fn of its operands' elements. The dtype is the first operand's unless it
// is stated.
OpRow with_formula(OpRow row, const std::function<double(Values)>& fn, std::optional<DType> dtype = {});
OpRow with_formula(OpRow row, double (*fn)(double));

}  // namespace relaxc::reference
