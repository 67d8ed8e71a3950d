// TIFF, by libtiff, which decompresses strips and tiles; of several images the first. Samples become colors here, so
// that an alpha channel is left out; what is rarer than gray, palettes, RGB and CMYK goes through libtiff's conversion.
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "images/image.h"

namespace relaxc::images {

namespace {

// ---- The file in memory

struct TiffInput {
  Bytes bytes;
  uint64_t at = 0;
};
TiffInput& input_of(thandle_t handle) { return *static_cast<TiffInput*>(handle); }
tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t count) {
  TiffInput& input = input_of(handle);
  const uint64_t left = input.at < input.bytes.size() ? input.bytes.size() - input.at : 0;
  const uint64_t taken = std::min<uint64_t>(static_cast<uint64_t>(std::max<tmsize_t>(count, 0)), left);
  if (taken > 0) std::memcpy(to, input.bytes.data() + input.at, taken);
  input.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffInput& input = input_of(handle);
  input.at = offset + (whence == SEEK_CUR ? input.at : whence == SEEK_END ? input.bytes.size() : 0);
  return input.at;
}
int close_nothing(thandle_t) { return 0; }
toff_t size_of_tiff(thandle_t handle) { return input_of(handle).bytes.size(); }
int ignore_text(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, TiffCloser>;

constexpr int64_t kMostChunkBytes = int64_t{3} << 29;  // a strip may be all of an image with 16 bits

Tiff open_tiff(TiffInput& input) {
  std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostChunkBytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), ignore_text, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore_text, nullptr);
  Tiff tiff(TIFFClientOpenExt("image", "rm", &input, read_tiff, write_nothing, seek_tiff, close_nothing, size_of_tiff,
                              nullptr, nullptr, options.get()));
  if (!tiff) throw Undecodable("not a TIFF file that can be read");
  return tiff;
}

// ---- What the file says of its image

struct Layout {
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, photometric = 0, planar = 1, format = 1, orientation = 1, compression = 1;
  bool is_tiled = false;
  uint32_t chunk_width = 0, chunk_height = 0;

  bool is_palette() const { return photometric == PHOTOMETRIC_PALETTE; }
  // Samples of a pixel that make its color; 0: another kind of image.
  int colors() const {
    const bool is_gray = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    const bool is_converted = photometric == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG && planar == 1;
    if (is_gray || is_palette()) return 1;
    if (photometric == PHOTOMETRIC_RGB || is_converted) return 3;
    return photometric == PHOTOMETRIC_SEPARATED ? 4 : 0;
  }
  // Whether the samples become colors here.
  bool is_plain() const {
    const bool known_bits = bits == 1 || bits == 2 || bits == 4 || bits == 8 || (bits == 16 && !is_palette());
    return known_bits && format == SAMPLEFORMAT_UINT && colors() > 0 && samples >= colors();
  }
};

Layout layout_of(TIFF* tiff) {
  Layout l;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &l.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &l.height);
  check_size(l.width, l.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &l.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &l.samples);
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &l.photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &l.planar);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &l.format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &l.orientation);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &l.compression);
  l.is_tiled = TIFFIsTiled(tiff);
  l.chunk_width = l.width;
  l.chunk_height = l.height;
  if (l.is_tiled) {
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &l.chunk_width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &l.chunk_height);
  } else {
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &l.chunk_height);
    l.chunk_height = std::min(l.chunk_height, l.height);
  }
  if (l.chunk_width == 0 || l.chunk_height == 0) throw Undecodable("tiles without pixels");
  if (l.photometric == PHOTOMETRIC_YCBCR && l.colors() == 3)
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  return l;
}

// ---- Samples

uint8_t sample_at(const uint8_t* line, int64_t index, int bits) {
  if (bits == 8) return line[index];
  if (bits == 16) {
    uint16_t value = 0;
    std::memcpy(&value, line + 2 * index, 2);
    return static_cast<uint8_t>(value >> 8);
  }
  const int64_t bit = index * bits;
  return static_cast<uint8_t>(line[bit / 8] >> (8 - bits - bit % 8) & ((1 << bits) - 1));
}

