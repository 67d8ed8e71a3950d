#include "tools/compare.h"
#include "support/joined.h"

#include <cmath>

namespace relaxc::tools {

std::string compare(const std::string& name, const Tensor& actual, const Tensor& expected, double rtol, double atol) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return fmt::format("{}: got {}, expected {}", name, describe(actual), describe(expected));
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

}  // namespace relaxc::tools
