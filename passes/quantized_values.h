// Integers of 8 bits that stand for real numbers, scale * (number - zero point), and sums of their products in int32,
// which are exact. passes/integer_regions.cc says where these take the place of float32 arithmetic.
#pragma once
#include <functional>
#include <set>

#include "ir/constants.h"
#include "passes/graph_rewriter.h"
#include "tir/target.h"

namespace relaxc {

// A value that stands for (numbers - zero) * scale.
struct QuantizedValue {
  Expr numbers;
  std::optional<Expr> scale =
      {};  // float32: a scalar, or a vector along the axis; absent: the value is in int32 as it is
  std::optional<Expr> zero = {};  // likewise; absent: 0
  int64_t axis = 0;
  DType dtype() const { return *tensor_dtype(numbers.type()); }
};

// Returns the value with its numbers as bytes, where they are a constant of integers of less than a byte.
QuantizedValue in_bytes(const QuantizedValue& value);

// Returns the tensor of bytes with its axes in that order.
Tensor permuted(const Tensor& tensor, const std::vector<int64_t>& axes);

// The constant right operand of a sum of products, without its zero point, as int8. Numbers that do not fit are
// 2 * halves + rest, and the sum is twice that of the halves plus that of the rest.
struct SignedWeight {
  Expr numbers;
  std::optional<Expr> rest;
  Expr sums;  // of all numbers of each output, int32: [outputs], or the dims of a batch and [1, outputs]
};
// Takes a weight [outputs, ...] of a convolution, or a matrix [..., depth, outputs] if `is_matrix`; nullopt where it is
// not constant, its zero point is not one for all or one for each output, or sums of `depth` products can exceed int32.
std::optional<SignedWeight> signed_weight(const QuantizedValue& weight, bool is_matrix);

// Returns the dtype of a left operand for which the target sums products with int8 in one instruction: uint8, int8, or
// int16 for bytes of either sign (widen_bytes); nullopt where it has none.
std::optional<DType> activations_for_dots(const Target& target);

// Returns numbers of the other sign, all 128 larger or smaller, and the zero point that belongs to these.
Expr with_other_sign(const Expr& numbers, Builder& b);
Expr zero_of_other_sign(const QuantizedValue& value, Builder& b);

// Returns the int32 sums of x (one zero point for all) times the weight. `product` emits the convolution or product of
// two tensors of 8 bits with a result of int32, where the convolution pads the left one with zeros.
using EmitProduct = std::function<Expr(const Expr& x, const Expr& weight)>;
Expr integer_sums(const QuantizedValue& x, const SignedWeight& weight, int64_t channel_axes_behind,
                  const EmitProduct& product, Builder& b);

inline constexpr int64_t kMostDepth = INT32_MAX / (255 * 255);  // products of 8 bits whose sum is an int32
// Returns whether sums of so many products of 8 bits are in int32.
bool can_sum(int64_t depth);
// Returns the function with the most of these dims at which that is so: runs with larger ones are refused
// (--dim-range).
FunctionRef with_dims_of_sums(const FunctionRef& function, const std::set<std::string>& dims);
// Returns whether the left operand of a product has the same dims in front of its matrices as the right one.
bool has_same_batch(const std::vector<Expr>& left, const std::vector<Expr>& right);
// These do the same with a right operand that only the run knows, whose sums the run computes, too: matrices
// [..., depth, outputs] of any size with one zero point for all, or filters [outputs, ...] of constant size with one
// for all or for each. `has_groups`: each filter reads some of the channels.
Expr sums_of_matrices(const QuantizedValue& x, const QuantizedValue& matrices, const EmitProduct& product, Builder& b);
Expr sums_of_filters(const QuantizedValue& x, const QuantizedValue& filters, int64_t channel_axes_behind,
                     bool has_groups, const EmitProduct& convolution, Builder& b);

}  // namespace relaxc
