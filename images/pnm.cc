// Portable bitmaps, graymaps and pixmaps, P1 to P6 (the manual pages pbm(5), pgm(5) and ppm(5)).
#include <algorithm>

#include "images/reader.h"

namespace relaxc::images {

namespace {

bool is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Skips blanks and comments, which reach to the end of their line.
void skip_blanks(Reader& in) {
  for (bool in_comment = false; !in.at_end();) {
    const size_t before = in.position();
    uint8_t c = in.byte();
    if (in_comment) {
      in_comment = c != '\n' && c != '\r';
    } else if (c == '#') {
      in_comment = true;
    } else if (!is_blank(c)) {
      return in.move_to(before);
    }
  }
}
int64_t read_number(Reader& in) {
  skip_blanks(in);
  int64_t value = 0, digits = 0;
  for (; !in.at_end(); ++digits) {
    const size_t before = in.position();
    uint8_t c = in.byte();
    if (c < '0' || c > '9') {
      in.move_to(before);
      break;
    }
    value = value * 10 + (c - '0');
    if (value > kMostPixels) throw Undecodable("a number is too large");
  }
  if (digits == 0) throw Undecodable("a number is missing");
  return value;
}

void read_bits(Reader& in, bool is_text, Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.row(y);
    Bytes packed = is_text ? Bytes() : in.take(static_cast<size_t>((image.width + 7) / 8));
    for (int64_t x = 0; x < image.width; ++x) {
      if (is_text) skip_blanks(in);
      int bit = is_text ? in.byte() - '0' : packed[static_cast<size_t>(x / 8)] >> (7 - x % 8) & 1;
      if (bit != 0 && bit != 1) throw Undecodable("a bit is neither 0 nor 1");
      row[x] = bit ? 0 : 255;  // 1 is black
    }
  }
}
// Rounds to the nearest number, and to the even one of two.
int64_t rounded_quotient(int64_t a, int64_t b) {
  const int64_t whole = a / b, twice = 2 * (a % b);
  return whole + (twice > b || (twice == b && whole % 2 == 1) ? 1 : 0);
}
void read_samples(Reader& in, bool is_text, Image& image) {
  const int64_t most = read_number(in);
  if (most < 1 || most > 65535) throw Undecodable("the largest sample is out of range");
  if (!is_text && !is_blank(in.byte())) throw Undecodable("a blank is missing");
  const bool is_wide = most > 255;
  for (uint8_t& pixel : image.pixels) {
    int64_t value = is_text ? read_number(in) : in.byte();
    if (!is_text && is_wide) value = value << 8 | in.byte();
    if (value > most && is_text) throw Undecodable("a sample is out of range");
    pixel = static_cast<uint8_t>(std::min<int64_t>(rounded_quotient(value * 255, most), 255));
  }
}

}  // namespace

Image decode_pnm(Bytes bytes) {
  Reader in(bytes, 1);
  const int kind = in.byte() - '0';
  const bool is_text = kind <= 3;
  int64_t width = read_number(in), height = read_number(in);
  // Each sample takes at least a bit, so that the size of the file bounds that of the image.
  check_size(width, height);
  if (width * height / 8 > static_cast<int64_t>(bytes.size())) throw Undecodable("the file ends early");
  Image image = make_image(width, height, kind % 3 == 0 ? 3 : 1);
  if (kind % 3 != 1) {
    read_samples(in, is_text, image);
    return image;
  }
  if (!is_text && !is_blank(in.byte())) throw Undecodable("a blank is missing");
  read_bits(in, is_text, image);
  return image;
}

}  // namespace relaxc::images
