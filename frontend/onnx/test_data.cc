#include "frontend/onnx/test_data.h"

#include <onnx/onnx-data_pb.h>

#include <cstring>

#include "frontend/onnx/model_file.h"
#include "support/file_kind.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/output_file.h"

namespace relaxc {

namespace {

[[noreturn]] void refuse_bytes(const Span& span, std::string_view bytes, std::string_view kind) {
  const auto content = recognized_content(bytes);
  if (content && content->is_remedied) fail(span, "expected a {} (.pb); {}", kind, to_string(*content));
  if (content && content->kind == ContentKind::kArray)
    fail(span, "expected a {} (.pb); it is {}: --input takes it", kind, content->what);
  if (content) fail(span, "expected a {} (.pb); it is {}", kind, content->what);
  fail(span, "not a {}, or a truncated one", kind);
}

template <class Proto>
Proto read_proto(const std::string& path, std::string_view kind) {
  Span span = span_of_file(path);
  Proto proto;
  auto file = with_compile_errors(span, [&] { return vm::MappedFile::open(path); });
  std::span<const std::byte> bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto content = recognized_content(text);
  const bool is_model = content && content->kind == ContentKind::kModel;  // some can be read as a tensor
  if (is_model || bytes.size() >= size_t{1} << 31 ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    refuse_bytes(span, text, kind);
  return proto;
}
void write_proto(const std::string& path, const google::protobuf::MessageLite& proto) {
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) fail_unsupported(span_of_file(path), "a message beyond the limit of 2 GB");
  vm::write_file(path, bytes);
}

// ---- Messages to values. Protobuf bounds their depth.

vm::Value value_of(const onnx::TensorProto& proto, const Span& span) { return onnx_import::decode_tensor(proto, span); }
vm::Value value_of(const onnx::SequenceProto& proto, const Span& span);
vm::Value value_of(const onnx::MapProto& proto, const Span& span);
vm::Value value_of(const onnx::OptionalProto& proto, const Span& span) {  // NOLINT: bounded
  if (proto.has_tensor_value()) return value_of(proto.tensor_value(), span);
  if (proto.has_sequence_value()) return value_of(proto.sequence_value(), span);
  if (proto.has_map_value()) return value_of(proto.map_value(), span);
  if (proto.has_optional_value()) return value_of(proto.optional_value(), span);
  if (proto.has_sparse_tensor_value()) fail_unsupported(span, "a sparse tensor");
  return {};
}
vm::Value value_of(const onnx::SequenceProto& proto, const Span& span) {  // NOLINT: bounded
  if (proto.sparse_tensor_values_size() > 0) fail_unsupported(span, "a sequence of sparse tensors");
  std::vector<vm::Value> items;
  auto add = [&](const auto& values) {
    for (const auto& value : values) items.push_back(value_of(value, span));
  };
  add(proto.tensor_values());
  add(proto.sequence_values());
  add(proto.map_values());
  add(proto.optional_values());
  return with_compile_errors(span, [&] { return vm::Value(vm::Sequence{vm::Tuple(std::move(items))}); });
}
// The values of a map are tensors of one shape, a row for each key.
vm::Value value_of(const onnx::MapProto& proto, const Span& span) {
  std::vector<std::string> texts(proto.string_keys().begin(), proto.string_keys().end());
  Tensor keys = Tensor::strings({std::ssize(texts)}, texts);
  if (texts.empty())
    keys = Tensor::of<int64_t>({proto.keys_size()}, kInt64, {proto.keys().begin(), proto.keys().end()});
  std::vector<Tensor> rows;
  for (const onnx::TensorProto& row : proto.values().tensor_values())
    rows.push_back(onnx_import::decode_tensor(row, span));
  if (std::ssize(rows) != keys.size()) fail(span, "a map of {} keys and {} values", keys.size(), rows.size());
  vm::Shape shape = rows.empty() ? vm::Shape() : rows[0].shape();
  shape.insert(shape.begin(), std::ssize(rows));
  DType dtype = rows.empty() ? kFloat32 : rows[0].dtype();
  std::vector<std::string_view> strings;
  Tensor values = Tensor::empty(shape, dtype);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dtype() != dtype || rows[i].shape() != rows[0].shape()) fail(span, "values of a map differ in type");
    for (int64_t k = 0; k < rows[i].size() && dtype.is_string(); ++k) strings.push_back(rows[i].string(k));
    if (dtype.is_string() || rows[i].bytes() == 0) continue;
    std::memcpy(static_cast<char*>(values.raw()) + static_cast<int64_t>(i) * rows[i].bytes(), rows[i].raw(),
                static_cast<size_t>(rows[i].bytes()));
  }
  if (dtype.is_string()) values = Tensor::strings(shape, strings);
  return with_compile_errors(span, [&] { return vm::Value(vm::Map::of(keys, values)); });
}

// ---- Values to messages

