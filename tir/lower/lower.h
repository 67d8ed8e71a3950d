// These steps lower tensor programs to the form that the code generator takes: no blocks, flat buffers, explicit scalar
// params, vectors instead of vectorized loops. Each step is PrimFunc -> PrimFunc and leaves a program for which the
// interpreter computes the same result. passes/table.cc declares the steps and lists them in the order in which they
// run. This header declares those that are also called elsewhere.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "support/diagnostic.h"
#include "tir/program.h"

namespace relaxc {

// Turns break, continue and T.ret in a body into conditions on flags; the value of T.ret is stored in `result`.
Stmt without_jumps(const Stmt& body, const std::optional<Buffer>& result);
// Makes params with strides or an offset dense, which tensors are, and raw pointers buffers where a view says of which
// shape.
PrimFuncRef dense_params(const PrimFuncRef& function);
// Puts the memory of GPU threads into their loops, which end at each T.tvm_storage_sync and begin again behind it.
Stmt split_at_barriers(const Stmt& body);
// Returns `x[i] = x[i] + (condition ? y : 0) * z` as a branch on the condition, and others as they are.
Stmt with_zeros_skipped(const Stmt& s);
// Writes builtins that stand for arithmetic or for a function of libm as such.
PrimFuncRef expand_builtins(const PrimFuncRef& function);
// Turns loops with a step into loops that count iterations. Removes tir.likely and tir.assume, which change no results.
PrimFuncRef normalize_loops(const PrimFuncRef& function);
// Makes scalar params, loop variables, axes and symbolic dims of any integer type int64, as a graph's dims are,
// together with the index arithmetic over them. Stored values keep their dtype. A pass that puts dims of a graph into a
// program calls this first.
PrimFuncRef promote_indices(const PrimFuncRef& function);
// Throws a CompileError (kUnsupported) with the place of a construct that later steps do not know: raw pointers as
// params, builtins of GPUs and of TVM's runtime, thread axes, pointers to packed elements. Otherwise returns the
// program unchanged.
PrimFuncRef check_lowerable(const PrimFuncRef& function);
// Throws a CompileError for an annotation that is not known, or whose place or value is wrong
// (tir/analysis/annotations.h).
void check_annotations(const PrimFuncRef& function);
// Returns a warning for each annotation, attribute, key of T.attr and storage scope that has no effect: one for each
// name, at its first place. (tir/lower/unread_annotations.cc)
std::vector<Diagnostic> unread_annotations(const std::vector<PrimFuncRef>& programs);
// Does so for a module's programs, for its graph functions and for the module itself.
std::vector<Diagnostic> unread_annotations(const IRModule& module);
// Gives a reduction whose domain is empty at run time its result: init runs once for each spatial point. Loops over
// reduce axes whose extent may be 0 get a branch for that case.
PrimFuncRef initialize_empty_reductions(const PrimFuncRef& function);
// Puts an assert before each access whose index is not provably in range, and at the start of each block for axes that
// are not provably in their domain. A loop with such an assert is not vectorized, and code does not move across it.
PrimFuncRef check_bounds(const PrimFuncRef& function);

}  // namespace relaxc
