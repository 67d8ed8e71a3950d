// Sums of two products of uint8 with int8, as x86's pmaddubsw makes and clamps them to 16 bits: for which weights they
// may be larger, and how to make these smaller.
#pragma once
#include <cstddef>
#include <vector>

#include "vm/tensor.h"

namespace relaxc {

// Returns how many pairs of neighbours along that axis of an int8 tensor may give sums of products with uint8 that need
// more than 16 bits. An odd last element is in no pair.
int64_t count_large_pairs(const Tensor& weight, size_t axis);

// The weight is small + halves, and no sum with either leaves 16 bits.
struct SplitBytes {
  Tensor small;   // like the weight
  Tensor halves;  // [panels..., length, lanes, group]: those that are not 0, for each panel the steps that have them
  Tensor steps;   // int32, [panels..., length, listed]: these steps
};
// Splits a weight [panels..., steps..., lanes, group] of an even group, with so many dims of panels. `listed` are the
// dims of steps whose places the result has. Panels with fewer steps than the longest list have halves of 0 at its end.
SplitBytes split_large_pairs(const Tensor& weight, size_t panel_dims, const std::vector<size_t>& listed);

}  // namespace relaxc
