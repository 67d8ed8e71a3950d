#include "ir/text/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/text/parsing.h"
#include "support/checked_math.h"
#include "support/joined.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/memory.h"
#include "vm/output_file.h"

namespace relaxc::text {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kLongestHeader = uint64_t{100} << 20;  // the limit of the format

constexpr std::pair<DType, std::string_view> kDTypes[] = {
    {kFloat64, "F64"},
    {kFloat32, "F32"},
    {DType::float_(16), "F16"},
    {DType::bfloat16(), "BF16"},
    {kInt64, "I64"},
    {kInt32, "I32"},
    {DType::int_(16), "I16"},
    {DType::int_(8), "I8"},
    {DType::uint(64), "U64"},
    {DType::uint(32), "U32"},
    {DType::uint(16), "U16"},
    {DType::uint(8), "U8"},
    {kBool, "BOOL"},
    {{DTypeCode::kFloat8E4M3FN, 8}, "F8_E4M3"},
    {{DTypeCode::kFloat8E4M3FNUZ, 8}, "F8_E4M3FNUZ"},
    {{DTypeCode::kFloat8E5M2, 8}, "F8_E5M2"},
    {{DTypeCode::kFloat8E5M2FNUZ, 8}, "F8_E5M2FNUZ"},
    {{DTypeCode::kFloat8E8M0FNU, 8}, "F8_E8M0"},
    {{DTypeCode::kFloat4E2M1FN, 4}, "F4"},
    // The format has no name for these.
    {DType::int_(4), "I4"},
    {DType::uint(4), "U4"},
    {DType::int_(2), "I2"},
    {DType::uint(2), "U2"},
    {DType::complex(64), "C64"},
    {DType::complex(128), "C128"},
};

// The description of a tensor in the header.
struct Entry {
  std::string dtype;
  std::vector<int64_t> shape, data_offsets;
  RELAXC_FIELDS(Entry, dtype, shape, data_offsets);
};

// Returns the tensor of the header's entry, in memory that `file` owns. Errors are CompileErrors at the span.
Tensor tensor_of(const std::string& name, const Entry& entry, std::span<const std::byte> data,
                 const std::shared_ptr<const void>& file, const Span& span) {
  auto row = std::ranges::find(kDTypes, entry.dtype, [](const auto& pair) { return pair.second; });
  if (row == std::end(kDTypes)) fail(span, "tensor '{}' has dtype {}, which is not supported", name, entry.dtype);
  DType dtype = row->first;
  int64_t size = static_cast<int64_t>(data.size()), bytes = tensor_bytes(entry.shape, dtype).value_or(-1);
  if (bytes < 0 || bytes > size) fail(span, "tensor '{}' is larger than the file", name);
  if (entry.data_offsets.size() != 2) fail(span, "tensor '{}' does not have two offsets", name);
  int64_t begin = entry.data_offsets[0], end = entry.data_offsets[1];
  if (begin < 0 || end > size || begin > end || end - begin != bytes)
    fail(span, "tensor '{}' of {} bytes stands at [{}, {}) of {}", name, bytes, begin, end, size);
  auto* address = const_cast<std::byte*>(data.data() + begin);
  auto is_truth = [](std::byte value) { return std::to_integer<int>(value) <= 1; };
  if (dtype == kBool && !std::all_of(address, address + bytes, is_truth))
    fail(span, "tensor '{}' has a bool that is neither 0 nor 1", name);
  if (bytes > 0 && reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(dtype.bytes()) == 0)
    return Tensor::view(entry.shape, dtype, address, file);
  return Tensor::copy_of(entry.shape, dtype, address);
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::string header = "{";
  int64_t position = 0;
  // The bytes must have no gaps, so wide elements come first, which aligns all tensors.
  std::vector<std::pair<std::string, Tensor>> ordered = tensors;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.dtype().bytes() > b.second.dtype().bytes(); });
  for (const auto& [name, tensor] : ordered) {
    auto row = std::ranges::find(kDTypes, tensor.dtype(), [](const auto& pair) { return pair.first; });
    if (row == std::end(kDTypes))
      fail(span_of_file(path), "a constant of {} has no place in a safetensors file", to_string(tensor.dtype()));
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", string_literal(name), row->second, joined(tensor.shape(), ","),
                          position, position + tensor.bytes());
    position += tensor.bytes();
  }
  header += "}";
  header.resize(static_cast<size_t>(round_up(8 + std::ssize(header), vm::kAlignment)) - 8, ' ');
  // The tensors may be views of the very file that is replaced; the rename keeps it for them.
  vm::OutputFile file(path);
  uint64_t length = header.size();
  file.write(&length, sizeof(length));
  file.write(header);
  for (const auto& [name, tensor] : ordered) file.write(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  file.commit();
}

std::map<std::string, Tensor> read_safetensors(const std::string& path) {
  const Span place = span_of_file(path);
  auto file = with_compile_errors(place, [&] { return vm::MappedFile::open(path); });
  std::span<const std::byte> bytes = file->bytes();
  uint64_t length = 0;
  if (bytes.size() >= sizeof(length)) std::memcpy(&length, bytes.data(), sizeof(length));
  if (bytes.size() < 8 || length > kLongestHeader || length > bytes.size() - 8)
    fail(place, "not a safetensors file, or a truncated one");
  // This subset of JSON is also Python.
  std::string_view json(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  std::map<std::string, Tensor> result;
  for (const auto& [name, entry] : read_dictionary({place.origin, json})) {
    if (name == "__metadata__") continue;
    if (!entry.as<Attrs>()) fail(place, "tensor '{}' is not a JSON object", name);
    Entry stated = read_attrs<Entry>(*entry.as<Attrs>(), place);
    result.emplace(name, tensor_of(name, stated, bytes.subspan(8 + length), file, place));
  }
  return result;
}

}  // namespace relaxc::text
