// Checks that a module keeps the rules on which passes and code generation rely. The numbered list is in verify.cc.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Reports every violation, at the place where it occurs; messages end in the rule's number: "[G3]". A tensor program
// that `known`, a verified module, holds under the same name is not verified again.
void verify(const IRModule& module, const OpTable& ops, Diagnostics& diagnostics, const IRModule* known = nullptr);

// Reports values of tensor programs that provably leave their range, whatever the data and the dims (from 1): axes that
// leave their domain are errors, indices out of their buffer's dims warnings. Accesses that are not proven either way
// are tested when the program runs (relaxc run --interpret, --check-bounds). It costs more than verify(), and is for
// programs that users wrote.
enum class Ranges : uint8_t { kAxes, kIndices };
void verify_ranges(const IRModule& module, Ranges wanted, Diagnostics& diagnostics);

}  // namespace relaxc
