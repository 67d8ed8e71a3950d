// The parts of the verifier. Internal to ir/verify/.
#pragma once
#include "ir/verify/verify.h"
#include "ir/visit.h"

namespace relaxc {

// Every variable that a function of the module defined so far.
using DefinedVars = std::unordered_set<const NodeHeader*>;

// Where the name stands in the statement that begins at the span; the span when it does not. Variables know only where
// they are defined.
Span place_of(std::string_view name, const Span& statement);

void verify_graph(const FunctionRef& function, const IRModule& module, const OpTable& ops, DefinedVars& defined,
                  Diagnostics& diagnostics);
void verify_program(const std::string& name, const PrimFuncRef& function, DefinedVars& defined,
                    Diagnostics& diagnostics);

}  // namespace relaxc
