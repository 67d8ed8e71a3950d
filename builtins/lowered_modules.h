// The builtins that modules call after TVM has lowered their shapes (VMShapeLower): symbolic dims are in a tensor of
// int64, the shape heap, and types are tested by calls.
#pragma once
#include "vm/builtins.h"

namespace relaxc::vm::lowered {

using Arguments = std::span<const Value>;

Value alloc_shape_heap(BuiltinContext&, Arguments);
Value match_shape(BuiltinContext&, Arguments);
Value make_shape(BuiltinContext&, Arguments);
Value match_prim_value(BuiltinContext&, Arguments);
Value make_prim_value(BuiltinContext&, Arguments);
Value check_tensor_info(BuiltinContext&, Arguments);
Value check_shape_info(BuiltinContext&, Arguments);
Value check_prim_value_info(BuiltinContext&, Arguments);
Value check_tuple_info(BuiltinContext&, Arguments);
Value check_func_info(BuiltinContext&, Arguments);
Value tuple_getitem(BuiltinContext&, Arguments);
Value read_if_cond(BuiltinContext&, Arguments);

}  // namespace relaxc::vm::lowered
