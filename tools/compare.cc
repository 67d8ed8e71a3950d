#include "tools/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/joined.h"

namespace relaxc::tools {

std::string compare(const std::string& name, const Tensor& actual, const Tensor& expected, double rtol,
                    double atol) {  // NOLINT: bounded
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return fmt::format("{}: got {}, expected {}", name, describe(actual), describe(expected));
  if (actual.dtype().is_complex())
    return compare(name + " (real and imaginary parts)", parts_of(actual), parts_of(expected), rtol, atol);
  for (int64_t i = 0; actual.dtype().is_string() && i < actual.size(); ++i) {
    if (actual.string(i) != expected.string(i))
      return fmt::format("{}: element [{}] is '{}', expected '{}'", name, joined(indices_of(i, actual.shape())),
                         actual.string(i), expected.string(i));
  }
  if (actual.dtype().is_string()) return {};
  int64_t worst = -1, count = 0;
  double worst_excess = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    bool integral = actual.dtype().is_integral() || actual.dtype().is_bool();
    if (integral && actual.as_int(i) == expected.as_int(i)) continue;
    double a = actual.as_double(i), e = expected.as_double(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    double excess = std::abs(a - e) - (atol + rtol * std::abs(e));
    if (excess <= 0) continue;
    ++count;
    if (worst < 0 || !(excess <= worst_excess)) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (worst < 0) return {};
  double a = actual.as_double(worst), e = expected.as_double(worst);
  return fmt::format(
      "{}: {} of {} elements differ; worst at [{}]: got {:.9g}, expected {:.9g}, off by {:.3g} (allowed {:.3g})", name,
      count, actual.size(), joined(indices_of(worst, actual.shape())), a, e, std::abs(a - e),
      atol + rtol * std::abs(e));
}

std::string compare_values(const std::string& name, const vm::Value& actual, const vm::Value& expected, double rtol,
                           double atol) {  // NOLINT: bounded
  const auto *x = actual.get_if<Tensor>(), *y = expected.get_if<Tensor>();
  if (x && y) return compare(name, *x, *y, rtol, atol);
  const auto *items = actual.get_if<vm::Sequence>(), *others = expected.get_if<vm::Sequence>();
  if (items && others && items->items.size() == others->items.size()) {
    for (size_t i = 0; i < items->items.size(); ++i) {
      std::string difference = compare_values(fmt::format("item {} of {}", i, name), items->items.fields()[i],
                                              others->items.fields()[i], rtol, atol);
      if (!difference.empty()) return difference;
    }
    return {};
  }
  const auto *map = actual.get_if<vm::Map>(), *wanted = expected.get_if<vm::Map>();
  if (map && wanted) {
    std::string keys = compare(fmt::format("the keys of {}", name), map->keys(), wanted->keys(), 0, 0);
    return keys.empty() ? compare(fmt::format("the values of {}", name), map->values(), wanted->values(), rtol, atol)
                        : keys;
  }
  if (actual.is_none() && expected.is_none()) return {};
  return fmt::format("{}: got {}, expected {}", name, describe(actual), describe(expected));
}

double Closeness::allowed(const Tensor& tensor) const {
  const Tensor expected = parts_of(tensor);
  const DType dtype = expected.dtype();
  if (dtype.is_string() || dtype.is_bool()) return 0;
  constexpr int kByte = 8;
  if (!dtype.is_float()) return dtype.bits <= kByte ? 1 : 0;
  // Units in the last place: 2^-24 of float32 against 2^-11 and 2^-8; sums are in float32, so that few roundings add
  // up.
  constexpr double kOfFloat16 = 10, kOfShorter = 50;
  const double factor = dtype.bits >= 32 ? 1 : dtype == DType::float_(16) ? kOfFloat16 : kOfShorter;
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double value = std::abs(expected.as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return atol + factor * rtol * largest;
}

std::string compare_closely(const std::string& name, const vm::Value& actual, const vm::Value& expected,
                            const Closeness& closeness) {  // NOLINT: bounded
  if (const auto* tensor = expected.get_if<Tensor>())
    return compare_values(name, actual, expected, 0, closeness.allowed(*tensor));
  const auto *items = actual.get_if<vm::Sequence>(), *others = expected.get_if<vm::Sequence>();
  if (!items || !others || items->items.size() != others->items.size())
    return compare_values(name, actual, expected, closeness.rtol, closeness.atol);
  for (size_t i = 0; i < items->items.size(); ++i) {
    std::string difference = compare_closely(fmt::format("item {} of {}", i, name), items->items.fields()[i],
                                             others->items.fields()[i], closeness);
    if (!difference.empty()) return difference;
  }
  return {};
}

double greatest_difference(const vm::Value& actual, const vm::Value& expected) {  // NOLINT: bounded
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto *x = actual.get_if<Tensor>(), *y = expected.get_if<Tensor>();
  double greatest = 0;
  if (x && y && x->dtype() == y->dtype() && x->shape() == y->shape() && !x->dtype().is_string()) {
    const Tensor numbers = parts_of(*x), others = parts_of(*y);
    for (int64_t i = 0; i < numbers.size(); ++i) {
      const double a = numbers.as_double(i), b = others.as_double(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      greatest = std::max(greatest, std::isnan(a - b) ? kInfinity : std::abs(a - b));
    }
    return greatest;
  }
  const auto *items = actual.get_if<vm::Sequence>(), *others = expected.get_if<vm::Sequence>();
  if (!items || !others || items->items.size() != others->items.size())
    return compare_values("", actual, expected, 0, 0).empty() ? 0 : kInfinity;
  for (size_t i = 0; i < items->items.size(); ++i)
    greatest = std::max(greatest, greatest_difference(items->items.fields()[i], others->items.fields()[i]));
  return greatest;
}

// Returns the elements; nullopt where the tensors cannot be compared.
static std::optional<std::pair<std::vector<double>, std::vector<double>>> elements_of(const Tensor& actual,
                                                                                      const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.size() != expected.size() || actual.dtype().is_string())
    return std::nullopt;
  std::pair<std::vector<double>, std::vector<double>> elements;
  const Tensor numbers = parts_of(actual), others = parts_of(expected);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    elements.first.push_back(numbers.as_double(i));
    elements.second.push_back(others.as_double(i));
  }
  return elements;
}

static int64_t count_different(const std::vector<double>& actual, const std::vector<double>& expected, double allowed) {
  int64_t count = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    const bool is_close = a == e || (std::isnan(a) && std::isnan(e)) || std::abs(a - e) <= allowed;
    count += is_close ? 0 : 1;
  }
  return count;
}

std::optional<int64_t> num_different(const Tensor& actual, const Tensor& expected, const Closeness& closeness) {
  const auto elements = elements_of(actual, expected);
  if (!elements) return std::nullopt;
  return count_different(elements->first, elements->second, closeness.allowed(expected));
}

std::optional<int64_t> num_different_sorted(const Tensor& actual, const Tensor& expected, const Closeness& closeness) {
  auto elements = elements_of(actual, expected);
  if (!elements) return std::nullopt;
  auto is_less = [](double x, double y) { return std::isnan(y) ? !std::isnan(x) : x < y; };  // NaN comes last
  std::ranges::sort(elements->first, is_less);
  std::ranges::sort(elements->second, is_less);
  return count_different(elements->first, elements->second, closeness.allowed(expected));
}

bool same_numbers(const Tensor& actual, const Tensor& expected, const Closeness& closeness) {
  return num_different(actual, expected, closeness) == 0 || num_different_sorted(actual, expected, closeness) == 0;
}

}  // namespace relaxc::tools
