// The format is that of PKWARE's APPNOTE 6.3: the directory is at the end of the file, before a record that says where.
#include "tools/npz.h"

#ifndef RELAXC_WITHOUT_ZLIB
#include <fmt/format.h>

#include <zlib.h>
#endif

#include <cstring>
#include <optional>

#include "support/diagnostic.h"
#include "support/printable.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/npy.h"

namespace relaxc::tools {

#ifdef RELAXC_WITHOUT_ZLIB

std::vector<NpzMember> read_npz(const std::string& path) {
  fail({}, "{}: this program was built without zlib and does not read .npz; give .npy files", path);
}

#else

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kEnd64Locator = 0x07064b50;
constexpr uint32_t kIn64 = 0xffffffff;  // the number is in a field of 64 bits elsewhere

class ZipReader {
 public:
  ZipReader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  std::vector<NpzMember> members() const {
    std::vector<NpzMember> result;
    uint64_t at = 0, count = 0;
    find_directory(at, count);
    for (uint64_t i = 0; i < count; ++i) {
      if (number<uint32_t>(at) != kDirectoryEntry) damaged();
      const uint64_t name_size = number<uint16_t>(at + 28), extra_size = number<uint16_t>(at + 30);
      Place place{number<uint32_t>(at + 42), number<uint32_t>(at + 20), number<uint32_t>(at + 24),
                  number<uint32_t>(at + 16), number<uint16_t>(at + 10)};
      if ((number<uint16_t>(at + 8) & 1) != 0) throw_runtime_error("{}: encrypted archives are not supported", path_);
      std::string name(part(at + 46, name_size));
      read_64(at + 46 + name_size, extra_size, place);
      at += 46 + name_size + extra_size + number<uint16_t>(at + 32);
      if (name.ends_with('/')) continue;
      if (!name.ends_with(".npy")) throw_runtime_error("{}: '{}' is not a .npy file", path_, printable(name));
      std::string content = content_of(place, name);
      result.push_back({name.substr(0, name.size() - 4), std::move(content)});
    }
    return result;
  }

 private:
  struct Place {
    uint64_t offset, compressed, size;
    uint32_t crc;
    uint16_t method;
  };

  [[noreturn]] void damaged() const { throw_runtime_error("{}: the .npz archive is damaged", path_); }
  std::string_view part(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged();
    return bytes_.substr(at, size);
  }
  template <class Number>
  Number number(uint64_t at) const {
    Number value;
    std::memcpy(&value, part(at, sizeof value).data(), sizeof value);
    return value;
  }

  void find_directory(uint64_t& at, uint64_t& count) const {
    constexpr uint64_t kEndBytes = 22, kLongestComment = 0xffff, kLocatorBytes = 20;
    for (uint64_t back = kEndBytes; back <= std::min<uint64_t>(bytes_.size(), kEndBytes + kLongestComment); ++back) {
      const uint64_t end = bytes_.size() - back;
      if (number<uint32_t>(end) != kEnd) continue;
      count = number<uint16_t>(end + 10);
      at = number<uint32_t>(end + 16);
      const bool has_64 = end >= kLocatorBytes && number<uint32_t>(end - kLocatorBytes) == kEnd64Locator;
      if (!has_64) return;
      const auto end_64 = number<uint64_t>(end - kLocatorBytes + 8);
      if (number<uint32_t>(end_64) != kEnd64) damaged();
      count = number<uint64_t>(end_64 + 32);
      at = number<uint64_t>(end_64 + 48);
      return;
    }
    throw_runtime_error("{}: not a .npz archive", path_);
  }

  // Reads the sizes and the offset that do not fit 32 bits: they follow each other in a field of the entry's extra
  // ones.
  void read_64(uint64_t at, uint64_t size, Place& place) const {
    for (const uint64_t end = at + size; at + 4 <= end;) {
      const auto id = number<uint16_t>(at);
      const uint64_t length = number<uint16_t>(at + 2);
      uint64_t field = at + 4;
      at = field + length;
      if (id != 1) continue;
      for (uint64_t* value : {&place.size, &place.compressed, &place.offset}) {
        if (*value != kIn64) continue;
        *value = number<uint64_t>(field);
        field += sizeof *value;
      }
    }
  }

  std::string content_of(const Place& place, const std::string& name) const {
    if (number<uint32_t>(place.offset) != kLocalHeader) damaged();
    const uint64_t begin =
        place.offset + 30 + number<uint16_t>(place.offset + 26) + number<uint16_t>(place.offset + 28);
    const std::string_view data = part(begin, place.compressed);
    constexpr uint16_t kStored = 0, kDeflated = 8;
    if (place.method != kStored && place.method != kDeflated)
      throw_runtime_error("{}: '{}' is compressed by method {}, expected none or deflate", path_, printable(name),
                          place.method);
    if (place.method == kStored && place.compressed != place.size) damaged();
    std::string content = place.method == kStored ? std::string(data) : inflated(data, place.size, name);
    uLong crc = crc32(0, nullptr, 0);
    constexpr size_t kPiece = size_t{1} << 30;
    for (size_t at = 0; at < content.size(); at += kPiece)
      crc = crc32(crc, reinterpret_cast<const Bytef*>(content.data() + at),
                  static_cast<uInt>(std::min(kPiece, content.size() - at)));
    if (crc != place.crc) damaged();
    return content;
  }

  // The result grows with the data, since a damaged file may claim any size, and its first piece has to be the header
  // of a tensor of the size that the directory states: a small file may become any number of zeros.
  std::string inflated(std::string_view data, uint64_t size, const std::string& name) const {
    constexpr size_t kPiece = size_t{1} << 20;
    static_assert(kPiece >= kNpyHeaderBytes);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    std::string result;
    std::optional<uint64_t> stated;
    int status = Z_OK;
    while (status == Z_OK && result.size() <= size) {
      if (stream.avail_in == 0) {
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
        stream.avail_in = static_cast<uInt>(std::min(kPiece, data.size()));
        data.remove_prefix(stream.avail_in);
      }
      const size_t before = result.size();
      result.resize(before + kPiece);
      stream.next_out = reinterpret_cast<Bytef*>(result.data() + before);
      stream.avail_out = kPiece;
      status = inflate(&stream, Z_NO_FLUSH);
      result.resize(before + kPiece - stream.avail_out);
      if (before == 0) stated = size_in_header(result, name);
      if (stated && *stated != size) break;
    }
    inflateEnd(&stream);
    if (stated && *stated != size)
      throw_runtime_error("{}: '{}' has {} bytes, and its header says {}", path_, printable(name), size, *stated);
    if (status != Z_STREAM_END || result.size() != size) damaged();
    return result;
  }

  // Returns the bytes of a member by its header; nullopt where that is damaged, which whoever reads the member says.
  std::optional<uint64_t> size_in_header(std::string_view begin, const std::string& name) const {
    try {
      return bytes_of_npy(begin, fmt::format("{}: {}", path_, printable(name)));
    } catch (const RuntimeError&) {
      return std::nullopt;
    }
  }

  const std::string& path_;
  std::string_view bytes_;
};

}  // namespace

std::vector<NpzMember> read_npz(const std::string& path) {
  return with_compile_errors({}, [&] {
    const auto file = vm::MappedFile::open(path);
    const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    return ZipReader(path, bytes).members();
  });
}

#endif

}  // namespace relaxc::tools
