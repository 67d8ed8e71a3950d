// The builtins of tensors of strings. A pool is a tensor of strings whose shape does not matter; positions count its
// strings in row-major order. Internal to vm/.
#pragma once
#include "vm/builtins.h"

namespace relaxc::vm::strings {

using Arguments = std::span<const Value>;

Value take(BuiltinContext&, Arguments);
Value join(BuiltinContext&, Arguments);
Value sort(BuiltinContext&, Arguments);
Value find(BuiltinContext&, Arguments);
Value concat(BuiltinContext&, Arguments);
Value split(BuiltinContext&, Arguments);
Value full_match(BuiltinContext&, Arguments);
Value normalize(BuiltinContext&, Arguments);
Value from_numbers(BuiltinContext&, Arguments);
Value to_numbers(BuiltinContext&, Arguments);

}  // namespace relaxc::vm::strings
