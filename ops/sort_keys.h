// An element and its position as one number, by which both are sorted: comparing two of them takes one instruction, and
// equal elements keep their order.
#pragma once
#include "ops/common.h"

namespace relaxc {

// Returns whether elements of a dtype, of which an axis has `dim`, have keys: those of up to 32 bits.
bool has_sort_key(DType dtype, const Expr& dim);
// Returns the int64 whose order is that of the elements, NaN as the largest value, and then that of their positions.
Expr sort_key(const Expr& element, const Expr& position, bool descending);
Expr position_of_key(const Expr& key);
// Returns the last key that an element equal to that of the key may have.
Expr behind_equal_keys(const Expr& key);

// Returns the statements that sort a row of keys, which `place` finds in both buffers: the second one is scratch.
Stmt sort_row(const Buffer& keys, const Buffer& scratch, const std::function<std::vector<Expr>(const Expr&)>& place,
              const Expr& n);
// Adds the stage of the keys of an axis in order; the other axes are sorted independently.
Buffer sorted_keys(ComputeBuilder& b, const Buffer& x, int64_t axis, bool descending);

}  // namespace relaxc
