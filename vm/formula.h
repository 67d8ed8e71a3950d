// Formulas over the dims of a kernel's tensors, as the compiler notes them (tir/analysis/work.h).
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "vm/tensor.h"

namespace relaxc::vm {

// Returns the value of a text of numbers, t0[1] (a dim of the first tensor), + - * // %, min(a, b), max(a, b) and
// parentheses; nullopt for another text or a dim that is not there. Numbers are doubles: it is an estimate.
std::optional<double> evaluate_formula(std::string_view text, std::span<const Tensor* const> tensors);

}  // namespace relaxc::vm
