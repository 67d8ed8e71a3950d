#include "tools/result_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc::tools {

void ResultError::NotFinite::add(double value) {
  nans += std::isnan(value) ? 1 : 0;
  infinities += std::isinf(value) ? 1 : 0;
}

std::string ResultError::NotFinite::text() const {
  if (nans == 0 && infinities == 0) return "none";
  if (infinities == 0) return fmt::format("{} NaN", nans);
  return nans == 0 ? fmt::format("{} infinite", infinities) : fmt::format("{} NaN and {} infinite", nans, infinities);
}

void ResultError::add(const std::string& name, const Tensor& exact, const Tensor& actual) {
  if (exact.shape() != actual.shape())
    fail({}, "the result '{}' is {}, that of the original model {}", name, describe(actual), describe(exact));
  elements_ += exact.size();
  for (int64_t i = 0; i < exact.size(); ++i) {
    const double expected = exact.as_double(i), value = actual.as_double(i), difference = value - expected;
    exact_not_finite_.add(expected);
    actual_not_finite_.add(value);
    if (!std::isfinite(expected) || !std::isfinite(value)) {
      const bool is_same = expected == value || (std::isnan(expected) && std::isnan(value));
      parted_ += is_same ? 0 : 1;
      continue;
    }
    ++compared_;
    squares_ += expected * expected;
    actual_squares_ += value * value;
    products_ += expected * value;
    error_ += difference * difference;
    largest_ = std::max(largest_, std::abs(difference));
  }
  if (exact.ndim() == 2 && exact.shape()[1] > 1) add_classes(exact, actual);
}

double ResultError::relative_of_finite() const { return squares_ > 0 ? std::sqrt(error_ / squares_) : 0.0; }

double ResultError::relative() const {
  return parted_ > 0 ? std::numeric_limits<double>::infinity() : relative_of_finite();
}

// Returns "" where all elements are finite.
std::string ResultError::not_finite_text() const {
  const std::string exact = exact_not_finite_.text(), actual = actual_not_finite_.text();
  if (exact == "none" && actual == "none") return {};
  std::string text =
      fmt::format("not finite: {} in the original model, {} in this one, of {} elements", exact, actual, elements_);
  return parted_ > 0 ? text + fmt::format("; {} of them differ", parted_) : text;
}

std::string ResultError::text() const {
  const std::string not_finite = not_finite_text();
  if (compared_ == 0 && elements_ > 0)
    return "no element is finite in both models, so there is no error; " + not_finite;
  std::string text = fmt::format("relative RMS error {:.3g}", relative_of_finite());
  if (!not_finite.empty()) text += fmt::format(" of the {} elements that are finite in both", compared_);
  if (rows_ > 0) text += fmt::format(", the largest element of {} of {} rows is the same", same_, rows_);
  text += fmt::format("; largest difference {:.3g}", largest_);
  if (error_ > 0 && squares_ > 0)
    text += fmt::format(", signal to noise {:.1f} dB", -20 * std::log10(relative_of_finite()));
  const double norms = std::sqrt(squares_) * std::sqrt(actual_squares_);
  if (norms > 0) text += fmt::format(", cosine {:.6f}", products_ / norms);
  return not_finite.empty() ? text : text + "; " + not_finite;
}

void ResultError::add_classes(const Tensor& exact, const Tensor& actual) {
  const int64_t columns = exact.shape()[1];
  // Of a row with a NaN no element is the largest.
  auto largest = [&](const Tensor& tensor, int64_t row) -> std::optional<int64_t> {
    int64_t best = 0;
    for (int64_t k = 0; k < columns; ++k) {
      if (std::isnan(tensor.as_double(row * columns + k))) return std::nullopt;
    }
    for (int64_t k = 1; k < columns; ++k) {
      if (tensor.as_double(row * columns + k) > tensor.as_double(row * columns + best)) best = k;
    }
    return best;
  };
  for (int64_t row = 0; row < exact.shape()[0]; ++row) {
    const std::optional<int64_t> expected = largest(exact, row);
    same_ += expected && expected == largest(actual, row) ? 1 : 0;
  }
  rows_ += exact.shape()[0];
}

}  // namespace relaxc::tools
