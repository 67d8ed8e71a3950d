#include "images/image.h"

#include <algorithm>
#include <cmath>

namespace relaxc::images {

void check_size(int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMostPixels || height > kMostPixels || width * height > kMostPixels)
    throw Undecodable("a size beyond the limit");
}

Image make_image(int64_t width, int64_t height, int channels) {
  check_size(width, height);
  Image image{width, height, channels};
  image.pixels.resize(static_cast<size_t>(width * height * channels));
  return image;
}

void write_inks(const uint8_t inks[4], uint8_t* rgb) {
  int light = 255 - inks[3];
  for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(std::max(light - scaled_by(inks[c], light), 0));
}

void write_ycc(int y, int cb, int cr, uint8_t* rgb) {
  auto clamped = [](double value) { return static_cast<uint8_t>(std::clamp<long>(std::lround(value), 0, 255)); };
  rgb[0] = clamped(y + 1.402 * (cr - 128));
  rgb[1] = clamped(y - 0.344136 * (cb - 128) - 0.714136 * (cr - 128));
  rgb[2] = clamped(y + 1.772 * (cb - 128));
}

}  // namespace relaxc::images
