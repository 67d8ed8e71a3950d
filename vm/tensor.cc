#include "vm/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/checked_math.h"
#include "support/joined.h"
#include "vm/dlpack.h"
#include "vm/error.h"
#include "vm/memory.h"

namespace relaxc {

std::optional<int64_t> element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool is_empty = false, overflows = false;
  for (int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    is_empty |= dim == 0;
    overflows |= __builtin_mul_overflow(count, dim, &count);
  }
  if (is_empty) return 0;  // however large its other dims are
  if (overflows) return std::nullopt;
  return count;
}

// Returns the bytes of so many elements; nullopt on overflow.
static std::optional<int64_t> bytes_of_elements(int64_t count, DType dtype) {
  if (dtype.is_packed()) return dtype.bytes_of(count);
  if (dtype.is_string() && __builtin_add_overflow(count, 1, &count)) return std::nullopt;  // offsets
  return checked_mul(count, dtype.bytes());
}

std::optional<int64_t> tensor_bytes(std::span<const int64_t> shape, DType dtype) {
  const auto count = element_count(shape);
  return count ? bytes_of_elements(*count, dtype) : std::nullopt;
}

[[noreturn, gnu::cold]] static void throw_bad_size(std::span<const int64_t> shape, DType dtype) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) throw_runtime_error("dim {} of a tensor is {}, expected a non-negative number", i, shape[i]);
  }
  throw_runtime_error("size of a tensor {}[{}] overflows", to_string(dtype), joined(shape));
}

int64_t checked_tensor_bytes(std::span<const int64_t> shape, DType dtype) {
  const auto bytes = tensor_bytes(shape, dtype);
  if (!bytes) throw_bad_size(shape, dtype);
  return *bytes;
}

Tensor Tensor::empty(std::vector<int64_t> shape, DType dtype) {
  std::shared_ptr<void> memory = vm::allocate_aligned(checked_tensor_bytes(shape, dtype));
  void* data = memory.get();
  Tensor tensor = view(std::move(shape), dtype, data, std::move(memory));
  if (dtype.is_string()) std::memset(data, 0, static_cast<size_t>(checked_tensor_bytes(tensor.shape(), dtype)));
  if (tensor.bytes() > 0 && tensor.size() % dtype.per_byte() != 0) static_cast<char*>(data)[tensor.bytes() - 1] = 0;
  return tensor;
}

[[gnu::cold]] Tensor Tensor::copy_of(std::vector<int64_t> shape, DType dtype, const void* data) {
  if (dtype.is_string()) {
    Tensor given = view(std::move(shape), dtype, const_cast<void*>(data), nullptr);
    std::shared_ptr<void> memory = vm::allocate_aligned(given.bytes());
    std::memcpy(memory.get(), data, static_cast<size_t>(given.bytes()));
    void* copy = memory.get();
    return view(given.shape_, dtype, copy, std::move(memory));
  }
  Tensor copy = empty(std::move(shape), dtype);
  if (copy.bytes() > 0) std::memcpy(copy.raw(), data, static_cast<size_t>(copy.bytes()));
  return copy;
}

void Tensor::wrong_values(const Tensor& tensor, size_t count, size_t bytes_of_each) {
  throw_usage_error("a tensor {} has {} elements in {} bytes, got {} values of {} bytes each", describe(tensor),
                    tensor.size(), tensor.bytes(), count, bytes_of_each);
}

void Tensor::wrong_element(size_t bytes) const {
  const DType dtype = dtype_;
  throw_usage_error("elements of a tensor {} have {} bytes, and are read as a type of {}", describe(*this),
                    dtype.bytes(), bytes);
}

Tensor Tensor::view(std::vector<int64_t> shape, DType dtype, void* data, std::shared_ptr<const void> owner) {
  return view(std::make_shared<const std::vector<int64_t>>(std::move(shape)), dtype, data, std::move(owner));
}

Tensor Tensor::view(std::shared_ptr<const std::vector<int64_t>> shape, DType dtype, void* data,
                    std::shared_ptr<const void> owner) {
  Tensor tensor;
  const auto count = element_count(*shape);
  if (!count || !bytes_of_elements(*count, dtype)) throw_bad_size(*shape, dtype);
  tensor.size_ = *count;
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  int64_t alignment = std::clamp<int64_t>(dtype.element().bytes(), 1, 8);  // loads of one element need it
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) != 0)
    throw_runtime_error(
        "memory of a tensor {} is at an address that is not a multiple of {} bytes; copy it to aligned memory first",
        describe(tensor), alignment);
  if (data == nullptr && (tensor.size_ != 0 || dtype.is_string()))
    throw_runtime_error("memory of a tensor {} is null", describe(tensor));
  return tensor;
}

