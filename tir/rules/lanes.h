// Queries about a block before its vectors and threads are chosen, and schedule steps, which the rules share.
#pragma once
#include <variant>

#include "ir/arith.h"
#include "tir/analysis/nests.h"
#include "tir/dot_forms.h"
#include "tir/rules/primitives.h"
#include "tir/schedule/rule.h"
#include "tir/schedule/schedule.h"
#include "tir/target.h"

namespace relaxc {

// The block of an operator in a program of plain nests, and the blocks after and before it.
struct Stage {
  Ref<Block> block;
  std::vector<Ref<Block>> epilogue;
  std::vector<Ref<Block>> prologue = {};
  std::optional<int64_t> extent(size_t axis) const { return as_int(block->iter_vars[axis].domain.extent); }
};
std::optional<Stage> find_stage(const PrimFuncRef& program, std::string_view op);

// Completes a rule about an operator's block, the anchor. `find` returns the anchor or why the rule does not fit,
// `choose` takes the decisions about it and returns a plan, and `follow` applies the steps of a plan. A plan may have
// a member `versions`.
template <class Anchor, class Plan>
ScheduleRule anchored(ScheduleRule rule,
                      std::variant<Anchor, std::string> (*find)(const PrimFuncRef&, const Target&, Decisions&),
                      Plan (*choose)(const Anchor&, const Target&, Decisions&),
                      void (*follow)(Schedule&, const Anchor&, const Plan&)) {
  rule.fits = [=](const PrimFuncRef& program, const Target& target, Decisions& decisions) {
    auto found = find(program, target, decisions);
    return std::holds_alternative<Anchor>(found) ? std::nullopt : std::optional(std::get<std::string>(found));
  };
  rule.space = [=](const PrimFuncRef& program, const Target& target, Decisions& decisions) -> std::optional<Versions> {
    Plan plan = choose(std::get<Anchor>(find(program, target, decisions)), target, decisions);
    if constexpr (requires { plan.versions; }) return plan.versions;
    return std::nullopt;
  };
  rule.apply = [=](Schedule& schedule, const Target& target, Decisions& decisions) {
    auto anchor = std::get<Anchor>(find(schedule.function(), target, decisions));
    follow(schedule, anchor, choose(anchor, target, decisions));
  };
  return rule;
}

// Returns whether loops are known to cost less than waking a thread, with `work` simple operations per iteration.
bool is_small(const std::vector<Expr>& extents, const Target& target, int64_t work = 1);
// Returns the number of cores among which work is divided.
int64_t assumed_cores(const Target& target);
// Returns whether a block computes exp, erf or the like, which become tens of instructions for each vector.
bool any_is_expensive(const std::vector<Ref<Block>>& blocks);
// Returns how many vectors of elements hide the latency of the functions that a block computes; 1 where it has none.
int64_t vectors_for_functions(const Block& block);
// Returns the rows of a tile of `vectors` accumulators each, beside one operand's vectors and `spare` registers.
int64_t rows_in_registers(int64_t vectors, int64_t spare, const Target& target);
// Returns the number of rows, at least half of `most`, whose last tile exceeds the extent the least.
int64_t fewest_rows_beyond(int64_t extent, int64_t most);

// The columns of a register tile, vectors side by side. Widths that divide the extent come first, wide before narrow,
// since a narrower vector beats a tail. The extent is nullopt if it is symbolic.
struct ColumnTile {
  int lanes, vectors;
  int columns() const { return lanes * vectors; }
};
ColumnTile choose_column_tile(std::optional<int64_t> extent, int lanes);

// Returns the loads of a block that stores one value, except those from the buffer that it stores to.
std::vector<Ref<BufferLoad>> operands_of(const Block& block);
// Returns the instruction for the block's sums of products of these operands (find_dot_form); one that clamps sums of
// two only where the block allows it.
const DotForm* dot_form_of(const Block& product, DType a, DType b, const Target& target);
// Returns the bytes of a buffer, with `symbolic` for each extent that is not known; INT64_MAX where there are more.
int64_t bytes_of(const Buffer& buffer, int64_t symbolic);
// Returns the number of elements in a full vector of the widest dtype of the block; 1 if the block has a construct that
// cannot be vectorized, or vectors already.
int lanes_of(const Block& block, const Target& target);
// Returns whether the axis occurs in indices of stores and plain loads alone, not in a condition, value or nested load.
bool only_in_indices(const Block& block, const VarRef& axis);
// Returns whether two axes, side by side, are one in an access: the outer one steps over all of the inner one.
bool is_one_axis(const BufferLoad& access, const IterVar& outer, const IterVar& inner, const Analyzer& facts);
// Returns whether all accesses of a block that stores in the order of its axes take that spatial axis and the next as
// one.
bool takes_as_one(const Block& block, size_t axis, const Analyzer& facts);
// Returns whether the stride is 1 or 0: neighbouring lanes access neighbouring elements, or all the same one.
bool is_lane_stride(const std::optional<Expr>& stride);

// A block's axes, spatial ones first, and their loops in the same order once they are in that order (ordered_nest).
struct Nest {
  Ref<Block> block;
  std::vector<IterVar> axes;
  size_t num_spatial;
  Loops loops;

  std::vector<Expr> spatial_extents() const;
  size_t num_reduced() const { return axes.size() - num_spatial; }
};
Nest nest_of(const Ref<Block>& block);
// Brings the loops into that order. The block stands alone in its nest (find_nests).
Nest ordered_nest(Schedule& schedule, const BlockRV& block);
// Returns the loop of each axis of such a block.
Loops loops_of_axes(Schedule& schedule, const BlockRV& block);
// Returns the loops around the block without the `outer` outermost ones.
Loops loops_inside(Schedule& schedule, const BlockRV& block, size_t outer);
std::optional<int64_t> extent_of(const Schedule& schedule, const LoopRV& loop);
// Returns the block whose sums are added to those of a product (passes/exact_sums.cc), if there is one.
std::optional<BlockRV> rest_of_sums(Schedule& schedule);
// Sums it for each tile, inside of these loops, in registers: with this instruction, in lanes of that axis.
void sum_rest_in_tile(Schedule& schedule, const BlockRV& rest, const Loops& around, size_t column_axis, int64_t lanes,
                      const std::string& intrin);

Loops joined(std::initializer_list<Loops> parts);
LoopRV fused(Schedule& schedule, const Loops& loops);
void unroll(Schedule& schedule, const Loops& loops);
// Keeps a tile in registers: unrolls the first loops, whose iterations are vectors, and vectorizes the others.
void keep_in_registers(Schedule& schedule, const Loops& unrolled, const Loops& lanes);
// Returns how many of the loops, from the outside, have enough iterations for all threads. The others stay loops of
// their own, whose border is cut off, and in which an index is a sum: of fused ones each digit is a division.
size_t enough_for_threads(const Schedule& schedule, const Loops& loops, int64_t most_shares);
// Fuses the loops, and runs the result on all threads if `parallel`. Does nothing if there are none.
void fuse_parallel(Schedule& schedule, const Loops& loops, bool parallel = true);

}  // namespace relaxc
