// The types of params and results as the runtime knows them. Internal to codegen/.
#pragma once
#include "ir/expr.h"
#include "vm/executable.h"

namespace relaxc::codegen {

vm::ValueInfo value_info(std::string name, const Type& type);

}  // namespace relaxc::codegen
