// Contents of large tensors, which stay in the file: protobuf's wire format is rewritten so that the message that is
// parsed does not hold them.
#pragma once
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/span.h"
#include "vm/tensor.h"

namespace relaxc::onnx_import {

// The contents of a TensorProto as they lie in the file: raw_data, or packed numbers (float_data, int64_data, ...).
struct LargeData {
  std::span<const std::byte> bytes;
  int field;  // its number in TensorProto
};

// Returns a ModelProto in which such contents, of initializers and of attributes, at any depth, are replaced by a
// marker in the tensor's doc_string that stands for an element of `data`; those point into `bytes`. `data` stays empty
// when nothing was replaced or the bytes are malformed; the caller then parses `bytes`.
std::string without_large_data(std::span<const std::byte> bytes, std::vector<LargeData>& data);
// Returns which element of `data` the tensor's contents are; nullopt when they are in the message.
std::optional<size_t> index_of_large_data(const onnx::TensorProto& proto);

// Returns the bytes as elements of that shape, shared where alignment allows.
Tensor tensor_over(std::vector<int64_t> shape, DType dtype, std::span<const std::byte> bytes,
                   const std::shared_ptr<const void>& owner);
// Returns the numbers of a packed field of protobuf's varints as a tensor, which must have as many elements.
Tensor tensor_of_varints(std::vector<int64_t> shape, DType dtype, std::span<const std::byte> bytes,
                         const std::shared_ptr<const void>& owner, const Span& span);

}  // namespace relaxc::onnx_import
