// These steps lower tensor programs to the form that the code generator takes: no blocks, flat buffers, explicit scalar
// params, vectors instead of vectorized loops. Each step is PrimFunc -> PrimFunc and leaves a program for which the
// interpreter computes the same result. passes/table.cc lists them in the order in which they run.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "tir/program.h"

namespace relaxc {

// Turns loops with a step into loops that count iterations. Removes tir.likely and tir.assume, which do not change
// results.
PrimFuncRef normalize_loops(const PrimFuncRef& function);
// Makes scalar params, loop variables, axes and symbolic dims of any integer type int64, as a graph's dims are,
// together with the index arithmetic over them. Stored values keep their dtype. A pass that puts dims of a graph into a
// program calls this first.
PrimFuncRef promote_indices(const PrimFuncRef& function);
// Throws a CompileError (kUnsupported) with the place of a construct that later steps do not know: pointers, calls that
// are not scalar intrinsics, thread axes, floats of 8 bits and less. Otherwise returns the program unchanged.
PrimFuncRef check_lowerable(const PrimFuncRef& function);
// Makes every symbolic dim of the buffer params a scalar param behind the others, in the order of scalar_arguments().
// The attribute `num_dims` gives their number. Refuses params that are not dense.
PrimFuncRef explicit_scalars(const PrimFuncRef& function);
// Gives a reduction whose domain is empty at run time its result: init runs once for each spatial point. Loops over
// reduce axes whose extent may be 0 get a branch for that case.
PrimFuncRef initialize_empty_reductions(const PrimFuncRef& function);
// Gives buffers the strides that blocks ask for with buffer_dim_align (see the primitive storage_align).
PrimFuncRef align_storage(const PrimFuncRef& function);
// Puts an assert before each access whose index is not provably in range, and at the start of each block for axes that
// are not provably in their domain. Loops that contain such an assert are not vectorized, and code is not moved across
// it.
PrimFuncRef check_bounds(const PrimFuncRef& function);
// Replaces blocks by their bodies: axes are substituted, the predicate becomes a branch, init a branch on the first
// reduce iteration, allocations become AllocBuffer, and accesses to windows (match_buffers) become accesses to their
// source.
PrimFuncRef lower_blocks(const PrimFuncRef& function);
// Moves allocated buffers to the innermost loop of which each iteration fills them for itself, and shrinks them to the
// region that one iteration touches. A buffer with strides moves without shrinking. A parallel loop whose iterations
// would share memory that only they use becomes serial.
PrimFuncRef compact_buffers(const PrimFuncRef& function);
// Doubles the buffers that blocks mark with {"double_buffer_scope": position among the writes} and that are allocated
// in a serial loop at this point: the contents for the next iteration are made before those of the current one are
// used. A buffer stays as it is if more than one statement fills it, or if the loop itself makes the data it is filled
// from.
PrimFuncRef double_buffer(const PrimFuncRef& function);
// Cuts a loop whose variable occurs in conditions that are linear in it into head, interior and tail, so that the
// largest part has none of these conditions. A parallel loop gets a branch between the interior and the rest; a loop
// over fused loops gets one between full tiles and those that are the last along any of them. Unrolled and vectorized
// loops are only trimmed. A loop annotated {"exact_tails": True} gets one copy of its last tile for each number of rows
// that the tile may have, if that tile is symbolic, is the only one that is not full, and nothing happens behind it.
// {"keep_whole": True} keeps a loop of much work and cheap conditions as it is. The growth of the code is bounded.
// (Halide and TVM call this loop partitioning.)
PrimFuncRef partition_loops(const PrimFuncRef& function);
// Turns a serial loop with conditions whose conjuncts are partly loop-invariant into a branch around two such loops
// (loop unswitching).
PrimFuncRef hoist_conditions(const PrimFuncRef& function);
// Inserts T.prefetch statements where loops ask for them. {"prefetch": ["B"]} fetches the elements of B that only the
// next iteration reads, spread over the current one. {"prefetch_own": ["C"]} fetches the elements of C that the
// iteration itself stores or reads, spread over the loops inside. {"prefetch_ahead": ["B", 64]} fetches the cache lines
// of B that the iteration reads, 64 rows further on.
PrimFuncRef prefetch(const PrimFuncRef& function);
// Makes every buffer one-dimensional, dense and with offset 0. Indices become row-major positions.
PrimFuncRef flatten_buffers(const PrimFuncRef& function);
// Turns vectorized loops of constant extent, or of a constant times T.vscale(), into vector statements. A loop with a
// body that has no vector form (inner allocations, `while`, stores of several lanes to one element) becomes serial.
// Branches on the lane become masks.
PrimFuncRef vectorize_loops(const PrimFuncRef& function);
// Computes vectors of int64 indices, and scalar divisions of indices by values that are not constants, in int32 where
// that is exact.
PrimFuncRef narrow_indices(const PrimFuncRef& function);
// Lets flat buffers of one statement list that are not alive at the same time share memory. Sizes may be symbolic.
PrimFuncRef share_storage(const PrimFuncRef& function);
// Binds subexpressions that occur several times to a variable where that shortens the program.
PrimFuncRef merge_subexpressions(const PrimFuncRef& function);
// Simplifies the program with the dims of the buffers and the loop ranges as facts.
PrimFuncRef simplify_program(const PrimFuncRef& function);

}  // namespace relaxc
