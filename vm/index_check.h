// Tests that a gather's or scatter's indices are inside the axes that they index, before any element moves.
#pragma once
#include "vm/kernel_abi.h"
#include "vm/tensor.h"

namespace relaxc::vm {

struct BadIndex {
  int64_t position = 0;  // in row-major order
  int64_t dim = 0;       // size of the axis that the index is out of
};

// Returns the first index outside [-dim, dim), or nothing. With several dims the last axis of `indices`, which are
// integers, has one index per dim; with one dim, all indices are of that axis. The pool's threads read large tensors.
std::optional<BadIndex> find_bad_index(const Tensor& indices, std::span<const int64_t> dims,
                                       relaxc_kernel_context* kernels = nullptr);

// Returns the text that follows the name of the tensor: "[0, 3] is 9, expected -5 to 4".
std::string describe(const BadIndex& bad, const Tensor& indices);

}  // namespace relaxc::vm
