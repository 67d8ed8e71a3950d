// Reads numbers out of the bytes of a file, and throws Undecodable where they end early.
#pragma once
#include "images/image.h"

namespace relaxc::images {

class Reader {
 public:
  explicit Reader(Bytes bytes, size_t at = 0) : bytes_(bytes), at_(at) {}

  bool at_end() const { return at_ >= bytes_.size(); }
  size_t position() const { return at_; }
  void move_to(size_t at) { at_ = at; }
  uint8_t byte() {
    if (at_end()) throw Undecodable("the file ends early");
    return bytes_[at_++];
  }
  uint32_t little(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= uint32_t{byte()} << (8 * i);
    return value;
  }
  Bytes take(size_t count) {
    if (at_ > bytes_.size() || count > bytes_.size() - at_) throw Undecodable("the file ends early");
    Bytes result = bytes_.subspan(at_, count);
    at_ += count;
    return result;
  }

 private:
  Bytes bytes_;
  size_t at_;
};

}  // namespace relaxc::images
