// Describes types of params and results, and kernels, to the runtime. Internal to codegen/.
#pragma once
#include "codegen/bind_values.h"
#include "ir/expr.h"
#include "vm/executable.h"

namespace relaxc::codegen {

vm::ValueInfo value_info(std::string name, const Type& type, const DimRanges& ranges = {});
// Copies what profiles show of a tensor program, whose attributes these are.
void note_work(vm::KernelInfo& kernel, const Attrs& attrs);

}  // namespace relaxc::codegen
