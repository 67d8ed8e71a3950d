#include "vm/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "support/file_kind.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/printable.h"
#include "support/whole_number.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/output_file.h"
#include "vm/text.h"

namespace relaxc {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 1 << 16;
constexpr size_t kMaxRank = 64;

// The first letters of numpy's names of dtypes, which end in the bytes: "f4" is float32.
constexpr std::pair<char, DTypeCode> kLetters[] = {
    {'b', DTypeCode::kBool},  {'i', DTypeCode::kInt},     {'u', DTypeCode::kUInt},
    {'f', DTypeCode::kFloat}, {'c', DTypeCode::kComplex},
};

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// The header is a Python dict literal with three known keys.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() != '\'' && peek() != '"') throw_runtime_error("{}: structured dtypes are not supported", path_);
        header.descr = string();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        damaged();
      }
      if (!accept(',') && peek() != '}') damaged();
    }
    skip_space();
    if (!text_.empty() || !header.descr || !header.fortran_order || !header.shape) damaged();
    return header;
  }

 private:
  [[noreturn]] void damaged() const { throw_runtime_error("{}: the .npy header is damaged", path_); }
  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  char peek() {
    skip_space();
    return text_.empty() ? '\0' : text_[0];
  }
  bool accept(char c) {
    if (peek() != c || text_.empty()) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) damaged();
  }
  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) damaged();
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_space();
    for (std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    damaged();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0 || values.size() == kMaxRank) damaged();
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      values.push_back(value);
      accept('L');  // Python 2 wrote long integers with a suffix
      if (!accept(',') && peek() != ')') damaged();
    }
    return values;
  }

  const std::string& path_;
  std::string_view text_;
};

bool is_stored_as_bytes(DType dtype) { return dtype.lanes == 1 && (dtype.is_packed() || dtype.is_small_float()); }

// Returns the elements whose values or bits these bytes are.
Tensor from_bytes(const std::string& path, const Tensor& bytes, DType dtype) {
  Tensor tensor = Tensor::empty(bytes.shape(), dtype);
  for (int64_t i = 0; i < bytes.size(); ++i) {
    int64_t value = bytes.as_int(i);
    bool fits = value < int64_t{1} << (dtype.is_int() && value >= 0 ? dtype.bits - 1 : dtype.bits) &&
                (value >= 0 || (dtype.is_int() && value >= -(int64_t{1} << (dtype.bits - 1))));
    if (dtype.is_int() && bytes.dtype().is_uint()) fits = value < int64_t{1} << dtype.bits;
    if (!fits)
      throw_runtime_error("{}: element {} is {}, which is not a value of {}", path, i, value, to_string(dtype));
    auto bits = static_cast<uint8_t>(value);
    dtype.is_packed() ? set_packed_bits(tensor.raw(), i, dtype, bits) : void(tensor.data<uint8_t>()[i] = bits);
  }
  return tensor;
}
// Does the reverse.
Tensor to_bytes(const Tensor& tensor) {
  DType dtype = tensor.dtype();
  Tensor bytes = Tensor::empty(tensor.shape(), dtype.is_int() ? DType::int_(8) : DType::uint(8));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    bytes.set_int(i, !dtype.is_float()   ? tensor.as_int(i)
                     : dtype.is_packed() ? packed_bits(tensor.raw(), i, dtype)
                                         : tensor.data<uint8_t>()[i]);
  }
  return bytes;
}

DType dtype_of(const std::string& path, std::string_view descr, std::optional<DType> expected) {
  if (descr.ends_with("V1") && (!expected || is_stored_as_bytes(*expected)))
    return expected && expected->is_int() ? DType::int_(8) : DType::uint(8);
  const int64_t bytes = whole_number(descr.substr(std::min<size_t>(descr.size(), 2))).value_or(0);
  bool is_ordered =
      bytes > 0 && (descr[0] == '<' || descr[0] == '=' || descr[0] == '>' || (bytes == 1 && descr[0] == '|'));
  for (auto [letter, code] : kLetters) {
    DType dtype{code, static_cast<uint8_t>(8 * bytes)};
    if (is_ordered && bytes <= 16 && descr[1] == letter && parse_dtype(to_string(dtype)) == dtype) return dtype;
  }
  throw_runtime_error(
      "{}: dtype '{}' is not supported, expected bool, an integer, a float, a complex number or text in little-endian "
      "order",
      path, descr);
}

// Puts the low byte of each element first.
void reverse_bytes(const Tensor& tensor) {
  const int64_t width = tensor.dtype().bytes();
  auto* data = static_cast<char*>(tensor.raw());
  for (int64_t i = 0; i < tensor.size(); ++i) std::reverse(data + i * width, data + (i + 1) * width);
}

