// The comparison that `relaxc run --test-data` makes. The tests use it too.
#pragma once
#include <string>

#include "vm/value.h"

namespace relaxc::tools {

// Returns the worst element of a failed comparison, as one line. The text is empty when actual matches expected within
// |a - e| <= atol + rtol * |e| (NaN equals NaN; dtype and shape must be equal).
std::string compare(const std::string& name, const Tensor& actual, const Tensor& expected, double rtol, double atol);
// Does the same for values of any kind, item by item.
std::string compare_values(const std::string& name, const vm::Value& actual, const vm::Value& expected, double rtol,
                           double atol);

}  // namespace relaxc::tools
