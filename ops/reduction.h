// Folds over some axes of a tensor, which reductions and normalizations share.
#pragma once
#include "ops/window.h"

namespace relaxc {

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
Buffer mean_of(ComputeBuilder& b, const std::string& name, DType dtype, const AxisFold& plan,
               const FoldedValue& value);
// The mean of the elements of a tensor, and the mean of their squared distances from it, in two passes.
struct Moments {
  Buffer mean, variance;
};
Moments moments_of(ComputeBuilder& b, const Buffer& x, DType dtype, const AxisFold& plan);

}  // namespace relaxc
