// Whether a module keeps the rules that passes and code generation rely on. The numbered list is in verify.cc.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Reports every violation, at the place it comes from; messages end in the rule's number: "[G3]".
// Tensor programs that `known`, a verified module, holds under the same name are not verified again.
void verify(const IRModule& module, const OpTable& ops, Diagnostics& diagnostics, const IRModule* known = nullptr);

// What of tensor programs provably leaves its range, whatever the data and the dims (from 1): axes that leave their
// domain are errors, indices out of their buffer's dims warnings. What is not proven either way is tested when it runs
// (relaxc run --interpret, --check-bounds). Costs more than verify(), for what users wrote.
enum class Ranges : uint8_t { kAxes, kIndices };
void verify_ranges(const IRModule& module, Ranges wanted, Diagnostics& diagnostics);

}  // namespace relaxc
