// Whether a value may stand where a type asks for one. Everything that compares types or dims with this question asks
// it here: the verifier, calls of functions and kernels, match_cast, the checks of dims and the importer.
//
// It is the consistency relation of gradual typing (Siek and Taha, 2006), in three values: a part that is not known is
// consistent with everything, and then the claim is possible. TVM's StructInfoBaseCheck answers the same question.
#pragma once
#include "ir/arith.h"

namespace relaxc {

// Two dims, or two of any integer dtypes.
Verdict equal_dims(const Expr& a, const Expr& b, const Analyzer& facts = {});
// Two tensor or shape types: the same rank and dims.
Verdict equal_shapes(const Type& a, const Type& b, const Analyzer& facts = {});

// Proven: each value of type `given` is one of type `wanted`. Contradicted: none is. What `wanted` leaves open is not
// asked for; what only `given` leaves open makes the claim possible. Functions are compared from the caller's side:
// what the caller hands them must fit their params.
Verdict fits(const Type& wanted, const Type& given, const Analyzer& facts = {});

// The dims that stand bare in `pattern`, items of tuples included, in the terms of `type`; the first occurrence counts.
void bind_dims(const Type& pattern, const Type& type, VarMap& dims);

}  // namespace relaxc
