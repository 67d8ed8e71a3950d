// The model's bytes: the file mapped, the protobuf message without its large weights, and the tensors in it.
#pragma once
#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "frontend/onnx/import.h"
#include "vm/tensor.h"

namespace relaxc::onnx_import {

// The dtype of an ONNX element type; unsupported ones (strings, complex, 8-bit floats, 4 bits) and unknown ones throw
// at the span.
DType dtype_of_element_type(int element_type, const Span& span);
// 0 when there is none.
int element_type_of_dtype(DType dtype);

class ModelFile {
 public:
  static std::shared_ptr<const ModelFile> open(const std::string& path, const ImportLimits& limits);
  static std::shared_ptr<const ModelFile> from_bytes(std::span<const std::byte> bytes, const std::string& name,
                                                     const ImportLimits& limits);
  const onnx::ModelProto& proto() const { return proto_; }
  const std::string& name() const { return name_; }
  // Every file that is mapped, those of external tensors as far as they were read.
  vm::MappedFiles files() const;
  // The tensor; it shares memory with the file where alignment allows. `self` must own this file.
  static Tensor tensor(const std::shared_ptr<const ModelFile>& self, const onnx::TensorProto& proto, const Span& span);

 private:
  void parse(std::span<const std::byte> bytes);
  std::string name_, folder_;
  ImportLimits limits_;
  std::shared_ptr<const void> bytes_owner_;
  std::shared_ptr<const vm::MappedFile> mapped_;  // null for a model in memory
  // Of external data, by location; each is mapped once.
  mutable std::map<std::string, std::shared_ptr<const vm::MappedFile>> external_;
  onnx::ModelProto proto_;
  // raw_data of initializers that were left out of proto_, by the marker left in their place.
  std::vector<std::span<const std::byte>> raw_data_;
};

// The elements of a TensorProto whose data is inside of the message, copied.
Tensor decode_tensor(const onnx::TensorProto& proto, const Span& span);

}  // namespace relaxc::onnx_import
