// Dims of a model whose names are expressions of other dims: "past_sequence_length + sequence_length".
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace relaxc::onnx_import {

// Returns the value of a name that is a sum, difference or product of numbers and of at least one dim, with
// parentheses; nullopt for a name without an operator, one that reads otherwise, and one with a word for which `dim`
// has no value.
std::optional<Expr> dim_of_expression(std::string_view name,
                                      const std::function<std::optional<Expr>(const std::string& word)>& dim);

}  // namespace relaxc::onnx_import
