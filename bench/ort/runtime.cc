#include "bench/ort/runtime.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "tools/in_turn.h"
#include "vm/error.h"

namespace relaxc::bench {

namespace {

// The interface is a table of C functions which grows at its end only, so that places in it are for ever. Those that
// can fail return a status.
enum Entry : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetSessionExecutionMode = 13,
  kSetSessionGraphOptimizationLevel = 23,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kSessionGetInputCount = 30,
  kSessionGetOutputCount = 31,
  kSessionGetInputTypeInfo = 33,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensorWithDataAsOrtValue = 49,
  kIsTensor = 50,
  kGetTensorMutableData = 51,
  kCastTypeInfoToTensorInfo = 55,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetSymbolicDimensions = 63,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kGetAllocatorWithDefaultOptions = 78,
  kReleaseValue = 96,
  kReleaseTensorTypeAndShapeInfo = 99,
};
constexpr uint32_t kInterfaceVersion = 16;  // has all of these, in every library since 2023
constexpr int kErrorsOnly = 3, kSequential = 0, kArenaAllocator = 1, kDefaultMemory = 0;

struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*version)();
};

// The numbers that ONNX gives to element types.
struct ElementType {
  int number;
  DType dtype;
};
constexpr std::array kElementTypes = {
    ElementType{1, {DTypeCode::kFloat, 32}},   ElementType{2, {DTypeCode::kUInt, 8}},
    ElementType{3, {DTypeCode::kInt, 8}},      ElementType{4, {DTypeCode::kUInt, 16}},
    ElementType{5, {DTypeCode::kInt, 16}},     ElementType{6, {DTypeCode::kInt, 32}},
    ElementType{7, {DTypeCode::kInt, 64}},     ElementType{9, {DTypeCode::kBool, 8}},
    ElementType{10, {DTypeCode::kFloat, 16}},  ElementType{11, {DTypeCode::kFloat, 64}},
    ElementType{12, {DTypeCode::kUInt, 32}},   ElementType{13, {DTypeCode::kUInt, 64}},
    ElementType{16, {DTypeCode::kBFloat, 16}},
};

}  // namespace

template <class... Args>
void OrtSession::call(size_t entry, Args... args) const {
  auto* function = reinterpret_cast<OrtHandle (*)(Args...)>(functions_[entry]);
  OrtHandle status = function(args...);
  if (!status) return;
  auto* message = reinterpret_cast<const char* (*)(OrtHandle)>(functions_[kGetErrorMessage]);
  throw RuntimeError(fmt::format("ONNX Runtime: {}", message(status)));
}

OrtSession::OrtSession(const std::string& library, const std::string& model, int threads,
                       OrtOptimizations optimizations) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw RuntimeError(fmt::format("cannot load ONNX Runtime: {}", dlerror()));
  auto* base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (!base) throw RuntimeError(fmt::format("{} is not ONNX Runtime: it has no OrtGetApiBase", library));
  version_ = base()->version();
  functions_ = base()->get_api(kInterfaceVersion);
  if (!functions_) throw RuntimeError(fmt::format("ONNX Runtime {} is older than 1.{}", version_, kInterfaceVersion));
  OrtHandle environment = nullptr, options = nullptr;
  call(kCreateEnv, kErrorsOnly, "relaxc", &environment);
  call(kCreateSessionOptions, &options);
  call(kSetSessionExecutionMode, options, kSequential);
  call(kSetSessionGraphOptimizationLevel, options, static_cast<int>(optimizations));
  call(kSetIntraOpNumThreads, options, threads);
  call(kSetInterOpNumThreads, options, 1);
  call(kCreateSession, environment, model.c_str(), options, &session_);
  size_t num_inputs = 0, num_outputs = 0;
  call(kSessionGetInputCount, session_, &num_inputs);
  call(kSessionGetOutputCount, session_, &num_outputs);
  for (size_t i = 0; i < num_inputs; ++i) {
    input_names_.push_back(name_of(kSessionGetInputName, i));
    inputs_.push_back(input_info(i, input_names_.back()));
  }
  for (size_t i = 0; i < num_outputs; ++i) output_names_.push_back(name_of(kSessionGetOutputName, i));
}

const char* OrtSession::name_of(size_t entry, size_t index) const {
  OrtHandle allocator = nullptr;
  char* name = nullptr;
  call(kGetAllocatorWithDefaultOptions, &allocator);
  call(entry, session_, index, allocator, &name);
  return name;
}

std::optional<DType> OrtSession::dtype_of(OrtHandle tensor_info) const {
  int element = 0;
  call(kGetTensorElementType, tensor_info, &element);
  for (const ElementType& row : kElementTypes) {
    if (row.number == element) return row.dtype;
  }
  return std::nullopt;
}

