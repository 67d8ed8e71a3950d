// The parts of the verifier. Internal to ir/verify/.
#pragma once
#include "ir/verify/verify.h"
#include "ir/visit.h"

namespace relaxc {

// Every variable that a function of the module has defined so far.
using DefinedVars = std::unordered_set<const NodeHeader*>;

// Returns the place of the name in the statement that begins at the span, or the span when the name does not occur.
// Variables know only the place of their definition.
Span place_of(std::string_view name, const Span& statement);

void verify_graph(const FunctionRef& function, const IRModule& module, const OpTable& ops, DefinedVars& defined,
                  Diagnostics& diagnostics);
void verify_program(const std::string& name, const PrimFuncRef& function, DefinedVars& defined,
                    Diagnostics& diagnostics);

}  // namespace relaxc
