// Prints bytecode as text for people: `relaxc --emit=bytecode`.
#pragma once
#include "vm/executable.h"

namespace relaxc::vm {

// Returns the tables, then every function with one instruction per line and its word offset in front. Indices outside
// their table print as "#7", so unverified code may be printed too.
std::string disassemble(const Executable& executable);
std::string disassemble(const Executable& executable, const Function& function);

}  // namespace relaxc::vm
