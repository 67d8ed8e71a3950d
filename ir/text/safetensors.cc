#include "ir/text/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/ranges.h>

#include "ir/text/syntax.h"
#include "vm/error.h"
#include "vm/mapped_file.h"
#include "vm/output_file.h"

namespace relaxc::text {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kAlignment = 64;                         // of the data
constexpr uint64_t kLongestHeader = uint64_t{100} << 20;  // the limit of the format

constexpr std::pair<DType, std::string_view> kDTypes[] = {
    {kFloat64, "F64"},        {kFloat32, "F32"},        {DType::float_(16), "F16"}, {DType::bfloat16(), "BF16"},
    {kInt64, "I64"},          {kInt32, "I32"},          {DType::int_(16), "I16"},   {DType::int_(8), "I8"},
    {DType::uint(64), "U64"}, {DType::uint(32), "U32"}, {DType::uint(16), "U16"},   {DType::uint(8), "U8"},
    {kBool, "BOOL"},
};

// Reads JSON with the parser of the text format: this subset of it is also Python.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view json) : path_(path) {
    source_.origin = std::make_shared<const Origin>(Origin{path, {}, {}, nullptr});
    source_.text = json;
    root_ = parse_expression(source_, tree_, diagnostics_);
    if (diagnostics_.has_errors() || !root_ || root_->kind != SyntaxKind::kDict)
      fail("its header is not a JSON object");
  }

  std::map<std::string, Tensor> read(std::span<const std::byte> data, const std::shared_ptr<const void>& owner) {
    std::map<std::string, Tensor> result;
    for (size_t i = 0; i < root_->children.size(); i += 2) {
      std::string name = text(*root_->children[i]);
      if (name == "__metadata__") continue;
      if (!result.emplace(name, tensor(name, *root_->children[i + 1], data, owner)).second)
        fail("tensor '{}' stands there twice", name);
    }
    return result;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    relaxc::fail({}, "{}: {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string text(const Syntax& at) const {
    std::string error;
    if (at.kind != SyntaxKind::kString) fail("its header has a {} where a string belongs", at.text);
    std::string result = unquote(at.text, error);
    if (!error.empty()) fail("{}", error);
    return result;
  }
  std::vector<int64_t> ints(const Syntax& at) const {
    if (at.kind != SyntaxKind::kList) fail("its header has something else where a list of numbers belongs");
    std::vector<int64_t> result;
    for (const Syntax* item : at.children) {
      std::optional<int64_t> value = whole_number(item->kind == SyntaxKind::kInt ? item->text : "");
      if (!value) fail("its header has '{}' where a number belongs", item->text);
      result.push_back(*value);
    }
    return result;
  }

  Tensor tensor(const std::string& name, const Syntax& at, std::span<const std::byte> data,
                const std::shared_ptr<const void>& owner) const {
    std::optional<DType> dtype;
    std::optional<std::vector<int64_t>> shape, offsets;
    if (at.kind != SyntaxKind::kDict) fail("tensor '{}' is not a JSON object", name);
    for (size_t i = 0; i < at.children.size(); i += 2) {
      std::string key = text(*at.children[i]);
      const Syntax& value = *at.children[i + 1];
      if (key == "shape") shape = ints(value);
      if (key == "data_offsets") offsets = ints(value);
      if (key != "dtype") continue;
      std::string given = text(value);
      auto row = std::ranges::find(kDTypes, given, [](const auto& pair) { return pair.second; });
      if (row == std::end(kDTypes)) fail("tensor '{}' has dtype {}, which is not supported", name, given);
      dtype = row->first;
    }
    if (!dtype || !shape || !offsets || offsets->size() != 2) fail("tensor '{}' lacks dtype, shape or offsets", name);
    int64_t bytes = dtype->bytes(), size = static_cast<int64_t>(data.size());
    for (int64_t dim : *shape) {
      if (dim < 0 || (dim > 0 && bytes > size / dim)) fail("tensor '{}' is larger than the file", name);
      bytes *= dim;
    }
    int64_t begin = (*offsets)[0], end = (*offsets)[1];
    if (begin < 0 || end > size || begin > end || end - begin != bytes)
      fail("tensor '{}' of {} bytes stands at [{}, {}) of {}", name, bytes, begin, end, size);
    auto* address = const_cast<std::byte*>(data.data() + begin);
    auto is_truth = [](std::byte value) { return std::to_integer<int>(value) <= 1; };
    if (*dtype == kBool && !std::all_of(address, address + bytes, is_truth))
      fail("tensor '{}' has a bool that is neither 0 nor 1", name);
    if (bytes > 0 && reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(dtype->bytes()) == 0)
      return Tensor::view(std::move(*shape), *dtype, address, owner);
    Tensor copy = Tensor::empty(std::move(*shape), *dtype);
    if (bytes > 0) std::memcpy(copy.raw(), address, static_cast<size_t>(bytes));
    return copy;
  }

  std::string path_;
  Source source_;
  SyntaxTree tree_;
  Diagnostics diagnostics_;
  const Syntax* root_ = nullptr;
};

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
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
      fail({}, "{}: a constant of {} has no place in a safetensors file", path, to_string(tensor.dtype()));
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", json_string(name), row->second, fmt::join(tensor.shape(), ","),
                          position, position + tensor.bytes());
    position += tensor.bytes();
  }
  header += "}";
  header.resize((8 + header.size() + kAlignment - 1) / kAlignment * kAlignment - 8, ' ');
  // The tensors may be views of the very file that is replaced; the rename keeps it for them.
  vm::OutputFile file(path);
  uint64_t length = header.size();
  file.write(&length, sizeof(length));
  file.write(header);
  for (const auto& [name, tensor] : ordered) file.write(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  file.commit();
}

std::map<std::string, Tensor> read_safetensors(const std::string& path) {
  std::shared_ptr<const vm::MappedFile> file;
  try {
    file = vm::MappedFile::open(path);
  } catch (const RuntimeError& error) {
    fail({}, "{}", error.what());
  }
  std::span<const std::byte> bytes = file->bytes();
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), std::min<size_t>(bytes.size(), 8));
  if (bytes.size() < 8 || length > kLongestHeader || length > bytes.size() - 8)
    fail({}, "{}: not a safetensors file, or a truncated one", path);
  std::string_view json(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  return HeaderReader(path, json).read(bytes.subspan(8 + length), file);
}

}  // namespace relaxc::text
