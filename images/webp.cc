// WebP, by libwebp; of an animation the first frame.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "images/image.h"

namespace relaxc::images {

namespace {

void decode_first_frame(Bytes bytes, Image& image) {
  WebPAnimDecoderOptions options;
  if (!WebPAnimDecoderOptionsInit(&options)) throw Undecodable("another version of libwebp");
  options.color_mode = MODE_RGBA;
  const WebPData data{bytes.data(), bytes.size()};
  std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(WebPAnimDecoderNew(&data, &options),
                                                                       WebPAnimDecoderDelete);
  WebPAnimInfo info;
  uint8_t* canvas = nullptr;
  int time = 0;
  if (!decoder || !WebPAnimDecoderGetInfo(decoder.get(), &info) || info.canvas_width != image.width ||
      info.canvas_height != image.height || !WebPAnimDecoderGetNext(decoder.get(), &canvas, &time))
    throw Undecodable("the data of the WebP file are corrupt");
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = canvas[i / 3 * 4 + i % 3];
}

}  // namespace

Image decode_webp(Bytes bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK)
    throw Undecodable("not a WebP file that can be read");
  Image image = make_image(features.width, features.height, 3);
  if (features.has_animation) {
    decode_first_frame(bytes, image);
  } else if (!WebPDecodeRGBInto(bytes.data(), bytes.size(), image.pixels.data(), image.pixels.size(),
                                static_cast<int>(3 * image.width))) {
    throw Undecodable("the data of the WebP file are corrupt");
  }
  return image;
}

}  // namespace relaxc::images