// Reads the samples that make the colors, a byte each; those of few bits are not scaled.
std::vector<uint8_t> read_colors(TIFF* tiff, const Layout& l) {
  const int colors = l.colors(), planes = l.planar == PLANARCONFIG_SEPARATE ? colors : 1;
  const int in_chunk = planes > 1 ? 1 : l.samples, taken = planes > 1 ? 1 : colors;
  const int64_t bytes = l.is_tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
  const int64_t line = (int64_t{l.chunk_width} * in_chunk * l.bits + 7) / 8;
  if (bytes < 1 || bytes > kMostChunkBytes || line * l.chunk_height > bytes)
    throw Undecodable("tiles beyond the limit");
  std::vector<uint8_t> chunk(static_cast<size_t>(bytes)),
      result(size_t{l.width} * l.height * static_cast<size_t>(colors));
  auto copy_chunk = [&](int64_t x0, int64_t y0, int plane) {
    for (int64_t y = 0; y < std::min<int64_t>(l.chunk_height, l.height - y0); ++y) {
      const uint8_t* from = chunk.data() + y * line;
      uint8_t* to = result.data() + ((y0 + y) * l.width + x0) * colors + plane;
      for (int64_t x = 0; x < std::min<int64_t>(l.chunk_width, l.width - x0); ++x) {
        for (int c = 0; c < taken; ++c) to[x * colors + c] = sample_at(from, x * in_chunk + c, l.bits);
      }
    }
  };
  for (int plane = 0; plane < planes; ++plane) {
    for (uint32_t y = 0; y < l.height; y += l.chunk_height) {
      for (uint32_t x = 0; x < l.width; x += l.chunk_width) {
        const auto sample = static_cast<uint16_t>(plane);
        const uint32_t number = l.is_tiled ? TIFFComputeTile(tiff, x, y, 0, sample) : TIFFComputeStrip(tiff, y, sample);
        const int64_t rows = l.is_tiled ? l.chunk_height : std::min(l.chunk_height, l.height - y);
        const tmsize_t got = l.is_tiled ? TIFFReadEncodedTile(tiff, number, chunk.data(), bytes)
                                        : TIFFReadEncodedStrip(tiff, number, chunk.data(), bytes);
        if (got < rows * line) throw Undecodable("the data of the TIFF file are corrupt");
        copy_chunk(x, y, plane);
      }
    }
  }
  return result;
}

Image colored(TIFF* tiff, const Layout& l, const std::vector<uint8_t>& samples) {
  const bool has_palette = l.is_palette();
  uint16_t* palette[3] = {};
  if (has_palette && !TIFFGetField(tiff, TIFFTAG_COLORMAP, &palette[0], &palette[1], &palette[2]))
    throw Undecodable("a palette is missing");
  const int colors = l.colors(), most = l.bits < 8 ? (1 << l.bits) - 1 : 255;
  Image image = make_image(l.width, l.height, colors == 1 && !has_palette ? 1 : 3);
  for (int64_t i = 0; i < image.width * image.height; ++i) {
    const uint8_t* from = samples.data() + i * colors;
    uint8_t* to = image.pixels.data() + i * image.channels;
    uint8_t scaled[4] = {};
    for (int c = 0; c < colors; ++c) scaled[c] = static_cast<uint8_t>(from[c] * 255 / most);
    if (has_palette) {
      for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(palette[c][*from] >> 8);
    } else if (colors == 4) {
      write_inks(scaled, to);
    } else if (l.photometric == PHOTOMETRIC_MINISWHITE) {
      *to = static_cast<uint8_t>(255 - *scaled);
    } else {
      std::copy_n(scaled, colors, to);
    }
  }
  return image;
}

// Lets libtiff make the colors.
Image converted(TIFF* tiff, const Layout& l) {
  char text[1024];
  if (!TIFFRGBAImageOK(tiff, text)) throw Undecodable("a TIFF file of another kind");
  std::vector<uint32_t> pixels(size_t{l.width} * l.height);
  if (!TIFFReadRGBAImageOriented(tiff, l.width, l.height, pixels.data(), l.orientation, 1))
    throw Undecodable("the data of the TIFF file are corrupt");
  Image image = make_image(l.width, l.height, 3);
  for (size_t i = 0; i < pixels.size(); ++i) {
    image.pixels[3 * i] = static_cast<uint8_t>(TIFFGetR(pixels[i]));
    image.pixels[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(pixels[i]));
    image.pixels[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(pixels[i]));
  }
  return image;
}

// Turns the image so that its first row is the top and its first column is at the left.
Image upright(const Image& image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool is_turned = orientation >= 5;
  const bool flips_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image result =
      make_image(is_turned ? image.height : image.width, is_turned ? image.width : image.height, image.channels);
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x) {
      int64_t from_x = is_turned ? y : x, from_y = is_turned ? x : y;
      if (flips_x) from_x = image.width - 1 - from_x;
      if (flips_y) from_y = image.height - 1 - from_y;
      std::copy_n(image.row(from_y) + from_x * image.channels, image.channels, result.row(y) + x * image.channels);
    }
  }
  return result;
}

}  // namespace

Image decode_tiff(Bytes bytes) {
  TiffInput input{bytes};
  Tiff tiff = open_tiff(input);
  const Layout layout = layout_of(tiff.get());
  Image image =
      layout.is_plain() ? colored(tiff.get(), layout, read_colors(tiff.get(), layout)) : converted(tiff.get(), layout);
  return upright(image, layout.orientation);
}

}  // namespace relaxc::images
