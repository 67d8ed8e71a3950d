// Values that are statements by themselves.
#pragma once
#include "ir/intrinsics.h"
#include "ir/visit.h"

namespace relaxc::text {

// Returns whether a value may stand alone as a line: it has an effect, or it is a call of a builtin, as TVM prints
// T.texture2d_load(...). Others are written T.evaluate(x): a line y[i] == T.exp(x[i]) is a slip of the pen.
inline bool may_stand_alone(const Expr& value) {
  const Call* call = value.as<Call>();
  const OpRef* op = call ? call->callee.as<OpRef>() : nullptr;
  return (op && find_builtin(op->name)) || any_node(value, is_call_with_effect);
}

}  // namespace relaxc::text
