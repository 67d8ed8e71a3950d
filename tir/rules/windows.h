// Windows over an operand, of pooling and depthwise convolutions, and the border that they reach over.
#pragma once
#include <span>

#include "tir/rules/blocks.h"

namespace relaxc {

// Returns whether an operand is read at a sum of these axes.
bool slides(const std::vector<Ref<BufferLoad>>& loads, const IterVar& axis, std::span<const IterVar> others);
// Counts the innermost reduce axes over which a window slides along a spatial axis; 0 where several results read the
// same window, as in a convolution with several filters, since reusing that is better.
size_t axes_of_window(const Nest& nest, const std::vector<Ref<BufferLoad>>& loads);
// Returns the first axis on which windows slide, apart from that of groups, or the number of spatial axes.
size_t first_axis_of_windows(const Nest& nest, const std::optional<GroupAxis>& groups);
// Returns whether each result of the reduction is computed from a window of an operand of its own.
bool reads_windows(const Ref<Block>& block);
// Returns whether the conditions of a border that such a block reads would take longer than a copy with the border.
bool has_open_border(const Ref<Block>& block, const Analyzer& facts);
// Chooses the row tiles of a band, in which the operand of windows is made: for groups as many as half of L2 holds,
// else all of them where the axes outside have enough iterations for all threads.
void choose_band(ReductionPlan& plan, const Nest& nest, const Analyzer& facts, const Target& target,
                 Decisions& decisions);
// Moves the block that makes the operand of windows into a loop. Its rows are whole vectors; where windows step by
// several columns, those that a vector of windows reads together lie side by side.
void make_in_band(Schedule& schedule, const BlockRV& producer, const LoopRV& band, const ReductionPlan& plan);

}  // namespace relaxc
