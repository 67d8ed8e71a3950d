// Helpers that reductions, convolution and pooling share: accumulation, attributes that hold a number per spatial dim,
// window counts, padding.
#pragma once
#include "ir/arith.h"
#include "ops/attributes.h"
#include "ops/common.h"

namespace relaxc {

// Returns the dtype in which sums of `dtype` are kept: float32 for the 16-bit floats, else the dtype itself.
DType accumulation_dtype(DType dtype);
// Returns the value as `dtype`. A conversion is a separate stage.
Buffer as_dtype(ComputeBuilder& b, const Buffer& value, DType dtype, const std::string& name);
// Checks the dtypes of a product's operands and returns the result's: out_dtype if given; integers may then differ.
DType product_dtype(const OpCall& op, std::optional<DType> out_dtype);
// Returns sum / count in the sum's dtype. Integers truncate, and their count is taken as at least 1.
Expr divide_by_count(const Expr& sum, Expr count);

// Returns one number per spatial dim from an attribute, whose single number stands for all. Each must be >= least.
std::vector<int64_t> per_dim(const OpCall& op, const std::vector<int64_t>& values, size_t rank, const char* what,
                             int64_t least);

// The number of elements that are added before and after each spatial dim.
struct Padding {
  std::vector<int64_t> before, after;
  bool any() const;
};
// Reads Relax's forms: one number, one per dim (both sides), or all begins and then all ends.
Padding read_padding(const OpCall& op, const std::vector<int64_t>& values, size_t rank);

// The order of a tensor's dims: "NHWC", or blocked as in "NCHW4c", whose dims are [N, C / 4, H, W, 4].
class Layout {
 public:
  // `plain` has the same axes in the plain order, in which the code works. An empty text means that order.
  Layout(const OpCall& op, const std::string& text, std::string_view plain, const char* what);
  int64_t rank() const { return static_cast<int64_t>(axes_.size()); }
  // Returns the size of the blocks into which a plain axis is split, or 1 when it is not split.
  int64_t block_of(size_t plain) const;
  // Makes the layout that is the plain order.
  explicit Layout(size_t rank);
  // These convert a tensor's dims to the plain order, without blocks, and back. Blocks must divide their axis.
  std::vector<Expr> to_plain(const std::vector<Expr>& dims) const;
  std::vector<Expr> from_plain(const OpCall& op, const std::vector<Expr>& dims) const;
  // These convert an element's indices to the plain order, and back. The facts bound the variables of the indices.
  std::vector<Expr> to_plain_index(const std::vector<Expr>& indices) const;
  std::vector<Expr> from_plain_index(const std::vector<Expr>& indices, const Analyzer& facts) const;

 private:
  struct Axis {
    size_t plain;   // position in the plain order
    int64_t block;  // 0: the axis itself, else an inner part of that size
  };
  std::vector<Axis> axes_;
  size_t plain_rank_;
};
// Returns the layout of the result of a window operator, which is that of the data where out_layout is absent.
Layout result_layout(const OpCall& op, const std::optional<std::string>& out_layout, const std::string& data_layout,
                     std::string_view plain);
// Returns the facts that each axis is in [0, extent).
Analyzer facts_of_axes(Axes axes, const std::vector<Expr>& extents);
// Reports any other layout as unsupported, for operators that are lowered in one layout only.
void require_layout(const OpCall& op, const std::string& layout, std::string_view wanted, const char* what);

// Returns the number of windows: floor((extent + padding - dilation * (kernel - 1) - 1) / stride) + 1. A constant
// extent smaller than the window is an error.
Expr window_count(const OpCall& op, const Expr& extent, int64_t padding, const Expr& kernel, int64_t stride,
                  int64_t dilation);

// Makes the stage "pad_temp": data [N, C, spatial...], in its layout, with `fill` around it. `shape` has the padded
// dims, in the plain order.
Buffer pad_stage(ComputeBuilder& b, const OpCall& op, const Buffer& data, const Layout& layout,
                 const std::vector<int64_t>& before, const std::vector<Expr>& shape, const Expr& fill);

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
