// Whether a module keeps the rules that passes and code generation rely on. The numbered list is in verify.cc.
#pragma once
#include "ir/op.h"

namespace relaxc {

// Reports every violation, at the place it comes from; messages end in the rule's number: "[G3]".
void verify(const IRModule& module, const OpTable& ops, Diagnostics& diagnostics);

}  // namespace relaxc
