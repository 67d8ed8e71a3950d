// Complex numbers as text, in Python's form.
#pragma once
#include <fmt/format.h>

#include <complex>
#include <optional>
#include <string>

#include "vm/tensor.h"

namespace relaxc::tools {

// Reads "1.5-2j", "2j" or "1.5".
std::optional<std::complex<double>> as_complex(const std::string& text);

// Returns "1.5-2j", where `text_of` gives the text of a part.
template <class F>
std::string complex_text(const Tensor& tensor, int64_t i, F text_of) {
  const Tensor parts = parts_of(tensor);
  const std::string imaginary = text_of(parts, 2 * i + 1);
  return fmt::format("{}{}{}j", text_of(parts, 2 * i), imaginary.starts_with('-') ? "" : "+", imaginary);
}

}  // namespace relaxc::tools
