#include "frontend/onnx/large_data.h"

#include <cstring>

#include "ir/text/lexer.h"
#include "support/diagnostic.h"
#include "vm/file_memory.h"

namespace relaxc::onnx_import {

namespace {

using Bytes = std::span<const std::byte>;

// This marker in doc_string stands for contents left in the file: "\1relaxc:<index>".
constexpr std::string_view kMarker = "\1relaxc:";
constexpr size_t kLarge = 4096;  // contents from this size on stay in the file
constexpr int kDeepest = 100;    // messages, as protobuf's own parser allows
// Copies are made in pieces, so that neither the file nor the copy must be in memory as a whole.
constexpr size_t kPiece = size_t{16} << 20;

struct WireField {
  uint64_t number = 0;
  int wire_type = 0;
  Bytes whole, payload;  // payload of length-delimited fields
};

class WireReader {
 public:
  explicit WireReader(Bytes bytes) : bytes_(bytes) {}
  bool at_end() const { return position_ == bytes_.size(); }
  size_t position() const { return position_; }
  std::optional<WireField> next() {
    size_t start = position_;
    auto key = varint();
    if (!key) return std::nullopt;
    WireField field{*key >> 3, static_cast<int>(*key & 7), {}, {}};
    std::optional<uint64_t> length;  // of the bytes that are left of the field
    if (field.wire_type == 0 && varint()) length = 0;
    if (field.wire_type == 1) length = 8;
    if (field.wire_type == 5) length = 4;
    if (field.wire_type == 2) length = varint();
    if (!length || bytes_.size() - position_ < *length) return std::nullopt;
    if (field.wire_type == 2) field.payload = bytes_.subspan(position_, *length);
    position_ += *length;
    field.whole = bytes_.subspan(start, position_ - start);
    return field;
  }
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (position_ == bytes_.size()) return std::nullopt;
      auto byte = static_cast<uint64_t>(bytes_[position_++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

 private:
  Bytes bytes_;
  size_t position_ = 0;
};

void append(std::string& out, Bytes bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }
void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}
void append_field(std::string& out, uint64_t number, std::string_view payload) {
  append_varint(out, number << 3 | 2);
  append_varint(out, payload.size());
  out.append(payload);
}

// A kind of message that may hold tensors, and which of its fields are such messages.
enum class Kind : uint8_t { kModel, kGraph, kNode, kAttribute, kFunction, kSparseTensor, kTensor };
struct Part {
  Kind kind;
  int field;
  Kind inner;
};
constexpr Part kParts[] = {
    {Kind::kModel, onnx::ModelProto::kGraphFieldNumber, Kind::kGraph},
    {Kind::kModel, onnx::ModelProto::kFunctionsFieldNumber, Kind::kFunction},
    {Kind::kGraph, onnx::GraphProto::kNodeFieldNumber, Kind::kNode},
    {Kind::kGraph, onnx::GraphProto::kInitializerFieldNumber, Kind::kTensor},
    {Kind::kGraph, onnx::GraphProto::kSparseInitializerFieldNumber, Kind::kSparseTensor},
    {Kind::kFunction, onnx::FunctionProto::kNodeFieldNumber, Kind::kNode},
    {Kind::kNode, onnx::NodeProto::kAttributeFieldNumber, Kind::kAttribute},
    {Kind::kAttribute, onnx::AttributeProto::kTFieldNumber, Kind::kTensor},
    {Kind::kAttribute, onnx::AttributeProto::kGFieldNumber, Kind::kGraph},
    {Kind::kAttribute, onnx::AttributeProto::kTensorsFieldNumber, Kind::kTensor},
    {Kind::kAttribute, onnx::AttributeProto::kGraphsFieldNumber, Kind::kGraph},
    {Kind::kAttribute, onnx::AttributeProto::kSparseTensorFieldNumber, Kind::kSparseTensor},
    {Kind::kSparseTensor, onnx::SparseTensorProto::kValuesFieldNumber, Kind::kTensor},
    {Kind::kSparseTensor, onnx::SparseTensorProto::kIndicesFieldNumber, Kind::kTensor},
};
constexpr int kContents[] = {onnx::TensorProto::kRawDataFieldNumber,    onnx::TensorProto::kFloatDataFieldNumber,
                             onnx::TensorProto::kDoubleDataFieldNumber, onnx::TensorProto::kInt32DataFieldNumber,
                             onnx::TensorProto::kInt64DataFieldNumber,  onnx::TensorProto::kUint64DataFieldNumber};

class Rewriter {
 public:
  explicit Rewriter(std::vector<LargeData>& data) : data_(data) {}

