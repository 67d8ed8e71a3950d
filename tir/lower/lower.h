// Lowering of tensor programs, step by step, to what the code generator takes: no blocks, flat buffers, explicit scalar
// params, vectors instead of vectorized loops. Each step is PrimFunc -> PrimFunc and leaves a program that the
// interpreter runs to the same result. passes/table.cc has them in the order in which they run.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"
#include "tir/program.h"

namespace relaxc {

// Loops with a step become loops that count iterations; tir.likely and tir.assume, which change nothing, go.
PrimFuncRef normalize_loops(const PrimFuncRef& function);
// Scalar params, loop variables, axes and symbolic dims of any integer type become int64, as a graph's dims are, and
// the index arithmetic with them; stored values keep their dtype. A pass that puts dims of a graph into a program calls
// this first.
PrimFuncRef promote_indices(const PrimFuncRef& function);
// A CompileError (kUnsupported), with the place, for what no later step knows: pointers, calls that are no scalar
// intrinsics, thread axes, floats of 8 bits and less. Else the program itself.
PrimFuncRef check_lowerable(const PrimFuncRef& function);
// Every symbolic dim of the buffer params becomes a scalar param after the others, in the order of scalar_arguments();
// the attribute `num_dims` says how many. Refuses params that are not dense.
PrimFuncRef explicit_scalars(const PrimFuncRef& function);
// A reduction whose domain is empty at run time still has its result: init runs once for each spatial point. Loops over
// reduce axes whose extent may be 0 get a branch for that case.
PrimFuncRef initialize_empty_reductions(const PrimFuncRef& function);
// Buffers whose dims' strides blocks have wishes about (buffer_dim_align, see the primitive storage_align) get them.
PrimFuncRef align_storage(const PrimFuncRef& function);
// Asserts before each access whose index is not provably in range, and at the start of each block for axes that are not
// provably in their domain. Loops with such an assert become no vectors, and code is not moved across it.
PrimFuncRef check_bounds(const PrimFuncRef& function);
// Blocks become their bodies: axes are substituted, the predicate becomes a branch, init a branch on the first reduce
// iteration, allocations AllocBuffer, windows (match_buffers) accesses to their source.
PrimFuncRef lower_blocks(const PrimFuncRef& function);
// Allocated buffers move to the innermost loop of which each iteration fills them for itself, and shrink to what one
// iteration touches. What has strides moves as a whole. A parallel loop whose iterations would share memory that only
// they use becomes serial.
PrimFuncRef compact_buffers(const PrimFuncRef& function);
// Buffers that blocks want twice ({"double_buffer_scope": position among the writes}) and that now belong to a serial
// loop's iterations: the next iteration's contents are made before this one's are used. A buffer that anything but one
// statement fills, or from what the loop itself makes, stays as it is.
PrimFuncRef double_buffer(const PrimFuncRef& function);
// A loop whose variable stands in conditions that are linear in it is cut into parts, so that the largest has none of
// them: head, interior and tail. A parallel loop gets a branch between interior and the rest, one over fused loops
// between full tiles and those that are the last along any of them. Loops that are unrolled or vectorized are only
// trimmed. A loop annotated {"exact_tails": True} whose last, symbolic tile is the only one that
// is not full, and behind which nothing happens, gets one copy of that tile for each number of rows that it may have;
// {"keep_whole": True} keeps a loop of much work and cheap conditions as it is. Code grows by a bounded amount.
PrimFuncRef partition_loops(const PrimFuncRef& function);
// A serial loop whose conditions have parts that all iterations agree on becomes a branch around two such loops.
PrimFuncRef hoist_conditions(const PrimFuncRef& function);
// T.prefetch statements where loops ask for them. {"prefetch": ["B"]}: what the loop's next iteration newly reads of B,
// spread over this one. {"prefetch_own": ["C"]}: what the iteration itself stores in C or reads of it, spread over the
// loops inside. {"prefetch_ahead": ["B", 64]}: the iteration's own lines of B, 64 rows further on.
PrimFuncRef prefetch(const PrimFuncRef& function);
// Every buffer becomes one-dimensional, dense and with offset 0; indices are row-major positions.
PrimFuncRef flatten_buffers(const PrimFuncRef& function);
// Vectorized loops of constant extent, or of a constant times T.vscale(), become vector statements. A loop that holds
// what has no vector form (inner allocations, `while`, stores that lanes share) becomes serial; branches on the lane
// become masks.
PrimFuncRef vectorize_loops(const PrimFuncRef& function);
// Vectors of int64 indices, and scalar divisions of such by what is no constant, in int32 where that is exact.
PrimFuncRef narrow_indices(const PrimFuncRef& function);
// Flat buffers of one statement list that are not alive at the same time become one. Sizes may be symbolic.
PrimFuncRef share_storage(const PrimFuncRef& function);
// Subexpressions that occur several times get a variable where that shortens the program.
PrimFuncRef merge_subexpressions(const PrimFuncRef& function);
// Simplifies with the dims of the buffers and the loop ranges as facts.
PrimFuncRef simplify_program(const PrimFuncRef& function);

}  // namespace relaxc
