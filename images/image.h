// Images as the decoders give them. The decoders are a library of their own, librelaxc_images.so, so that the runtime
// does not need the libraries of the formats; programs that decode images load it (images/library.cc).
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace relaxc::images {

using Bytes = std::span<const uint8_t>;

// Rows from the top, with 1 channel (gray) or 3 (red, green, blue).
struct Image {
  int64_t width = 0, height = 0;
  int channels = 0;
  std::vector<uint8_t> pixels = {};

  uint8_t* row(int64_t y) { return pixels.data() + y * width * channels; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * channels; }
};

// Is thrown for bytes that are not an image of the format, for images of a kind that is not supported, and for those
// beyond the limits.
struct Undecodable : std::runtime_error {
  using runtime_error::runtime_error;
};

// A few bytes of a hostile file may claim any size. This is the limit of Pillow, too; fuzzing has a lower one.
#ifndef RELAXC_MOST_PIXELS
#define RELAXC_MOST_PIXELS 178956970
#endif
inline constexpr int64_t kMostPixels = RELAXC_MOST_PIXELS;
// Return an image of zeros, and throw Undecodable for a size beyond the limit.
void check_size(int64_t width, int64_t height);
Image make_image(int64_t width, int64_t height, int channels);

// The part of v / 255 that x is: x * v / 255, rounded.
inline uint8_t scaled_by(int x, int v) {
  int product = x * v + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}
// Writes the red, green and blue of a color of inks, where 255 is all of an ink.
void write_inks(const uint8_t inks[4], uint8_t* rgb);
// Writes those of brightness and two color differences (JFIF).
void write_ycc(int y, int cb, int cr, uint8_t* rgb);

// Return the first image in the bytes. Samples of more than 8 bits lose the lower ones; an alpha channel is left out.
Image decode_bmp(Bytes bytes);
Image decode_jpeg(Bytes bytes);
Image decode_jpeg2000(Bytes bytes);
Image decode_png(Bytes bytes);
Image decode_pnm(Bytes bytes);
Image decode_tiff(Bytes bytes);
Image decode_webp(Bytes bytes);

}  // namespace relaxc::images
