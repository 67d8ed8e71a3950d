#include "vm/row_stack.h"

#include <algorithm>
#include <cstring>

#include "vm/error.h"
#include "vm/value.h"

namespace relaxc::vm {

const Tensor* RowStack::next() {
  if (rows_.ndim() == 0 || count_ == rows_.shape()[0] || rows_.dtype().per_byte() != 1) return nullptr;
  const int64_t bytes = rows_.bytes() / rows_.shape()[0];
  if (bytes == 0 || bytes % kAlignment != 0) return nullptr;
  if (!row_shape_) row_shape_ = std::make_shared<const Shape>(rows_.shape().begin() + 1, rows_.shape().end());
  next_ = Tensor::view(row_shape_, rows_.dtype(), static_cast<char*>(rows_.raw()) + count_ * bytes, rows_.owner());
  return &*next_;
}

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
    if (count_ > 0)
      std::memcpy(larger.raw(), rows_.raw(), static_cast<size_t>(row.dtype().bytes_of(count_ * row.size())));
    rows_ = std::move(larger);
    row_shape_ = nullptr;
  }
  DType dtype = row.dtype();
  if (row.size() % dtype.per_byte() != 0) {  // rows do not begin at bytes
    for (int64_t i = 0; i < row.size(); ++i)
      set_packed_bits(rows_.raw(), count_ * row.size() + i, dtype, packed_bits(row.raw(), i, dtype));
  } else if (char* place = static_cast<char*>(rows_.raw()) + count_ * row.bytes();
             row.bytes() > 0 && row.raw() != place) {
    std::memcpy(place, row.raw(), static_cast<size_t>(row.bytes()));
  }
  ++count_;
}

Tensor RowStack::finish() const {
  Shape shape = rows_.shape();
  if (shape[0] == count_) return rows_;
  shape[0] = count_;
  Tensor result = Tensor::view(std::move(shape), rows_.dtype(), rows_.raw(), rows_.owner());
  for (int64_t i = result.size(); i % result.dtype().per_byte() != 0; ++i)
    set_packed_bits(result.raw(), i, result.dtype(), 0);
  return result;
}

}  // namespace relaxc::vm
