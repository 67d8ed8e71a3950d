// The builtins that ask for the properties of tensors, and that view their memory. Tensors are dense and begin where
// their memory does.
#pragma once
#include "vm/builtins.h"

namespace relaxc::vm::properties {

using Arguments = std::span<const Value>;

// Returns the bytes of the tensor from an offset on as a tensor of this shape and dtype. It shares the memory.
Value view(BuiltinContext&, Arguments);
Value dtype_code(BuiltinContext&, Arguments);
Value dtype_bits(BuiltinContext&, Arguments);
Value dtype_lanes(BuiltinContext&, Arguments);
Value no_offset(BuiltinContext&, Arguments);
Value tensor_dim(BuiltinContext&, Arguments);
Value tensor_stride(BuiltinContext&, Arguments);

}  // namespace relaxc::vm::properties