  // Returns nullopt for malformed bytes.
  std::optional<std::string> rewritten(Bytes message, Kind kind, int depth = 0) {
    if (kind == Kind::kTensor) return tensor(message);
    std::string out;
    for (WireReader reader(message); !reader.at_end();) {
      auto field = reader.next();
      if (!field) return std::nullopt;
      const Part* part = nullptr;
      for (const Part& row : kParts) {
        bool is_it = row.kind == kind && static_cast<uint64_t>(row.field) == field->number;
        if (is_it && field->payload.size() >= kLarge && depth < kDeepest) part = &row;
      }
      if (!part) {
        append(out, field->whole);
        continue;
      }
      std::optional<std::string> inner = rewritten(field->payload, part->inner, depth + 1);
      if (!inner) return std::nullopt;
      append_field(out, field->number, *inner);
    }
    return out;
  }

 private:
  // Contents in several pieces stay in the message; no exporter writes them.
  std::optional<std::string> tensor(Bytes message) {
    std::string rest;
    std::optional<LargeData> large;
    int pieces = 0;
    for (WireReader reader(message); !reader.at_end();) {
      auto field = reader.next();
      if (!field) return std::nullopt;
      const bool is_contents = std::ranges::find(kContents, static_cast<int>(field->number)) != std::end(kContents);
      pieces += is_contents;
      if (is_contents && field->payload.size() >= kLarge) {
        large = LargeData{field->payload, static_cast<int>(field->number)};
      } else if (field->number != onnx::TensorProto::kDocStringFieldNumber) {
        append(rest, field->whole);
      }
    }
    if (!large || pieces > 1) return std::string(reinterpret_cast<const char*>(message.data()), message.size());
    append_field(rest, onnx::TensorProto::kDocStringFieldNumber, std::string(kMarker) + std::to_string(data_.size()));
    data_.push_back(*large);
    return rest;
  }

  std::vector<LargeData>& data_;
};

void release_bytes(Bytes bytes, const std::shared_ptr<const void>& owner) {
  vm::release_pages(Tensor::view({std::ssize(bytes)}, DType::uint(8), const_cast<std::byte*>(bytes.data()), owner));
}

}  // namespace

std::string without_large_data(Bytes bytes, std::vector<LargeData>& data) {
  auto rest = Rewriter(data).rewritten(bytes, Kind::kModel);
  if (!rest) data.clear();
  return rest.value_or("");
}
std::optional<size_t> index_of_large_data(const onnx::TensorProto& proto) {
  if (!proto.doc_string().starts_with(kMarker)) return std::nullopt;
  std::optional<int64_t> index = relaxc::text::whole_number(proto.doc_string().substr(kMarker.size()));
  return index ? std::optional(static_cast<size_t>(*index)) : std::nullopt;
}

Tensor tensor_over(std::vector<int64_t> shape, DType dtype, Bytes bytes, const std::shared_ptr<const void>& owner) {
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (!bytes.empty() && address % static_cast<uintptr_t>(dtype.bytes()) == 0)
    return Tensor::view(std::move(shape), dtype, const_cast<std::byte*>(bytes.data()), owner);
  Tensor tensor = vm::tensor_in_file(std::move(shape), dtype);
  for (size_t done = 0; done < bytes.size(); done += kPiece) {
    Bytes piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
    std::memcpy(static_cast<std::byte*>(tensor.raw()) + done, piece.data(), piece.size());
    release_bytes(piece, owner);
    vm::release_pages(tensor);
  }
  return tensor;
}

Tensor tensor_of_varints(std::vector<int64_t> shape, DType dtype, Bytes bytes, const std::shared_ptr<const void>& owner,
                         const Span& span) {
  // Each number of a packed dtype is a byte with several elements.
  const int64_t width = dtype.bytes(), count = checked_tensor_bytes(shape, dtype) / width;
  if (count > std::ssize(bytes)) fail(span, "{} bytes of data, expected {} numbers", bytes.size(), count);
  Tensor tensor = vm::tensor_in_file(std::move(shape), dtype);
  std::byte* out = static_cast<std::byte*>(tensor.raw());
  WireReader reader(bytes);
  int64_t done = 0;
  size_t begin = 0;  // of the bytes that were read since pages were released
  for (; done < count && !reader.at_end(); ++done) {
    std::optional<uint64_t> value = reader.varint();
    if (!value) fail(span, "the data is malformed behind element {}", done);
    const uint64_t bits = dtype.is_bool() ? uint64_t{*value != 0} : *value;
    std::memcpy(out + done * width, &bits, static_cast<size_t>(width));
    if ((done + 1) % (static_cast<int64_t>(kPiece) / width) != 0) continue;
    release_bytes(bytes.subspan(begin, reader.position() - begin), owner);
    vm::release_pages(tensor);
    begin = reader.position();
  }
  if (done < count || !reader.at_end()) fail(span, "the data has not the expected number of elements, {}", count);
  return tensor;
}

}  // namespace relaxc::onnx_import
