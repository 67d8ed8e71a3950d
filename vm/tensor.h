// A dense, row-major tensor on the CPU. A Tensor is a handle: copies share the elements. Memory comes from the
// runtime, from a mapped file, or from the host through DLPack.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "support/check.h"
#include "vm/dtype.h"

struct DLManagedTensor;

namespace relaxc {

// Returns the product of the dims; nullopt on overflow or a negative dim.
std::optional<int64_t> element_count(std::span<const int64_t> shape);
// Returns the bytes that such a tensor takes, of strings those of the offsets; nullopt like element_count.
// checked_tensor_bytes throws RuntimeError.
std::optional<int64_t> tensor_bytes(std::span<const int64_t> shape, DType dtype);
int64_t checked_tensor_bytes(std::span<const int64_t> shape, DType dtype);

// The elements of a tensor of strings are size() + 1 int64 offsets, of which the first is 0, and behind them the bytes
// of all strings in their order: string i ends at offset i + 1. Copies of bytes() bytes are copies of it.
class Tensor {
 public:
  // Allocates uninitialised memory, 64-byte aligned; strings are empty. Throws RuntimeError when the size overflows or
  // memory is short.
  static Tensor empty(std::vector<int64_t> shape, DType dtype);
  // Returns a tensor with a copy of these bytes.
  static Tensor copy_of(std::vector<int64_t> shape, DType dtype, const void* data);
  // Returns a view, without a copy, of dense memory that `owner` keeps alive (a mapped file, a storage). Throws
  // RuntimeError when the byte size overflows or the memory is not aligned for the element.
  static Tensor view(std::vector<int64_t> shape, DType dtype, void* data, std::shared_ptr<const void> owner);
  // Does the same with a shape that the caller shares between tensors and must not change any more.
  static Tensor view(std::shared_ptr<const std::vector<int64_t>> shape, DType dtype, void* data,
                     std::shared_ptr<const void> owner);
  // Throws UsageError where the values are more or fewer bytes than the elements.
  template <class T>
  static Tensor of(std::vector<int64_t> shape, DType dtype, const std::vector<T>& values) {
    Tensor tensor = empty(std::move(shape), dtype);
    if (std::ssize(values) * static_cast<int64_t>(sizeof(T)) != tensor.bytes())
      wrong_values(tensor, values.size(), sizeof(T));
    std::copy(values.begin(), values.end(), tensor.data<T>());
    return tensor;
  }

  // Makes a tensor of strings, in memory that `allocate` gives for a number of bytes if it is not null. Throws
  // UsageError where there are more or fewer strings than elements.
  using Allocate = std::function<std::shared_ptr<void>(int64_t bytes)>;
  static Tensor strings(std::vector<int64_t> shape, std::span<const std::string_view> values,
                        const Allocate& allocate = nullptr);
  static Tensor strings(std::vector<int64_t> shape, const std::vector<std::string>& values) {
    return strings(std::move(shape), std::vector<std::string_view>(values.begin(), values.end()));
  }

  const std::vector<int64_t>& shape() const { return *shape_; }
  int ndim() const { return static_cast<int>(shape_->size()); }
  DType dtype() const { return dtype_; }
  int64_t size() const { return size_; }  // elements
  int64_t bytes() const { return dtype_.is_string() ? bytes_of_strings() : dtype_.bytes_of(size_); }
  void* raw() const { return data_; }
  // The owner keeps the elements alive.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  // Returns the elements as T. Throws UsageError where sizeof(T) is not the element's size. Floats of 16 bits are read
  // as uint16_t, and those of 8 bits and the bytes of packed elements as uint8_t.
  template <class T>
  T* data() const {
    if (static_cast<int64_t>(sizeof(T)) != dtype_.bytes()) [[unlikely]]
      wrong_element(sizeof(T));
    return static_cast<T*>(data_);
  }
  // Return element i converted to double or int64, whatever the dtype. These and string() throw UsageError where there
  // is no such element.
  double as_double(int64_t i) const;
  int64_t as_int(int64_t i) const;
  void set_double(int64_t i, double value) const;
  void set_int(int64_t i, int64_t value) const;

  // Returns string i, which this tensor's memory holds.
  std::string_view string(int64_t i) const;

  // Returns a tensor with the same elements under another shape of equal size.
  Tensor reshaped(std::vector<int64_t> shape) const;
  Tensor reshaped(std::shared_ptr<const std::vector<int64_t>> shape) const;

  // DLPack exchange without copies. from_dlpack takes ownership and calls the deleter when the last handle goes;
  // it throws RuntimeError for another device, a dtype we do not have, or strides that are not dense.
  static Tensor from_dlpack(DLManagedTensor* managed);
  DLManagedTensor* to_dlpack() const;

 private:
  Tensor() = default;
  int64_t bytes_of_strings() const;
  [[noreturn, gnu::cold]] static void wrong_values(const Tensor& tensor, size_t count, size_t bytes_of_each);
  [[noreturn, gnu::cold]] void wrong_element(size_t bytes) const;
  std::shared_ptr<const std::vector<int64_t>> shape_;
  DType dtype_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Returns the number that DLPack has for the kind of the dtype.
int64_t dlpack_code(DType dtype);
// Returns the dtype of DLPack's code, bits and lanes. Throws RuntimeError where there is none.
DType dtype_from_dlpack(int code, int bits, int lanes);
// Returns whether the offsets of a tensor of strings are sound and its strings end within so many bytes.
bool has_sound_strings(const Tensor& tensor, int64_t bytes);
// Compares dtype, shape and bytes, bit for bit.
bool same_contents(const Tensor& a, const Tensor& b);
// Returns the indices of an element that has this position in row-major order.
std::vector<int64_t> indices_of(int64_t position, std::span<const int64_t> shape);
// Returns the view of a tensor of complex numbers that has their real and imaginary parts as a last dim of 2, and any
// other tensor as it is.
Tensor parts_of(const Tensor& tensor);
// Returns "float32[2, 3]".
std::string describe(const Tensor& tensor);

}  // namespace relaxc
