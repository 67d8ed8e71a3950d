// Decides whether a value may stand where a type asks for one. Everything that compares types or dims with this
// question asks it here: the verifier, calls of functions and kernels, match_cast, the checks of dims and the importer.
//
// It is the consistency relation of gradual typing (Siek and Taha, 2006), in three values: a part that is not known is
// consistent with everything, and then the claim is possible. TVM's StructInfoBaseCheck answers the same question.
#pragma once
#include "ir/arith.h"

namespace relaxc {

// Compares two dims, or two expressions of any integer dtypes.
Verdict equal_dims(const Expr& a, const Expr& b, const Analyzer& facts = {});
// Compares two tensor or shape types: the rank and dims must be the same.
Verdict equal_shapes(const Type& a, const Type& b, const Analyzer& facts = {});

// Proven: each value of type `given` is one of type `wanted`. Contradicted: none is. Properties that `wanted` leaves
// open are not required; properties that only `given` leaves open make the claim possible. Functions are compared from
// the caller's side: the arguments that the caller passes must fit their params.
Verdict fits(const Type& wanted, const Type& given, const Analyzer& facts = {});

// Binds the dims that occur bare in `pattern`, items of tuples included, in the terms of `type`; the first occurrence
// counts.
void bind_dims(const Type& pattern, const Type& type, VarMap& dims);

}  // namespace relaxc
