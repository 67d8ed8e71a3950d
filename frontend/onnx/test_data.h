// Reads and writes ONNX's test data, which is one value per .pb file.
#pragma once
#include "vm/executable.h"

namespace relaxc {

// Returns the tensor in a TensorProto file, as the dtype it is stored in. Where the graph expects a bfloat16, 16-bit
// integers are taken as its bits, because ONNX's test files store it so. Throws a CompileError that names the file when
// it does not hold a tensor or has an unsupported element type.
Tensor read_tensor_pb(const std::string& path, std::optional<DType> expected = {});
// Returns the value in a file for an input or output of this type: a TensorProto, SequenceProto, MapProto, or an
// OptionalProto of one of them.
vm::Value read_value_pb(const std::string& path, const vm::ValueInfo& info);
// Writes a TensorProto, SequenceProto or MapProto under that name; an OptionalProto where the value may be none.
void write_value_pb(const std::string& path, const vm::Value& value, const std::string& name, bool is_optional);
// Writes a TensorProto with raw_data under that name.
void write_tensor_pb(const std::string& path, const Tensor& tensor, const std::string& name);

}  // namespace relaxc
