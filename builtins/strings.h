// The builtins of tensors of strings. A pool is a tensor of strings whose shape does not matter; positions count its
// strings in row-major order.
#pragma once
#include "vm/builtins.h"

namespace relaxc::vm::strings {

using Arguments = std::span<const Value>;

// Returns a tensor of strings, or throws a RuntimeError.
const Tensor& strings_in(const Value& value);
// Returns strings that lie in the session's memory. Texts may be those of an argument, which the result copies.
Tensor make_strings(BuiltinContext& context, Shape shape, std::span<const std::string_view> texts);
Tensor make_strings(BuiltinContext& context, Shape shape, const std::vector<std::string>& texts);

Value take(BuiltinContext&, Arguments);
Value join(BuiltinContext&, Arguments);
Value sort(BuiltinContext&, Arguments);
Value find(BuiltinContext&, Arguments);
Value concat(BuiltinContext&, Arguments);
Value split(BuiltinContext&, Arguments);
Value full_match(BuiltinContext&, Arguments);
Value hash(BuiltinContext&, Arguments);
Value normalize(BuiltinContext&, Arguments);
Value tokenize(BuiltinContext&, Arguments);  // builtins/tokenizer.cc
Value from_numbers(BuiltinContext&, Arguments);
Value to_numbers(BuiltinContext&, Arguments);

}  // namespace relaxc::vm::strings
