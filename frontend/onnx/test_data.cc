#include "frontend/onnx/test_data.h"

#include "frontend/onnx/model_file.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/output_file.h"

namespace relaxc {

Tensor read_tensor_pb(const std::string& path, std::optional<DType> expected) {
  Span span = span_of_file(path);
  onnx::TensorProto proto;
  auto file = with_compile_errors(span, [&] { return vm::MappedFile::open(path); });
  std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() >= size_t{1} << 31 || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    fail(span, "not a TensorProto, or a truncated one");
  if (proto.data_type() == onnx::TensorProto::UNDEFINED) fail(span, "not a TensorProto: it has no element type");
  // The fields of a SequenceProto or OptionalProto are unknown to a TensorProto, or have another wire type.
  if (proto.unknown_fields().field_count() > 0)
    fail_unsupported(span, "a sequence or an optional; only tensors can be read");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) fail_unsupported(span, "external data");
  Tensor tensor = onnx_import::decode_tensor(proto, span);
  bool is_bits = tensor.dtype() == DType::uint(16) || tensor.dtype() == DType::int_(16);
  if (!is_bits || expected != DType::bfloat16()) return tensor;
  return Tensor::view(tensor.shape(), *expected, tensor.raw(), std::make_shared<Tensor>(tensor));
}

void write_tensor_pb(const std::string& path, const Tensor& tensor, const std::string& name) {
  Span span = span_of_file(path);
  onnx::TensorProto proto;
  proto.set_name(name);
  int type = onnx_import::element_type_of_dtype(tensor.dtype());
  if (type == 0) fail_unsupported(span, "{} has no ONNX element type", to_string(tensor.dtype()));
  proto.set_data_type(type);
  for (int64_t dim : tensor.shape()) proto.add_dims(dim);
  if (tensor.bytes() >= int64_t{1} << 31)
    fail_unsupported(span, "a tensor of {} bytes; the limit is 2 GB", tensor.bytes());
  proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) fail_unsupported(span, "a TensorProto beyond the limit of 2 GB");
  vm::write_file(path, bytes);
}

}  // namespace relaxc
