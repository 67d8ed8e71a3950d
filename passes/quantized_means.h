// Means of dequantized numbers, whose sums are made of the integers (a part of integer_regions).
#pragma once
#include "passes/quantized_values.h"

namespace relaxc {

// Returns the same mean from int32 sums: relax.mean over axes of constant sizes, or an average pool of windows of which
// is known how many elements each has; nullopt for other calls. The numbers have one scale and one zero point for all.
std::optional<Expr> mean_of_integers(const Call& call, const QuantizedValue& x, Builder& b);

}  // namespace relaxc
