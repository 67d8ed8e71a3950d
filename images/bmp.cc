// Windows bitmaps: headers of OS/2 and Windows, 1 to 32 bits, runs of 4 and 8 bits, masks
// (learn.microsoft.com/windows/win32/gdi/bitmap-storage).
#include <algorithm>
#include <array>
#include <bit>

#include "images/reader.h"

namespace relaxc::images {

namespace {

enum Compression : uint32_t { kPlain, kRuns8, kRuns4, kMasks, kMasksWithAlpha = 6 };

struct Header {
  int64_t width = 0, height = 0;
  bool from_top = false;
  int bits = 0;
  uint32_t compression = kPlain, colors = 0, data = 0;
  std::array<uint32_t, 3> masks = {};
  std::vector<std::array<uint8_t, 3>> palette = {};
};

Header read_header(Reader& in) {
  Header h;
  in.take(10);
  h.data = in.little(4);
  const uint32_t size = in.little(4);
  const size_t begin = in.position() - 4;
  const bool is_old = size == 12;
  if (!is_old && (size < 40 || size > 1024)) throw Undecodable("a header of another kind");
  const int wide = is_old ? 2 : 4;
  const uint32_t width = in.little(wide), height = in.little(wide);
  h.from_top = !is_old && static_cast<int32_t>(height) < 0;
  h.width = width;
  h.height = h.from_top ? -int64_t{static_cast<int32_t>(height)} : int64_t{height};
  in.little(2);
  h.bits = static_cast<int>(in.little(2));
  if (!is_old) {
    h.compression = in.little(4);
    in.take(12);
    h.colors = in.little(4);
    in.take(4);
    const bool has_masks = h.compression == kMasks || h.compression == kMasksWithAlpha;
    for (uint32_t& mask : h.masks) mask = has_masks ? in.little(4) : 0;
    // The masks lie behind a header of 40 bytes and in a longer one.
    in.move_to(std::max(begin + size, has_masks ? in.position() : size_t{0}));
  }
  if (h.bits <= 8) {
    const uint32_t most = 1U << h.bits, count = h.colors == 0 ? most : std::min(h.colors, most);
    h.palette.resize(most);
    for (uint32_t i = 0; i < count; ++i) {
      for (int c = 2; c >= 0; --c) h.palette[i][static_cast<size_t>(c)] = in.byte();
      if (!is_old) in.byte();
    }
  }
  return h;
}

void set_masks(Header& h) {
  if (h.bits == 16 && h.compression == kPlain) h.masks = {0x7c00, 0x3e0, 0x1f};
  const bool is_empty = std::ranges::count(h.masks, 0U) == 3;
  if (h.bits > 16 && is_empty) h.masks = {0xff0000, 0xff00, 0xff};
}
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int low = std::countr_zero(mask);
  const uint64_t most = mask >> low, value = (pixel & mask) >> low;
  return static_cast<uint8_t>(value * 255 / most);
}

// Returns the numbers of colors, a byte each, in the order of the file.
std::vector<uint8_t> read_runs(Reader& in, const Header& h) {
  std::vector<uint8_t> result(static_cast<size_t>(h.width * h.height));
  const bool is_narrow = h.compression == kRuns4;
  int64_t x = 0, y = 0;
  auto put = [&](uint8_t color) {
    if (x < h.width && y < h.height) result[static_cast<size_t>(y * h.width + x)] = color;
    ++x;
  };
  auto put_one_of = [&](uint8_t byte, int i) {
    put(!is_narrow ? byte : static_cast<uint8_t>(i % 2 == 0 ? byte >> 4 : byte & 15));
  };
  while (y < h.height) {
    const int count = in.byte(), value = in.byte();
    for (int i = 0; i < count; ++i) put_one_of(static_cast<uint8_t>(value), i);
    if (count > 0) continue;
    if (value == 1) break;
    if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 2) {
      x += in.byte();
      y += in.byte();
    } else {
      const int bytes = is_narrow ? (value + 1) / 2 : value;
      Bytes list = in.take(static_cast<size_t>(bytes + bytes % 2));
      for (int i = 0; i < value; ++i) put_one_of(list[static_cast<size_t>(is_narrow ? i / 2 : i)], i);
    }
  }
  return result;
}

void write_pixel(const Header& h, Bytes line, int64_t x, uint8_t* rgb) {
  auto at = [&](int64_t i) { return line[static_cast<size_t>(i)]; };
  if (h.bits <= 8) {
    const int shift = 8 - h.bits * static_cast<int>(x % (8 / h.bits) + 1);
    const auto color = static_cast<size_t>(at(x * h.bits / 8) >> shift & ((1 << h.bits) - 1));
    std::ranges::copy(h.palette[color], rgb);
    return;
  }
  uint32_t pixel = 0;
  for (int i = 0; i < h.bits / 8; ++i) pixel |= uint32_t{at(x * (h.bits / 8) + i)} << (8 * i);
  for (size_t c = 0; c < 3; ++c) rgb[c] = channel(pixel, h.masks[c]);
}

}  // namespace

Image decode_bmp(Bytes bytes) {
  Reader in(bytes);
  Header h = read_header(in);
  const bool has_runs = h.compression == kRuns8 || h.compression == kRuns4;
  const bool is_known = has_runs
                            ? h.bits == (h.compression == kRuns8 ? 8 : 4)
                            : h.compression == kPlain || h.compression == kMasks || h.compression == kMasksWithAlpha;
  constexpr int kBits[] = {1, 2, 4, 8, 16, 24, 32};
  if (!is_known || std::ranges::find(kBits, h.bits) == std::end(kBits)) throw Undecodable("a bitmap of another kind");
  check_size(h.width, h.height);
  set_masks(h);
  in.move_to(h.data);
  std::vector<uint8_t> runs;
  if (has_runs) {
    runs = read_runs(in, h);
    h.bits = 8;
    h.palette.resize(256);
  }
  const int64_t line = has_runs ? h.width : (h.width * h.bits + 31) / 32 * 4;
  Bytes lines = has_runs ? Bytes(runs) : in.take(static_cast<size_t>(line * h.height));
  Image image = make_image(h.width, h.height, 3);
  for (int64_t y = 0; y < h.height; ++y) {
    Bytes from = lines.subspan(static_cast<size_t>(y * line), static_cast<size_t>(line));
    uint8_t* row = image.row(h.from_top ? y : h.height - 1 - y);
    for (int64_t x = 0; x < h.width; ++x) write_pixel(h, from, x, row + 3 * x);
  }
  return image;
}

}  // namespace relaxc::images
