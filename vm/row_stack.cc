#include "vm/row_stack.h"

#include <algorithm>
#include <cstring>

#include "vm/error.h"
#include "vm/value.h"

namespace relaxc::vm {

void RowStack::push(const Tensor& row, MemoryPool& memory) {
  bool fits = rows_.dtype() == row.dtype() && rows_.ndim() == row.ndim() + 1;
  bool same_dims = fits && std::ranges::equal(std::span(rows_.shape()).subspan(1), row.shape());
  if (!fits || (count_ > 0 && !same_dims))
    throw_runtime_error("row {} of a loop's result is {}, behind rows of {}", count_, describe(row), describe(rows_));
  if (!same_dims || count_ == rows_.shape()[0]) {
    constexpr int64_t kFirst = 4;
    Shape shape = row.shape();
    shape.insert(shape.begin(), std::max(2 * count_, kFirst));
    std::shared_ptr<void> block = memory.allocate(checked_tensor_bytes(shape, row.dtype()));
    void* data = block.get();
    Tensor larger = Tensor::view(std::move(shape), row.dtype(), data, std::move(block));
    if (count_ > 0) std::memcpy(larger.raw(), rows_.raw(), static_cast<size_t>(count_ * row.bytes()));
    rows_ = std::move(larger);
  }
  if (row.bytes() > 0)
    std::memcpy(static_cast<char*>(rows_.raw()) + count_ * row.bytes(), row.raw(), static_cast<size_t>(row.bytes()));
  ++count_;
}

Tensor RowStack::finish() const {
  Shape shape = rows_.shape();
  if (shape[0] == count_) return rows_;
  shape[0] = count_;
  return Tensor::view(std::move(shape), rows_.dtype(), rows_.raw(), rows_.owner());
}

}  // namespace relaxc::vm
