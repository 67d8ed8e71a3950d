// Tensor programs before scheduling: blocks one after the other, each alone in loops that are its axes.
#pragma once
#include "ir/module.h"

namespace relaxc {

// The blocks in order when the program has that form: perfect serial nests without annotations, axes that are the loops
// one to one and start at 0, no predicates or memory of blocks' own. nullopt for anything else: somebody's schedule, or
// statements beside the blocks.
std::optional<std::vector<Ref<Block>>> find_nests(const PrimFuncRef& function);

// A program of such blocks without those that have an extent of 0: they do nothing, but for the initialization of
// reductions over nothing, which stays as a block of its own. Formulas over extents then never divide by one of 0.
// Programs of another form are returned as they are.
PrimFuncRef without_empty_nests(const PrimFuncRef& function);

std::vector<IterVar> axes_of(const Block& block, IterKind kind);
// Whether each index is one number: an element is meant, not a vector of neighbours.
bool is_element(const std::vector<Expr>& indices);
// The body when it is a single store of an element, without a mask and from loads of elements, else null.
const BufferStore* single_store(const Block& block);
std::vector<Ref<BufferLoad>> loads_of(const Expr& value);
// The buffer is accessed at the axes themselves, in order.
bool is_at(const std::vector<Expr>& indices, const std::vector<IterVar>& axes);

bool is_zero(const Expr& value);  // as a literal, whole or real

// `out[axes] = op(out[axes], value)` with `out[axes] = init`.
struct Reduction {
  Buffer out;
  Expr init, value;
  BinaryOp op;
};
std::optional<Reduction> match_reduction(const Block& block);
// Whether the block is a reduction that reads operands again and again over some axis: a product.
bool is_contraction(const Block& block);

}  // namespace relaxc
