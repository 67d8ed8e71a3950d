// What the iterations of a loop give, one row each, in one tensor.
#pragma once
#include "vm/memory.h"
#include "vm/value.h"

namespace relaxc::vm {

class RowStack {
 public:
  // The tensor gets the rows, as many as it has. Its contents, and if there are more rows its other dims, do not
  // matter.
  explicit RowStack(Tensor rows) : rows_(std::move(rows)) {}

  // Returns the place of the next row, in which it may be made: push() then copies nothing. Null where there is none
  // yet, or where rows are not aligned as tensors are.
  const Tensor* next();
  // Copies the row behind the others. Throws RuntimeError where it has another shape than they, or another dtype.
  void push(const Tensor& row, MemoryPool& memory);
  // Returns the rows, in shared memory.
  Tensor finish() const;

 private:
  Tensor rows_;
  int64_t count_ = 0;
  std::shared_ptr<const Shape> row_shape_;
  std::optional<Tensor> next_;
};

}  // namespace relaxc::vm
