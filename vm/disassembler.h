// Bytecode as text, for people: `relaxc --emit=bytecode`.
#pragma once
#include <string>

#include "vm/executable.h"

namespace relaxc::vm {

// The tables, then every function with one instruction per line, its word offset in front. Indices outside their
// table print as "#7", so unverified code may be shown too.
std::string disassemble(const Executable& executable);
std::string disassemble(const Executable& executable, const Function& function);

}  // namespace relaxc::vm