// Calls visit(position in C order, position in Fortran order) for each element, in C order.
template <class Visit>
void for_each_position(const std::vector<int64_t>& shape, int64_t count, const Visit& visit) {
  std::vector<int64_t> index(shape.size()), strides(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) strides[d] = strides[d - 1] * shape[d - 1];
  int64_t from = 0;
  for (int64_t to = 0; to < count; ++to) {
    visit(to, from);
    for (size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}
Tensor in_c_order(const Tensor& tensor) {
  if (tensor.dtype().is_string()) {
    std::vector<std::string> texts(static_cast<size_t>(tensor.size()));
    for_each_position(tensor.shape(), tensor.size(),
                      [&](int64_t to, int64_t from) { texts[static_cast<size_t>(to)] = tensor.string(from); });
    return Tensor::strings(tensor.shape(), texts);
  }
  Tensor result = Tensor::empty(tensor.shape(), tensor.dtype());
  const auto width = static_cast<size_t>(tensor.dtype().bytes());
  for_each_position(tensor.shape(), tensor.size(), [&](int64_t to, int64_t from) {
    std::memcpy(static_cast<char*>(result.raw()) + static_cast<size_t>(to) * width,
                static_cast<const char*>(tensor.raw()) + static_cast<size_t>(from) * width, width);
  });
  return result;
}

// ---- Strings: '<U5' has 5 code points of 4 bytes for each, '|S5' 5 bytes, both padded with zeros.

// Returns the characters of a text in UTF-8.
std::vector<uint32_t> characters_of(std::string_view text) {
  std::vector<uint32_t> result;
  while (!text.empty()) result.push_back(vm::take_character(text));
  return result;
}
// Returns nullopt where the dtype is not one of strings.
std::optional<Tensor> read_strings(const std::string& path, const Header& header, std::string_view data) {
  std::string_view descr = *header.descr;
  bool is_wide = descr.starts_with("<U") || descr.starts_with("=U");
  if (!is_wide && !descr.starts_with("|S")) return std::nullopt;
  size_t width = 0;
  auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
  auto count = element_count(*header.shape);
  size_t bytes = is_wide ? 4 : 1;
  bool is_sound = error == std::errc() && end == descr.data() + descr.size() && count && width < data.size() + 1;
  if (!is_sound || static_cast<unsigned __int128>(*count) * width * bytes != data.size() ||
      static_cast<uint64_t>(*count) > (width == 0 ? 1 << 20 : data.size()))
    throw_runtime_error("{}: {}[{}] does not fit the {} bytes of data", path, descr, joined(*header.shape),
                        data.size());
  std::vector<std::string> texts(static_cast<size_t>(*count));
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string_view cell = data.substr(i * width * bytes, width * bytes);
    if (is_wide) {
      for (size_t k = 0; k < width; ++k) {
        uint32_t code;
        std::memcpy(&code, cell.data() + 4 * k, 4);
        if (code > 0x10ffff) throw_runtime_error("{}: {:#x} is not a character", path, code);
        vm::append_character(texts[i], code);
      }
    } else {
      texts[i] = cell;
    }
    texts[i].resize(texts[i].find_last_not_of('\0') + 1);
  }
  return Tensor::strings(*header.shape, texts);
}
// Returns the cells of '<Uwidth'.
std::string wide_cells(const Tensor& strings, size_t& width) {
  std::vector<std::vector<uint32_t>> all;
  width = 1;
  for (int64_t i = 0; i < strings.size(); ++i) {
    all.push_back(characters_of(strings.string(i)));
    width = std::max(width, all.back().size());
  }
  std::string data(all.size() * width * 4, '\0');
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) std::memcpy(data.data() + i * width * 4, all[i].data(), all[i].size() * 4);
  }
  return data;
}

[[noreturn]] void refuse_kind(const std::string& path, std::string_view content) {
  const auto found = recognized_content(content);
  if (content.empty() || !found || found->what.ends_with("(.npy)")) throw_runtime_error("{}: not a .npy file", path);
  throw_runtime_error("{}: not a .npy file: it is {}", path, std::string(found->what));
}

// Returns the header of a file that begins with this content, and where its data begin.
Header read_header(const std::string& path, std::string_view content, size_t& data_begin) {
  auto number = [&](size_t offset) { return static_cast<size_t>(static_cast<unsigned char>(content[offset])); };
  if (content.size() < 12 || !content.starts_with(kMagic)) refuse_kind(path, content);
  const size_t version = number(6);
  if (version < 1 || version > 3) throw_runtime_error("{}: .npy version {} is unknown, expected 1 to 3", path, version);
  size_t header_size = number(8) | number(9) << 8;
  size_t header_begin = 10;
  if (version > 1) {
    header_size |= number(10) << 16 | number(11) << 24;
    header_begin = 12;
  }
  if (header_size > kMaxHeader || header_size > content.size() - header_begin)
    throw_runtime_error("{}: the .npy header has {} bytes, the file {}", path, header_size, content.size());
  data_begin = header_begin + header_size;
  return HeaderParser(path, content.substr(header_begin, header_size)).parse();
}

}  // namespace

