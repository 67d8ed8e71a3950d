// Sums and other folds: the dtype in which they accumulate, the axes over which they run, means and variances.
#pragma once
#include "ops/common.h"

namespace relaxc {

// Returns the dtype in which sums of `dtype` are kept: float32 for the 16-bit floats, else the dtype itself.
DType accumulation_dtype(DType dtype);
// Returns the value as `dtype`. A conversion is a separate stage.
Buffer as_dtype(ComputeBuilder& b, const Buffer& value, DType dtype, const std::string& name);
// Returns sum / count in the sum's dtype. Integers truncate, and their count is taken as at least 1.
Expr divide_by_count(const Expr& sum, Expr count);

// The dims that a fold removes from a tensor, and the dims of its result.
struct AxisFold {
  std::vector<Expr> reduced, result;
  // Returns the tensor's indices from those of the result and of the reduced dims.
  std::function<std::vector<Expr>(Axes result, Axes reduced)> element_at;
  // Returns the result's indices from the tensor's.
  std::function<std::vector<Expr>(Axes element)> result_at;
};
// Plans a fold over the axes, which are in [0, rank). With keepdims a dim of 1 is left for each of them.
AxisFold over_axes(const std::vector<Expr>& shape, const std::vector<int64_t>& axes, bool keepdims = false);

// Gives a value to fold, from the indices of the result and of the tensor.
using FoldedValue = std::function<Expr(Axes result, Axes element)>;
// Makes the stage of the folded values.
Buffer fold(ComputeBuilder& b, const std::string& name, DType dtype, const AxisFold& plan, const Expr& neutral,
            const ComputeBuilder::Combine& combine, const FoldedValue& value);
// Makes the stages of the sums, `name`_sum, and of the sums divided by the number of values in each, `name`.
Buffer mean_of(ComputeBuilder& b, const std::string& name, DType dtype, const AxisFold& plan, const FoldedValue& value);
// The mean of the elements of a tensor, and the mean of their squared distances from it, in two passes.
struct Moments {
  Buffer mean, variance;
};
Moments moments_of(ComputeBuilder& b, const Buffer& x, DType dtype, const AxisFold& plan);

}  // namespace relaxc
