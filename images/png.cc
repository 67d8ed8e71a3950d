// PNG, by libpng.
#include <csetjmp>
#include <cstring>

#include <png.h>

#include "images/image.h"

namespace relaxc::images {

namespace {

struct PngInput {
  Bytes bytes;
  size_t at = 0;
};
void read_some(png_structp png, png_bytep to, size_t count) {
  auto& input = *static_cast<PngInput*>(png_get_io_ptr(png));
  if (count > input.bytes.size() - input.at) png_error(png, "the file ends early");
  std::memcpy(to, input.bytes.data() + input.at, count);
  input.at += count;
}
[[noreturn]] void leave_png(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void ignore_warning(png_structp, png_const_charp) {}

// As in images/jpeg.cc, nothing with a destructor lives in functions to which libpng jumps.
bool read_png_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_user_limits(png, static_cast<png_uint_32>(kMostPixels), static_cast<png_uint_32>(kMostPixels));
  png_set_chunk_malloc_max(png, 8 << 20);
  png_set_chunk_cache_max(png, 128);
  png_read_info(png, info);
  return true;
}
bool read_png_rows(png_structp png, png_infop info, png_bytepp rows, size_t row_bytes) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_expand(png);  // palettes, and gray of few bits
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes) return false;
  png_read_image(png, rows);
  return true;
}

}  // namespace

Image decode_png(Bytes bytes) {
  struct Freed {
    ~Freed() { png_destroy_read_struct(&png, &info, nullptr); }
    png_structp png = nullptr;
    png_infop info = nullptr;
  } r;
  PngInput input{bytes};
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave_png, ignore_warning);
  if (r.png) r.info = png_create_info_struct(r.png);
  if (!r.info) throw std::bad_alloc();
  png_set_read_fn(r.png, &input, read_some);
  if (!read_png_header(r.png, r.info)) throw Undecodable("not a PNG file that can be read");
  const int64_t width = png_get_image_width(r.png, r.info), height = png_get_image_height(r.png, r.info);
  const bool has_colors = png_get_color_type(r.png, r.info) & PNG_COLOR_MASK_COLOR;
  Image image = make_image(width, height, has_colors ? 3 : 1);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(image.row(y));
  if (!read_png_rows(r.png, r.info, rows.data(), static_cast<size_t>(width * image.channels)))
    throw Undecodable("the data of the PNG file are corrupt");
  return image;
}

}  // namespace relaxc::images
