// Tensor programs before scheduling: a sequence of blocks, each alone in a perfect nest whose loops are its axes.
#pragma once
#include "ir/arith.h"
#include "ir/module.h"

namespace relaxc {

// Returns the blocks in order when the program has that form: perfect serial nests without annotations, one axis per
// loop, from 0, no predicates, and no memory allocated in blocks. Returns nullopt for any other program, such as one
// that is scheduled already or has statements beside the blocks.
std::optional<std::vector<Ref<Block>>> find_nests(const PrimFuncRef& function);

// Returns the blocks of a program of any form that stand in such a nest.
std::vector<Ref<Block>> plain_nests(const PrimFuncRef& function);

// Returns the program of such blocks without those that have an extent of 0. They do nothing, except that an empty
// reduction still initializes its result; the initialization stays as a separate block. Formulas over extents then
// never divide by an extent of 0. Programs of another form are returned as they are.
PrimFuncRef without_empty_nests(const PrimFuncRef& function);

// Returns the statements of a list, or the only one.
std::vector<Stmt> statements_of(const Stmt& body);
std::vector<IterVar> axes_of(const Block& block, IterKind kind);
// Returns the position of the axis that the expression names; the number of axes when it is something else.
size_t position_of_axis(const std::vector<IterVar>& axes, const Expr& e);
// Returns whether each index is a scalar: the access is to one element, not to a vector of neighbours.
bool is_element(const std::vector<Expr>& indices);
// Returns the body when it is a single unmasked store of a scalar that is computed from scalar loads, else null.
const BufferStore* single_store(const Block& block);
std::vector<Ref<BufferLoad>> loads_of(const NodeRef& node);
// Returns the change of an access's row-major position per step of the variable; nullopt if it varies, or for vectors.
std::optional<Expr> access_stride(const Buffer& buffer, const std::vector<Expr>& indices, const VarRef& axis,
                                  const Analyzer& facts);
// Returns whether the indices are the axes themselves, in order; that of an axis of one iteration may be 0.
bool is_at(const std::vector<Expr>& indices, const std::vector<IterVar>& axes);
// Returns whether each is an axis, in order, plus an offset that does not depend on axes.
bool is_at_offset(const std::vector<Expr>& indices, const std::vector<IterVar>& axes);

bool is_zero(const Expr& value);  // a literal 0, integer or floating-point

// A block with `out[axes] = op(out[axes], value)` and the init `out[axes] = init`.
struct Reduction {
  Buffer out;
  Expr init, value;
  BinaryOp op;
};
std::optional<Reduction> match_reduction(const Block& block);
// Returns whether the block is a reduction that reuses an operand along some spatial axis, as a matrix product does.
bool is_contraction(const Block& block);

}  // namespace relaxc
