// Programs in which memory has several names: views, addresses, calls that get memory.
#pragma once
#include "ir/visit.h"

namespace relaxc {

// Returns whether the program may access a buffer's memory other than by elements of that buffer, or calls a function
// that may have effects. Steps that reason about buffers one by one leave such a program alone.
bool uses_pointers(const PrimFuncRef& function);

}  // namespace relaxc
