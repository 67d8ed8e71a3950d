// The builtins that print values or fail with them (R.print, R.assert_op).
#pragma once
#include "vm/builtins.h"

namespace relaxc::vm::printing {

using Arguments = std::span<const Value>;

Value print(BuiltinContext&, Arguments);
Value print_parts(BuiltinContext&, Arguments);
Value check(BuiltinContext&, Arguments);  // (condition, values...): fails with the values

}  // namespace relaxc::vm::printing
