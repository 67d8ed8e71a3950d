// A text of a constant table, in the table itself: a std::string_view there would cost an address, and the dynamic
// linker's work on it, besides.
#pragma once
#include <cstddef>
#include <string_view>

namespace relaxc {

template <size_t kMost>
struct ShortText {
  char chars[kMost + 1] = {};  // ends with a 0

  constexpr ShortText() = default;
  template <size_t kSize>
    requires(kSize <= kMost + 1)
  constexpr ShortText(const char (&text)[kSize]) {
    for (size_t i = 0; i < kSize; ++i) chars[i] = text[i];
  }
  constexpr std::string_view view() const { return chars; }
  constexpr operator std::string_view() const { return view(); }
  friend constexpr bool operator==(const ShortText& text, std::string_view other) { return text.view() == other; }
};

}  // namespace relaxc
