#include "frontend/onnx/wire.h"

#include <cstdint>
#include <optional>

namespace relaxc::onnx_import {

namespace {

using Bytes = std::span<const std::byte>;
constexpr size_t kLarge = 4096;  // raw_data from this size on stays in the file
// Field numbers of onnx.proto.
constexpr uint64_t kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9, kTensorDocString = 12;

struct WireField {
  uint64_t number = 0;
  int wire_type = 0;
  Bytes whole, payload;  // payload of length-delimited fields
};

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}
  bool at_end() const { return position_ == bytes_.size(); }
  std::optional<WireField> next() {
    size_t start = position_;
    auto key = varint();
    if (!key) return std::nullopt;
    WireField field{*key >> 3, static_cast<int>(*key & 7), {}, {}};
    bool is_whole = field.wire_type == 0 && varint();
    if (field.wire_type == 1) is_whole = skip(8);
    if (field.wire_type == 5) is_whole = skip(4);
    if (field.wire_type == 2) {
      auto length = varint();
      size_t begin = position_;
      is_whole = length && skip(*length);
      if (is_whole) field.payload = bytes_.subspan(begin, *length);
    }
    if (!is_whole) return std::nullopt;
    field.whole = bytes_.subspan(start, position_ - start);
    return field;
  }

 private:
  bool skip(uint64_t count) {
    if (bytes_.size() - position_ < count) return false;
    position_ += count;
    return true;
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

struct Slimmer {
  std::string_view marker;
  std::vector<Bytes>& raw_data;

  std::optional<std::string> tensor(Bytes bytes) {
    std::string out;
    std::optional<Bytes> large;
    for (Reader reader(bytes); !reader.at_end();) {
      auto field = reader.next();
      if (!field) return std::nullopt;
      if (field->wire_type == 2 && field->number == kTensorRawData && field->payload.size() >= kLarge) {
        large = field->payload;
      } else if (field->number != kTensorDocString) {
        append(out, field->whole);
      }
    }
    if (!large) return out;
    append_field(out, kTensorDocString, std::string(marker) + std::to_string(raw_data.size()));
    raw_data.push_back(*large);
    return out;
  }
  // A message in which fields `number` are rewritten by `rewrite`.
  template <class F>
  std::optional<std::string> message(Bytes bytes, uint64_t number, F rewrite) {
    std::string out;
    for (Reader reader(bytes); !reader.at_end();) {
      auto field = reader.next();
      if (!field) return std::nullopt;
      if (field->wire_type != 2 || field->number != number) {
        append(out, field->whole);
        continue;
      }
      std::optional<std::string> inner = rewrite(field->payload);
      if (!inner) return std::nullopt;
      append_field(out, number, *inner);
    }
    return out;
  }
};

}  // namespace

std::string without_weights(Bytes bytes, std::string_view marker, std::vector<Bytes>& raw_data) {
  Slimmer slimmer{marker, raw_data};
  auto slim = slimmer.message(bytes, kModelGraph, [&](Bytes graph) {
    return slimmer.message(graph, kGraphInitializer, [&](Bytes tensor) { return slimmer.tensor(tensor); });
  });
  if (!slim) raw_data.clear();
  return slim.value_or("");
}

}  // namespace relaxc::onnx_import
