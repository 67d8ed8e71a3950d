// The library's table of functions (vm/kernel_table.h): each takes a vector of bytes and gives the image in them, uint8
// [height, width, channels]. Bytes that are not an image give one of no pixels, as ONNX's ImageDecoder says.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "images/image.h"
#include "vm/dlpack.h"
#include "vm/kernel_table.h"

namespace relaxc::images {

namespace {

struct Format {
  std::string_view name, mark;  // bytes at the beginning, where ? is any
  Image (*decode)(Bytes);
};
using namespace std::string_view_literals;
constexpr Format kFormats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n"sv, decode_png},
    {"JPEG", "\xff\xd8\xff"sv, decode_jpeg},
    {"BMP", "BM"sv, decode_bmp},
    {"WebP", "RIFF????WEBP"sv, decode_webp},
    {"TIFF, little-endian", "II*\0"sv, decode_tiff},
    {"TIFF, big-endian", "MM\0*"sv, decode_tiff},
    {"BigTIFF, little-endian", "II+\0"sv, decode_tiff},
    {"BigTIFF, big-endian", "MM\0+"sv, decode_tiff},
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n"sv, decode_jpeg2000},
    {"JPEG 2000, a codestream", "\xff\x4f\xff\x51"sv, decode_jpeg2000},
    {"PBM, text", "P1"sv, decode_pnm},
    {"PGM, text", "P2"sv, decode_pnm},
    {"PPM, text", "P3"sv, decode_pnm},
    {"PBM", "P4"sv, decode_pnm},
    {"PGM", "P5"sv, decode_pnm},
    {"PPM", "P6"sv, decode_pnm},
};

Image decode(Bytes bytes) {
  for (const Format& format : kFormats) {
    auto fits = [&](size_t i) { return format.mark[i] == '?' || static_cast<uint8_t>(format.mark[i]) == bytes[i]; };
    bool is_one = bytes.size() >= format.mark.size();
    for (size_t i = 0; is_one && i < format.mark.size(); ++i) is_one = fits(i);
    if (is_one) return format.decode(bytes);
  }
  throw Undecodable("no known format");
}

enum class Order { kRgb, kBgr, kGray };

// Writes the pixels in the order. Gray is the brightness of ITU-R 601 as Pillow rounds it, which ONNX's reference uses.
void write_pixels(const Image& image, Order order, uint8_t* to) {
  const int64_t count = image.width * image.height;
  const uint8_t* from = image.pixels.data();
  for (int64_t i = 0; i < count; ++i, from += image.channels) {
    const uint8_t red = from[0], green = from[image.channels == 3 ? 1 : 0], blue = from[image.channels == 3 ? 2 : 0];
    if (order == Order::kGray) {
      *to++ = static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
      continue;
    }
    *to++ = order == Order::kRgb ? red : blue;
    *to++ = green;
    *to++ = order == Order::kRgb ? blue : red;
  }
}

struct Result {
  DLManagedTensor tensor = {};
  int64_t shape[3] = {};
  std::vector<uint8_t> pixels = {};
};

DLManagedTensor* decoded(Bytes bytes, Order order) {
  auto result = std::make_unique<Result>();
  Image image;
  try {
    image = decode(bytes);
  } catch (const Undecodable&) {
    image = {};
  }
  const int64_t channels = order == Order::kGray ? 1 : 3;
  result->pixels.resize(static_cast<size_t>(image.width * image.height * channels));
  write_pixels(image, order, result->pixels.data());
  result->shape[0] = image.height;
  result->shape[1] = image.width;
  result->shape[2] = channels;
  DLTensor& tensor = result->tensor.dl_tensor;
  tensor.data = result->pixels.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 3;
  tensor.dtype = {kDLUInt, 8, 1};
  tensor.shape = result->shape;
  result->tensor.manager_ctx = result.get();
  result->tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Result*>(self->manager_ctx); };
  return &result.release()->tensor;
}

template <Order kOrder>
int32_t decode_image(const DLTensor* const* tensors, int32_t count, DLManagedTensor** result,
                     relaxc_kernel_context* context) {
  const bool is_vector =
      count == 1 && result && tensors[0]->ndim == 1 && tensors[0]->dtype.code == kDLUInt && tensors[0]->dtype.bits == 8;
  context->error = "expected a vector of uint8";
  if (!is_vector) return 1;
  const auto* data = static_cast<const uint8_t*>(tensors[0]->data) + tensors[0]->byte_offset;
  context->error = "there is not enough memory for the image";
  try {
    *result = decoded({data, static_cast<size_t>(tensors[0]->shape[0])}, kOrder);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  context->error = nullptr;
  return 0;
}

constexpr relaxc_kernel_row kRows[] = {
    {"relaxc.image.decode_rgb", nullptr, decode_image<Order::kRgb>, nullptr},
    {"relaxc.image.decode_bgr", nullptr, decode_image<Order::kBgr>, nullptr},
    {"relaxc.image.decode_grayscale", nullptr, decode_image<Order::kGray>, nullptr},
};

}  // namespace

}  // namespace relaxc::images

extern "C" __attribute__((visibility("default"))) const relaxc_kernel_table relaxc_kernels = {
    RELAXC_KERNEL_TABLE_VERSION, std::size(relaxc::images::kRows), relaxc::images::kRows};
