// JPEG, by libjpeg-turbo with its defaults: the accurate integer transform and interpolated color differences, which
// ONNX's ImageDecoder asks for.
#include <stdio.h>  // jpeglib.h needs FILE

#include <csetjmp>

#include <jpeglib.h>

#include "images/image.h"

namespace relaxc::images {

namespace {

// libjpeg reports an error by a function that must not return. Nothing with a destructor lives between the jump and
// the target.
struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg gives its address
  std::jmp_buf target;
};
[[noreturn]] void leave(j_common_ptr info) { std::longjmp(reinterpret_cast<Failure*>(info->err)->target, 1); }
void ignore_message(j_common_ptr, int) {}
boolean end_of_file(j_decompress_ptr info) { leave(reinterpret_cast<j_common_ptr>(info)); }
// Each scan of a progressive file goes through all of the image.
void limit_scans(j_common_ptr info) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) leave(info);
}

struct Decompressor {
  jpeg_decompress_struct info = {};
  Failure failure = {};
  jpeg_progress_mgr progress = {};
};

bool read_header(Decompressor& d, Bytes bytes) {
  if (setjmp(d.failure.target)) return false;
  jpeg_create_decompress(&d.info);
  d.progress.progress_monitor = limit_scans;
  d.info.progress = &d.progress;
  jpeg_mem_src(&d.info, bytes.data(), bytes.size());
  d.info.src->fill_input_buffer = end_of_file;
  jpeg_read_header(&d.info, TRUE);
  const int samples = d.info.num_components;
  d.info.out_color_space = samples == 1 ? JCS_GRAYSCALE : samples == 3 ? JCS_RGB : JCS_CMYK;
  return samples == 1 || samples == 3 || samples == 4;
}
bool read_rows(Decompressor& d, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(d.failure.target)) return false;
  jpeg_start_decompress(&d.info);
  while (d.info.output_scanline < d.info.output_height) {
    JSAMPROW row = pixels + d.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&d.info, &row, 1);
  }
  return true;
}

}  // namespace

Image decode_jpeg(Bytes bytes) {
  struct Freed : Decompressor {
    ~Freed() { jpeg_destroy_decompress(&info); }
  } d;
  d.info.err = jpeg_std_error(&d.failure.manager);
  d.failure.manager.error_exit = leave;
  d.failure.manager.emit_message = ignore_message;
  if (!read_header(d, bytes)) throw Undecodable("not a JPEG file that can be read");
  const int64_t width = d.info.image_width, height = d.info.image_height;
  const int samples = d.info.num_components;
  Image image = make_image(width, height, samples);
  if (!read_rows(d, image.pixels.data(), static_cast<size_t>(width * samples)))
    throw Undecodable("the data of the JPEG file are corrupt");
  if (samples != 4) return image;
  Image colors = make_image(width, height, 3);  // inks, stored as what they leave of the light
  for (int64_t i = 0; i < width * height; ++i) {
    uint8_t* inks = image.pixels.data() + 4 * i;
    for (int c = 0; c < 4; ++c) inks[c] = static_cast<uint8_t>(255 - inks[c]);
    write_inks(inks, colors.pixels.data() + 3 * i);
  }
  return colors;
}

}  // namespace relaxc::images
