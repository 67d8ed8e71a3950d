// A model's bytes: the mapped file, the protobuf message without its large weights, and the tensors in it.
#pragma once
#include <onnx/onnx_pb.h>

#include "frontend/onnx/import.h"
#include "frontend/onnx/large_data.h"
#include "vm/tensor.h"

namespace relaxc::onnx_import {

// Returns "" for the domain "ai.onnx", which is another name of the default domain.
inline std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Returns the texts, or the bytes of the messages, in a field, which our schema may be too old to know.
std::vector<std::string> field_values(const google::protobuf::Message& message, int number);
// Returns the name of a function for the calls of it: its domain, name and overload.
std::string name_of_function(const onnx::FunctionProto& function);
std::string name_of_function(const onnx::NodeProto& call);

// Returns the dtype of an ONNX element type. Unknown ones throw at the span.
DType dtype_of_element_type(int element_type, const Span& span);
// Returns 0 when ONNX does not have the dtype.
int element_type_of_dtype(DType dtype);

class ModelFile {
 public:
  // open() and from_bytes() make one and read the model.
  ModelFile(std::string name, const ImportLimits& limits) : name_(std::move(name)), limits_(limits) {}
  static std::shared_ptr<const ModelFile> open(const std::string& path, const ImportLimits& limits);
  static std::shared_ptr<const ModelFile> from_bytes(std::span<const std::byte> bytes, const std::string& name,
                                                     const ImportLimits& limits);
  const onnx::ModelProto& proto() const { return proto_; }
  const std::string& name() const { return name_; }
  // Returns every file that is mapped so far, including the files of external tensors that were read.
  vm::MappedFiles files() const;
  // Returns the tensor, which shares memory with the file where alignment allows. `self` must own this file.
  static Tensor tensor(const std::shared_ptr<const ModelFile>& self, const onnx::TensorProto& proto, const Span& span);
  // Returns the location of a tensor whose data is in a file that has not been opened.
  std::optional<std::string> unopened(const onnx::TensorProto& proto) const;
  // Returns the names of all initializers, of subgraphs too, whose data is at the location.
  std::vector<std::string> initializers_at(const std::string& location) const;
  // Returns a sparse tensor with its zeros.
  static Tensor tensor(const std::shared_ptr<const ModelFile>& self, const onnx::SparseTensorProto& proto,
                       const Span& span);

 private:
  void parse(std::span<const std::byte> bytes);
  std::string name_, folder_;
  ImportLimits limits_;
  std::shared_ptr<const void> bytes_owner_;
  std::shared_ptr<const vm::MappedFile> mapped_;  // null for a model in memory
  // The files of external data by location; each is mapped once.
  mutable std::map<std::string, std::shared_ptr<const vm::MappedFile>> external_;
  onnx::ModelProto proto_;
  std::vector<LargeData> large_data_;  // what was left out of proto_
};

// Copies the elements of a TensorProto whose data is inside of the message.
Tensor decode_tensor(const onnx::TensorProto& proto, const Span& span);
// Returns the tensor as a message without a name. Throws at the span what does not fit into one.
onnx::TensorProto proto_of_tensor(const Tensor& tensor, const Span& span);

}  // namespace relaxc::onnx_import