[[gnu::cold]] Tensor Tensor::strings(std::vector<int64_t> shape, std::span<const std::string_view> values,
                                     const Allocate& allocate) {
  int64_t offsets = checked_tensor_bytes(shape, DType::string()), bytes = offsets;
  if (offsets != (std::ssize(values) + 1) * 8)
    throw_usage_error("a tensor string[{}] has {} elements, got {} strings", joined(shape), offsets / 8 - 1,
                      values.size());
  for (std::string_view value : values) bytes += std::ssize(value);
  std::shared_ptr<void> memory = allocate ? allocate(bytes) : vm::allocate_aligned(bytes);
  auto* offset = static_cast<int64_t*>(memory.get());
  char* text = static_cast<char*>(memory.get()) + offsets;
  *offset = 0;
  for (std::string_view value : values) {
    if (!value.empty()) std::memcpy(text + *offset, value.data(), value.size());
    offset[1] = offset[0] + std::ssize(value);
    ++offset;
  }
  void* data = memory.get();
  return view(std::move(shape), DType::string(), data, std::move(memory));
}
std::string_view Tensor::string(int64_t i) const {
  if (!dtype_.is_string() || i < 0 || i >= size_)
    throw_usage_error("there is no string {} (counted from 0) in a tensor {}", i, describe(*this));
  const auto* offsets = static_cast<const int64_t*>(data_);
  const char* texts = static_cast<const char*>(data_) + (size_ + 1) * 8;
  return {texts + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
}
int64_t Tensor::bytes_of_strings() const { return (size_ + 1) * 8 + static_cast<const int64_t*>(data_)[size_]; }
[[gnu::cold]] bool has_sound_strings(const Tensor& tensor, int64_t bytes) {
  const auto* offsets = static_cast<const int64_t*>(tensor.raw());
  int64_t count = tensor.size() + 1;
  return count * 8 <= bytes && offsets[0] == 0 && std::is_sorted(offsets, offsets + count) &&
         offsets[count - 1] <= bytes - count * 8;
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  return reshaped(std::make_shared<const std::vector<int64_t>>(std::move(shape)));
}

Tensor Tensor::reshaped(std::shared_ptr<const std::vector<int64_t>> shape) const {
  if (auto count = element_count(*shape); count != size_)
    throw_runtime_error("cannot view {} under shape [{}]: the number of elements differs", describe(*this),
                        joined(*shape));
  return view(std::move(shape), dtype_, data_, owner_);
}

namespace {

// Floats of 16 bits and less are visited as unsigned integers.
bool is_narrow_float(DType dtype) { return dtype.is_float() && dtype.bits <= 16; }

// Calls visit(pointer to element i with its C++ type).
template <class Visit>
auto with_element(const Tensor& tensor, int64_t i, Visit visit) {
  DType dtype = tensor.dtype();
  auto at = [&]<class T>(std::type_identity<T>) { return visit(static_cast<T*>(tensor.raw()) + i); };
  int bits = std::max<int>(dtype.bits, 8);
  if (dtype.code == DTypeCode::kFloat && bits == 32) return at(std::type_identity<float>());
  if (dtype.code == DTypeCode::kFloat && bits == 64) return at(std::type_identity<double>());
  auto integer_at = [&]<class T>(std::type_identity<T> type) {
    return dtype.is_int() ? at(type) : at(std::type_identity<std::make_unsigned_t<T>>());
  };
  bool is_integer = (!dtype.is_float() || is_narrow_float(dtype)) && !dtype.is_string() && !dtype.is_complex();
  if (is_integer && bits == 8) return integer_at(std::type_identity<int8_t>());
  if (is_integer && bits == 16) return integer_at(std::type_identity<int16_t>());
  if (is_integer && bits == 32) return integer_at(std::type_identity<int32_t>());
  if (is_integer && bits == 64) return integer_at(std::type_identity<int64_t>());
  throw_runtime_error("elements of {} cannot be converted", to_string(dtype));
}

// Conversions to integers saturate and turn NaN to 0: the C++ cast is undefined outside the range.
template <class T>
T converted(double value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

void check_element(const Tensor& tensor, int64_t i) {
  if (i < 0 || i >= tensor.size())
    throw_usage_error("there is no element {} (counted from 0) in a tensor {}", i, describe(tensor));
  if (tensor.dtype().lanes != 1) throw_usage_error("elements of a tensor {} are vectors", describe(tensor));
}

}  // namespace

double Tensor::as_double(int64_t i) const {
  check_element(*this, i);
  if (dtype_.is_packed())
    return dtype_.is_float() ? float_from_bits(packed_bits(data_, i, dtype_), dtype_) : static_cast<double>(as_int(i));
  return with_element(*this, i, [this](const auto* element) {
    return is_narrow_float(dtype_) ? float_from_bits(static_cast<uint16_t>(*element), dtype_)
                                   : static_cast<double>(*element);
  });
}

int64_t Tensor::as_int(int64_t i) const {
  check_element(*this, i);
  if (dtype_.is_float()) return converted<int64_t>(as_double(i));
  if (dtype_.is_packed()) {
    int64_t value = packed_bits(data_, i, dtype_), sign = int64_t{1} << (dtype_.bits - 1);
    return dtype_.is_int() ? (value ^ sign) - sign : value;
  }
  return with_element(*this, i, [](const auto* element) { return static_cast<int64_t>(*element); });
}

[[gnu::cold]] void Tensor::set_double(int64_t i, double value) const {
  check_element(*this, i);
  if (dtype_.is_bool()) return set_int(i, value != 0);
  if (dtype_.is_packed() && dtype_.is_float())
    return set_packed_bits(data_, i, dtype_, static_cast<uint8_t>(float_bits(value, dtype_)));
  if (dtype_.is_packed()) {
    double low = dtype_.is_int() ? -std::ldexp(1, dtype_.bits - 1) : 0;
    return set_int(i, std::clamp(converted<int64_t>(value), static_cast<int64_t>(low),
                                 static_cast<int64_t>(low + std::ldexp(1, dtype_.bits) - 1)));
  }
  if (is_narrow_float(dtype_)) value = float_bits(value, dtype_);
  with_element(*this, i, [value]<class T>(T* element) { *element = converted<T>(value); });
}

[[gnu::cold]] void Tensor::set_int(int64_t i, int64_t value) const {
  check_element(*this, i);
  if (is_narrow_float(dtype_)) return set_double(i, static_cast<double>(value));
  if (dtype_.is_bool()) value = value != 0;
  if (dtype_.is_packed()) return set_packed_bits(data_, i, dtype_, static_cast<uint8_t>(value));
  with_element(*this, i, [value]<class T>(T* element) { *element = static_cast<T>(value); });
}

namespace {

constexpr std::pair<DTypeCode, DLDataTypeCode> kDLCodes[] = {{DTypeCode::kInt, kDLInt},
                                                             {DTypeCode::kUInt, kDLUInt},
                                                             {DTypeCode::kFloat, kDLFloat},
                                                             {DTypeCode::kBFloat, kDLBfloat},
                                                             {DTypeCode::kComplex, kDLComplex},
                                                             {DTypeCode::kBool, kDLBool},
                                                             {DTypeCode::kHandle, kDLOpaqueHandle},
                                                             {DTypeCode::kFloat8E3M4, kDLFloat8_e3m4},
                                                             {DTypeCode::kFloat8E4M3, kDLFloat8_e4m3},
                                                             {DTypeCode::kFloat8E4M3B11FNUZ, kDLFloat8_e4m3b11fnuz},
                                                             {DTypeCode::kFloat8E4M3FN, kDLFloat8_e4m3fn},
                                                             {DTypeCode::kFloat8E4M3FNUZ, kDLFloat8_e4m3fnuz},
                                                             {DTypeCode::kFloat8E5M2, kDLFloat8_e5m2},
                                                             {DTypeCode::kFloat8E5M2FNUZ, kDLFloat8_e5m2fnuz},
                                                             {DTypeCode::kFloat8E8M0FNU, kDLFloat8_e8m0fnu},
                                                             {DTypeCode::kFloat6E2M3FN, kDLFloat6_e2m3fn},
                                                             {DTypeCode::kFloat6E3M2FN, kDLFloat6_e3m2fn},
                                                             {DTypeCode::kFloat4E2M1FN, kDLFloat4_e2m1fn}};

void check_dense(const DLTensor& dl, const std::vector<int64_t>& shape) {
  if (dl.strides == nullptr || element_count(shape) == 0) return;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    // The stride of a dim of one element is never used; frameworks leave anything there.
    if (shape[i] == 1) continue;
    if (dl.strides[i] != expected)
      throw_runtime_error("dlpack tensor is not dense: dim {} has stride {}, expected {}; make it contiguous first", i,
                          dl.strides[i], expected);
    expected *= shape[i];
  }
}

struct ExportedTensor {
  Tensor tensor;
  std::vector<int64_t> dims_and_strides;
  DLManagedTensor managed{};
};

}  // namespace

DType dtype_from_dlpack(int code, int bits, int lanes) {
  for (auto [ours, theirs] : kDLCodes) {
    if (theirs != code) continue;
    DType dtype{ours, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
    // DLPack packs elements of 4 bits and less as we do, and those of 6 bits, which take a byte here.
    if (lanes == 1 && bits != 6 && parse_dtype(to_string(dtype)) == dtype) return dtype;
  }
  throw_runtime_error("dlpack tensor has element type (code {}, bits {}, lanes {}), which has no dtype", code, bits,
                      lanes);
}

Tensor Tensor::from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw_runtime_error("dlpack tensor is null");
  std::shared_ptr<const void> owner(managed, [](DLManagedTensor* m) {
    if (m->deleter != nullptr) m->deleter(m);
  });
  const DLTensor& dl = managed->dl_tensor;
  if (dl.device.device_type != kDLCPU)
    throw_runtime_error("dlpack tensor is on device type {}, expected {} (cpu)",
                        static_cast<int>(dl.device.device_type), static_cast<int>(kDLCPU));
  if (dl.ndim < 0 || (dl.ndim > 0 && dl.shape == nullptr)) throw_runtime_error("dlpack tensor has no valid shape");
  std::vector<int64_t> shape(dl.shape, dl.shape + dl.ndim);
  DType dtype = dtype_from_dlpack(dl.dtype.code, dl.dtype.bits, dl.dtype.lanes);
  checked_tensor_bytes(shape, dtype);  // before the strides, whose product it bounds
  check_dense(dl, shape);
  void* data = dl.data == nullptr ? nullptr : static_cast<char*>(dl.data) + dl.byte_offset;
  return view(std::move(shape), dtype, data, std::move(owner));
}

int64_t dlpack_code(DType dtype) {
  for (auto [ours, theirs] : kDLCodes) {
    if (ours == dtype.code) return theirs;
  }
  return 0;
}

DLManagedTensor* Tensor::to_dlpack() const {
  if (dtype_.is_string())
    throw_runtime_error("{} cannot be shared through dlpack, which has no strings", describe(*this));
  const std::vector<int64_t>& dims = shape();
  auto exported = std::make_unique<ExportedTensor>(ExportedTensor{*this, std::vector<int64_t>(2 * dims.size()), {}});
  int64_t* strides = std::ranges::copy(dims, exported->dims_and_strides.data()).out;
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  DLManagedTensor& managed = exported->managed;
  managed.dl_tensor.data = data_;
  managed.dl_tensor.device = {kDLCPU, 0};
  managed.dl_tensor.ndim = ndim();
  managed.dl_tensor.dtype = {static_cast<uint8_t>(dlpack_code(dtype_)), dtype_.bits, dtype_.lanes};
  managed.dl_tensor.shape = exported->dims_and_strides.data();
  managed.dl_tensor.strides = strides;
  managed.deleter = [](DLManagedTensor* self) { delete static_cast<ExportedTensor*>(self->manager_ctx); };
  managed.manager_ctx = exported.get();
  return &exported.release()->managed;
}

bool same_contents(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

std::vector<int64_t> indices_of(int64_t position, std::span<const int64_t> shape) {
  std::vector<int64_t> indices(shape.size());
  for (size_t d = shape.size(); d-- > 0; position /= shape[d]) indices[d] = position % shape[d];
  return indices;
}

[[gnu::cold]] Tensor parts_of(const Tensor& tensor) {
  if (!tensor.dtype().is_complex()) return tensor;
  std::vector<int64_t> shape = tensor.shape();
  shape.push_back(2);
  return Tensor::view(std::move(shape), tensor.dtype().part(), tensor.raw(), tensor.owner());
}

[[gnu::cold]] std::string describe(const Tensor& tensor) {
  return formatted("{}[{}]", to_string(tensor.dtype()), joined(tensor.shape()));
}

}  // namespace relaxc
