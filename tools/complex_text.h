// Numbers as text, complex ones in Python's form.
#pragma once
#include <fmt/format.h>

#include <complex>
#include <optional>
#include <string>

#include "vm/tensor.h"

namespace relaxc::tools {

// Reads the number at the place, which moves behind it. Returns nullopt where there is none, or where it is beyond the
// range of doubles.
std::optional<double> leading_number(const char*& at);
// Reads "1.5-2j", "2j" or "1.5", also as NumPy and expressions of Python have them: "(1.+2.J)", "2j + 1", "-j".
// Sets whether a part is beyond the range of doubles, which the number then has as an infinity.
std::optional<std::complex<double>> as_complex(std::string_view written, bool& is_beyond);
// Returns whether a complex number in parentheses, as NumPy prints it, is at the beginning of the text.
bool begins_with_complex(std::string_view text);

// Returns "1.5-2j", where `text_of` gives the text of a part.
template <class F>
std::string complex_text(const Tensor& tensor, int64_t i, F text_of) {
  const Tensor parts = parts_of(tensor);
  const std::string imaginary = text_of(parts, 2 * i + 1);
  return fmt::format("{}{}{}j", text_of(parts, 2 * i), imaginary.starts_with('-') ? "" : "+", imaginary);
}

}  // namespace relaxc::tools
