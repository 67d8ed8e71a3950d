// Proves before the first instruction runs that bytecode cannot leave its frame or its tables.
#pragma once
#include "vm/executable.h"

namespace relaxc::vm {

// Checks, per function:
// - words decode to instructions; jump targets are instructions of the function; the last one is ret, jump or fail
// - registers, slots, constants, kernels, builtins, strings and functions are in range; dtypes are known
// - calls have as many arguments as the callee or kernel declares
// - every register and slot is written before it is read, on all paths. Those that were written when the target of a
//   backward jump was first reached must still be written at the jump, so a loop may not drop them. A backward jump
//   must not lead to code that only it reaches. With these rules one pass over the code suffices.
// Returns messages such as "function 'main', word 12 (call_kernel): register r7 is read before it is written"; there
// are none when the code is sound.
std::vector<std::string> verify(const Executable& executable);

}  // namespace relaxc::vm
