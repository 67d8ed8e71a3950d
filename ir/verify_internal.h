// The parts of the verifier. Internal to ir/verify*.cc.
#pragma once
#include "ir/verify.h"
#include "ir/visit.h"

namespace relaxc {

// Every variable that a function of the module defined so far.
using DefinedVars = std::unordered_set<const NodeHeader*>;

void verify_graph(const FunctionRef& function, const IRModule& module, const OpTable& ops, DefinedVars& defined,
                  Diagnostics& diagnostics);
void verify_program(const std::string& name, const PrimFuncRef& function, DefinedVars& defined,
                    Diagnostics& diagnostics);

}  // namespace relaxc