vm::ValueInfo OrtSession::input_info(size_t index, const char* name) const {
  OrtHandle type = nullptr, tensor = nullptr;
  call(kSessionGetInputTypeInfo, session_, index, &type);
  call(kCastTypeInfoToTensorInfo, type, &tensor);
  if (!tensor) throw RuntimeError(fmt::format("input '{}' is not a tensor", name));
  size_t rank = 0;
  call(kGetDimensionsCount, tensor, &rank);
  std::vector<int64_t> dims(rank);
  std::vector<const char*> names(rank);
  call(kGetDimensions, tensor, dims.data(), rank);
  call(kGetSymbolicDimensions, tensor, names.data(), rank);
  vm::ValueInfo info{.name = name, .dtype = dtype_of(tensor), .dims = std::vector<vm::DimInfo>()};
  if (!info.dtype) throw RuntimeError(fmt::format("input '{}' has an element type that is not supported", name));
  for (size_t i = 0; i < rank; ++i)
    info.dims->push_back(dims[i] < 0 ? vm::DimInfo{-1, names[i]} : vm::DimInfo{dims[i], ""});
  return info;
}

OrtHandle OrtSession::wrap(const Tensor& tensor) const {
  OrtHandle memory = nullptr, value = nullptr;
  call(kCreateCpuMemoryInfo, kArenaAllocator, kDefaultMemory, &memory);
  int element = 0;
  for (const ElementType& row : kElementTypes) {
    if (row.dtype == tensor.dtype()) element = row.number;
  }
  call(kCreateTensorWithDataAsOrtValue, memory, tensor.raw(), static_cast<size_t>(tensor.bytes()),
       tensor.shape().data(), tensor.shape().size(), element, &value);
  return value;
}

// Returns nothing for values other than tensors.
std::vector<int64_t> OrtSession::shape_of(OrtHandle value) const {
  int is_tensor = 0;
  call(kIsTensor, value, &is_tensor);
  if (is_tensor == 0) return {-1};
  OrtHandle info = nullptr;
  size_t rank = 0;
  call(kGetTensorTypeAndShape, value, &info);
  call(kGetDimensionsCount, info, &rank);
  std::vector<int64_t> shape(rank);
  call(kGetDimensions, info, shape.data(), rank);
  reinterpret_cast<void (*)(OrtHandle)>(functions_[kReleaseTensorTypeAndShapeInfo])(info);
  return shape;
}

void OrtSession::release(std::vector<OrtHandle>& values) const {
  for (OrtHandle& value : values) {
    reinterpret_cast<void (*)(OrtHandle)>(functions_[kReleaseValue])(value);
    value = nullptr;
  }
}

void OrtSession::run_into(std::vector<OrtHandle>& outputs) const {
  call(kRun, session_, OrtHandle(nullptr), input_names_.data(), input_values_.data(), input_values_.size(),
       output_names_.data(), output_names_.size(), outputs.data());
}

void OrtSession::set_inputs(std::vector<Tensor> inputs) {
  tensors_ = std::move(inputs);
  for (const Tensor& tensor : tensors_) input_values_.push_back(wrap(tensor));
  output_values_.resize(output_names_.size());
  std::vector<OrtHandle> second(output_names_.size());
  run_into(output_values_);
  run_into(second);
  has_bound_outputs_ = true;
  for (size_t i = 0; i < second.size(); ++i) {
    std::vector<int64_t> shape = shape_of(output_values_[i]);
    has_bound_outputs_ &= shape == shape_of(second[i]) && shape != std::vector<int64_t>{-1};
  }
  release(second);
  if (!has_bound_outputs_) release(output_values_);
}

Tensor OrtSession::copy_of(OrtHandle value, const char* name) const {
  int is_tensor = 0;
  call(kIsTensor, value, &is_tensor);
  if (is_tensor == 0) throw RuntimeError(fmt::format("result '{}' is not a tensor", name));
  OrtHandle info = nullptr;
  call(kGetTensorTypeAndShape, value, &info);
  std::optional<DType> dtype = dtype_of(info);
  reinterpret_cast<void (*)(OrtHandle)>(functions_[kReleaseTensorTypeAndShapeInfo])(info);
  if (!dtype) throw RuntimeError(fmt::format("result '{}' has an element type that is not supported", name));
  void* data = nullptr;
  call(kGetTensorMutableData, value, &data);
  return Tensor::copy_of(shape_of(value), *dtype, data);
}

std::vector<Tensor> OrtSession::results() const {
  std::vector<OrtHandle> values(output_names_.size());
  run_into(values);
  std::vector<Tensor> results;
  for (size_t i = 0; i < values.size(); ++i) results.push_back(copy_of(values[i], output_names_[i]));
  release(values);
  return results;
}

double OrtSession::run() {
  double start = tools::now_ms();
  run_into(output_values_);
  double ms = tools::now_ms() - start;
  if (!has_bound_outputs_) release(output_values_);
  return ms;
}

}  // namespace relaxc::bench
