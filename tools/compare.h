// The comparisons that `relaxc run --test-data` and `relaxc debug` make. The tests use them too.
#pragma once
#include <optional>
#include <string>

#include "vm/value.h"

namespace relaxc::tools {

// Returns the worst element of a failed comparison, as one line. The text is empty when actual matches expected within
// |a - e| <= atol + rtol * |e| (NaN equals NaN; dtype and shape must be equal).
std::string compare(const std::string& name, const Tensor& actual, const Tensor& expected, double rtol, double atol);
// Does the same for values of any kind, item by item.
std::string compare_values(const std::string& name, const vm::Value& actual, const vm::Value& expected, double rtol,
                           double atol);

// The error that rounding may explain, relative to the largest finite magnitude of the expected tensor, not to the
// element: a sum of large terms that is near 0 has the error of the terms. Other algorithms for the same sum (Winograd,
// attention in one kernel) stay within it. Floats of 16 and fewer bits have a multiple, by their last place, and
// integers of 8 bits and fewer, which are quantized floats, may differ by 1.
struct Closeness {
  double rtol = 1e-3, atol = 1e-6;  // rtol of float32
  double allowed(const Tensor& expected) const;
};
// Does what compare_values() does within that error.
std::string compare_closely(const std::string& name, const vm::Value& actual, const vm::Value& expected,
                            const Closeness& closeness);
// Returns the largest difference of two elements; infinity where only one of them is a NaN or the values are of
// different kinds or sizes.
double greatest_difference(const vm::Value& actual, const vm::Value& expected);
// Return how many elements of two tensors of one dtype and size differ by more than that error: in their order, and
// once both are sorted, since a kernel may have another layout than the operator. nullopt for others.
std::optional<int64_t> num_different(const Tensor& actual, const Tensor& expected, const Closeness& closeness);
std::optional<int64_t> num_different_sorted(const Tensor& actual, const Tensor& expected, const Closeness& closeness);
// Returns whether they hold the same numbers in any order.
bool same_numbers(const Tensor& actual, const Tensor& expected, const Closeness& closeness);

}  // namespace relaxc::tools