Tensor read_npy(const std::string& path, std::optional<DType> expected, NpyNotes* notes) {
  auto file = vm::MappedFile::open(path);
  const std::string_view content(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  return read_npy_bytes(content, path, expected, notes);
}

uint64_t bytes_of_npy(std::string_view begin, const std::string& name) {
  size_t data_begin = 0;
  const Header header = read_header(name, begin, data_begin);
  const std::string_view descr = *header.descr;
  const size_t digits = descr.find_first_of("0123456789");
  const auto width = whole_number(descr.substr(std::min(digits, descr.size())));
  const auto count = element_count(*header.shape);
  constexpr uint64_t kWideCharacter = 4;
  const uint64_t unit = descr.find('U') != std::string_view::npos ? kWideCharacter : 1;
  uint64_t item = 0, data = 0, bytes = 0;
  const bool is_too_large = !width || !count || __builtin_mul_overflow(static_cast<uint64_t>(*width), unit, &item) ||
                            __builtin_mul_overflow(item, static_cast<uint64_t>(*count), &data) ||
                            __builtin_add_overflow(data, data_begin, &bytes);
  if (is_too_large) throw_runtime_error("{}: {}[{}] is not a size", name, printable(descr), joined(*header.shape));
  return bytes;
}

Tensor read_npy_bytes(std::string_view content, const std::string& path, std::optional<DType> expected,
                      NpyNotes* notes) {
  auto note = [&](const char* what) {
    if (notes) notes->push_back(formatted("{}: {}", path, what));
  };
  size_t data_begin = 0;
  const Header header = read_header(path, content, data_begin);
  const bool is_fortran = *header.fortran_order && header.shape->size() > 1;
  if (is_fortran) note("Fortran order is converted to C order");
  std::string_view data = content.substr(data_begin);
  if (auto strings = read_strings(path, header, data)) return is_fortran ? in_c_order(*strings) : *strings;
  DType dtype = dtype_of(path, *header.descr, expected);
  auto bytes = tensor_bytes(*header.shape, dtype);
  if (!bytes || static_cast<uint64_t>(*bytes) != data.size())
    throw_runtime_error("{}: {}[{}] does not fit the {} bytes of data", path, to_string(dtype), joined(*header.shape),
                        data.size());
  Tensor tensor = Tensor::copy_of(*header.shape, dtype, data.data());
  if (header.descr->starts_with('>') && dtype.bytes() > 1) {
    note("numbers with the high byte first are converted");
    reverse_bytes(parts_of(tensor));
  }
  if (is_fortran) tensor = in_c_order(tensor);
  bool is_bytes = expected && is_stored_as_bytes(*expected) && dtype.is_integral() && dtype.bits == 8;
  return is_bytes ? from_bytes(path, tensor, *expected) : tensor;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  DType dtype = tensor.dtype();
  if (is_stored_as_bytes(dtype)) return write_npy(path, to_bytes(tensor));
  const auto* found = find_item(kLetters, dtype.code, &std::pair<char, DTypeCode>::second);
  if (!dtype.is_string() && (!found || dtype.bits < 8 || dtype.lanes != 1))
    throw_runtime_error("{}: .npy files have no dtype {}", path, to_string(dtype));
  size_t width = 0;
  std::string cells = dtype.is_string() ? wide_cells(tensor, width) : "";
  std::string descr = dtype.is_string()
                          ? formatted("<U{}", width)
                          : formatted("{}{}{}", dtype.bytes() == 1 ? '|' : '<', found->first, dtype.bytes());
  std::string dict = formatted("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                               joined(tensor.shape()), tensor.ndim() == 1 ? "," : "");
  // The data begins at a multiple of 64, after a newline.
  size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - 10 - dict.size() - 1, ' ').push_back('\n');
  if (dict.size() > 0xffff) throw_runtime_error("{}: {} dims are too many for a .npy file", path, tensor.ndim());
  std::string prefix(kMagic);
  prefix += {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  vm::OutputFile out(path);
  out.write(prefix + dict);
  if (dtype.is_string()) out.write(cells);
  if (!dtype.is_string()) out.write(tensor.raw(), static_cast<size_t>(tensor.bytes()));
  out.commit();
}

}  // namespace relaxc
