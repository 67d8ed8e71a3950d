// JPEG 2000, files (JP2) and codestreams, by OpenJPEG.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "images/image.h"

namespace relaxc::images {

namespace {

struct StreamInput {
  Bytes bytes;
  size_t at = 0;
};
OPJ_SIZE_T read_stream(void* to, OPJ_SIZE_T count, void* data) {
  auto& input = *static_cast<StreamInput*>(data);
  const size_t left = input.bytes.size() - input.at, taken = std::min<size_t>(count, left);
  if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, input.bytes.data() + input.at, taken);
  input.at += taken;
  return taken;
}
OPJ_OFF_T skip_stream(OPJ_OFF_T count, void* data) {
  auto& input = *static_cast<StreamInput*>(data);
  const auto left = static_cast<OPJ_OFF_T>(input.bytes.size() - input.at);
  if (count < 0 || count > left) return -1;
  input.at += static_cast<size_t>(count);
  return count;
}
OPJ_BOOL seek_stream(OPJ_OFF_T to, void* data) {
  auto& input = *static_cast<StreamInput*>(data);
  if (to < 0 || static_cast<size_t>(to) > input.bytes.size()) return OPJ_FALSE;
  input.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

// The samples of a component, which may have fewer than the image.
struct Plane {
  const opj_image_comp_t& component;

  uint8_t at(int64_t x, int64_t y) const {
    const int64_t column = std::min<int64_t>(x / component.dx, component.w - 1);
    const int64_t row = std::min<int64_t>(y / component.dy, component.h - 1);
    int64_t value = component.data[row * component.w + column];
    const int bits = static_cast<int>(component.prec);
    if (component.sgnd) value += int64_t{1} << (bits - 1);
    value = bits > 8 ? value >> (bits - 8) : value << (8 - bits);
    return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
  }
};

template <class T, void (*kFree)(T*)>
struct FreedBy {
  void operator()(T* pointer) const { kFree(pointer); }
};
using Stream = std::unique_ptr<opj_stream_t, FreedBy<opj_stream_t, opj_stream_destroy>>;
using Codec = std::unique_ptr<opj_codec_t, FreedBy<opj_codec_t, opj_destroy_codec>>;
using Decoded = std::unique_ptr<opj_image_t, FreedBy<opj_image_t, opj_image_destroy>>;

Decoded decode_all(StreamInput& input) {
  const bool is_codestream = input.bytes[0] == 0xff;
  Codec codec(opj_create_decompress(is_codestream ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  Stream stream(opj_stream_create(OPJ_J2K_STREAM_CHUNK_SIZE, OPJ_TRUE));
  if (!codec || !stream) throw std::bad_alloc();
  opj_stream_set_user_data(stream.get(), &input, nullptr);
  opj_stream_set_user_data_length(stream.get(), input.bytes.size());
  opj_stream_set_read_function(stream.get(), read_stream);
  opj_stream_set_skip_function(stream.get(), skip_stream);
  opj_stream_set_seek_function(stream.get(), seek_stream);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* header = nullptr;
  const bool has_header =
      opj_setup_decoder(codec.get(), &parameters) && opj_read_header(stream.get(), codec.get(), &header);
  Decoded image(header);
  if (!has_header) throw Undecodable("not a JPEG 2000 file that can be read");
  check_size(int64_t{image->x1} - image->x0, int64_t{image->y1} - image->y0);
  if (!opj_decode(codec.get(), stream.get(), image.get()))
    throw Undecodable("the data of the JPEG 2000 file are corrupt");
  return image;
}

}  // namespace

Image decode_jpeg2000(Bytes bytes) {
  StreamInput input{bytes};
  Decoded decoded = decode_all(input);
  const std::span<const opj_image_comp_t> components(decoded->comps, decoded->numcomps);
  const bool has_data = std::ranges::all_of(components, [](const opj_image_comp_t& c) {
    return c.data && c.w > 0 && c.h > 0 && c.dx > 0 && c.dy > 0 && c.prec >= 1 && c.prec <= 31;
  });
  if (!has_data || components.empty()) throw Undecodable("a component without data");
  const int channels = components.size() < 3 ? 1 : 3;
  Image image = make_image(int64_t{decoded->x1} - decoded->x0, int64_t{decoded->y1} - decoded->y0, channels);
  const bool has_inks = decoded->color_space == OPJ_CLRSPC_CMYK && components.size() >= 4;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      uint8_t* pixel = image.row(y) + x * channels;
      uint8_t samples[4] = {};
      for (int c = 0; c < (has_inks ? 4 : channels); ++c)
        samples[c] = Plane{components[static_cast<size_t>(c)]}.at(x, y);
      if (has_inks) {
        write_inks(samples, pixel);
      } else if (decoded->color_space == OPJ_CLRSPC_SYCC && channels == 3) {
        write_ycc(samples[0], samples[1], samples[2], pixel);
      } else {
        std::copy_n(samples, channels, pixel);
      }
    }
  }
  return image;
}

}  // namespace relaxc::images