Tensor row_of(const Tensor& tensor, int64_t row) {
  vm::Shape shape(tensor.shape().begin() + 1, tensor.shape().end());
  int64_t size = tensor.size() / std::max<int64_t>(tensor.shape()[0], 1);
  if (!tensor.dtype().is_string())
    return Tensor::copy_of(shape, tensor.dtype(),
                           static_cast<const char*>(tensor.raw()) + row * size * tensor.dtype().bytes());
  std::vector<std::string_view> strings;
  for (int64_t i = 0; i < size; ++i) strings.push_back(tensor.string(row * size + i));
  return Tensor::strings(shape, strings);
}
onnx::MapProto proto_of_map(const vm::Map& map, const Span& span) {
  onnx::MapProto proto;
  const Tensor& keys = map.keys();
  proto.set_key_type(onnx_import::element_type_of_dtype(keys.dtype()));
  proto.mutable_values()->set_elem_type(onnx::SequenceProto::TENSOR);
  for (int64_t i = 0; i < keys.size(); ++i) {
    keys.dtype().is_string() ? proto.add_string_keys(std::string(keys.string(i))) : proto.add_keys(keys.as_int(i));
    *proto.mutable_values()->add_tensor_values() = onnx_import::proto_of_tensor(row_of(map.values(), i), span);
  }
  return proto;
}
onnx::SequenceProto proto_of_sequence(const vm::Sequence& sequence, const Span& span) {  // NOLINT: bounded
  onnx::SequenceProto proto;
  proto.set_elem_type(onnx::SequenceProto::TENSOR);
  for (const vm::Value& item : sequence.items.fields()) {
    if (const auto* tensor = item.get_if<Tensor>()) {
      *proto.add_tensor_values() = onnx_import::proto_of_tensor(*tensor, span);
    } else if (const auto* inner = item.get_if<vm::Sequence>()) {
      proto.set_elem_type(onnx::SequenceProto::SEQUENCE);
      *proto.add_sequence_values() = proto_of_sequence(*inner, span);
    } else if (const auto* map = item.get_if<vm::Map>()) {
      proto.set_elem_type(onnx::SequenceProto::MAP);
      *proto.add_map_values() = proto_of_map(*map, span);
    } else {
      fail_unsupported(span, "a sequence with {} in it", describe(item));
    }
  }
  return proto;
}

}  // namespace

Tensor read_tensor_pb(const std::string& path, std::optional<DType> expected) {
  Span span = span_of_file(path);
  auto proto = read_proto<onnx::TensorProto>(path, "TensorProto");
  if (proto.data_type() == onnx::TensorProto::UNDEFINED) fail(span, "not a TensorProto: it has no element type");
  // The fields of a SequenceProto or OptionalProto are unknown to a TensorProto, or have another wire type.
  if (proto.unknown_fields().field_count() > 0) fail(span, "a sequence or an optional, expected a tensor");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) fail_unsupported(span, "external data");
  Tensor tensor = onnx_import::decode_tensor(proto, span);
  bool is_bits = tensor.dtype() == DType::uint(16) || tensor.dtype() == DType::int_(16);
  if (!is_bits || expected != DType::bfloat16()) return tensor;
  return Tensor::view(tensor.shape(), *expected, tensor.raw(), std::make_shared<Tensor>(tensor));
}

// A message of a map without entries does not say what they would be; the graph does.
static vm::Value as_declared(vm::Value value, const vm::ValueInfo& info) {
  const auto* map = value.get_if<vm::Map>();
  if (!map || map->keys().size() > 0 || info.fields.size() != 2) return value;
  auto empty = [](const Tensor& tensor, const vm::ValueInfo& of) {
    DType dtype = of.dtype.value_or(tensor.dtype());
    return dtype.is_string() ? Tensor::strings(tensor.shape(), std::vector<std::string>())
                             : Tensor::empty(tensor.shape(), dtype);
  };
  return vm::Map::of(empty(map->keys(), info.fields[0]), empty(map->values(), info.fields[1]));
}

vm::Value read_value_pb(const std::string& path, const vm::ValueInfo& info) {
  Span span = span_of_file(path);
  if (info.is_optional) return value_of(read_proto<onnx::OptionalProto>(path, "OptionalProto"), span);
  if (info.kind == vm::ValueKind::kSequence)
    return value_of(read_proto<onnx::SequenceProto>(path, "SequenceProto"), span);
  if (info.kind == vm::ValueKind::kMap)
    return as_declared(value_of(read_proto<onnx::MapProto>(path, "MapProto"), span), info);
  return read_tensor_pb(path, info.dtype);
}

void write_value_pb(const std::string& path, const vm::Value& value, const std::string& name, bool is_optional) {
  Span span = span_of_file(path);
  onnx::OptionalProto optional;
  optional.set_name(name);
  auto write = [&](auto proto, onnx::OptionalProto::DataType type, auto place) {
    proto.set_name(name);
    if (!is_optional) return write_proto(path, proto);
    optional.set_elem_type(type);
    *(optional.*place)() = std::move(proto);
    write_proto(path, optional);
  };
  if (const auto* tensor = value.get_if<Tensor>()) {
    write(onnx_import::proto_of_tensor(*tensor, span), onnx::OptionalProto::TENSOR,
          &onnx::OptionalProto::mutable_tensor_value);
  } else if (const auto* sequence = value.get_if<vm::Sequence>()) {
    write(proto_of_sequence(*sequence, span), onnx::OptionalProto::SEQUENCE,
          &onnx::OptionalProto::mutable_sequence_value);
  } else if (const auto* map = value.get_if<vm::Map>()) {
    write(proto_of_map(*map, span), onnx::OptionalProto::MAP, &onnx::OptionalProto::mutable_map_value);
  } else if (value.is_none() && is_optional) {
    write_proto(path, optional);
  } else {
    fail_unsupported(span, "{} has no message of ONNX", describe(value));
  }
}

void write_tensor_pb(const std::string& path, const Tensor& tensor, const std::string& name) {
  write_value_pb(path, tensor, name, false);
}

}  // namespace relaxc
