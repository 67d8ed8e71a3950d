#pragma once
#include "tir/analysis/annotations.h"
#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct WriteAt {
  LoopRV loop;
  BlockRV block;
  BufferArg write_buffer_index;
  StorageScope storage_scope;

  static constexpr PrimitiveInfo kInfo{"write_at",
                                       "lets the block write new memory, which each iteration copies to the buffer at "
                                       "its end. Returns the copying block"};
  static constexpr auto fields() {
    return list(required<&WriteAt::loop>("around the block"), required<&WriteAt::block>("writes the buffer"),
                required<&WriteAt::write_buffer_index>("the buffer; a position counts the writes"),
                required<&WriteAt::storage_scope>("of the copy: \"global\", \"local\", \"shared\""));
  }
  BlockRV apply(scheduling::Step& step) const {
    scheduling::TreeNode* loop = step.loop(this->loop);
    scheduling::TreeNode* block = step.block(this->block);
    step.require_around(loop, block);
    step.scope(block);
    step.require(not_complete_or_reduction(block), block);
    if (block->partial) step.refuse({block}, "block '{}' may leave elements unwritten", block);
    Buffer buffer = step.accessed(block, write_buffer_index, scheduling::AccessKind::kWrite);
    if (auto driven = find_unfinished(block, loop))
      step.refuse({block, driven->loop == loop ? loop : block},
                  "loop '{}' drives axis '{}', results are not final in an iteration", driven->loop, driven->axis->var);
    step.require(not_a_box(block, buffer, loop), block);
    scheduling::TreeNode* child = child_towards(loop, block);
    step.require_alone(child, block, buffer);
    std::vector<Range> region = *region_at({block}, buffer, scheduling::AccessKind::kWrite, loop);
    scheduling::TreeNode* copy = insert_cache(loop, child->position() + 1, buffer, scheduling::AccessKind::kWrite,
                                              storage_scope, region, {block});
    copy->block->annotations.set(annotation<"auto_copy">(), 1);
    return step.block_result(copy);
  }

 private:
  // Refuses when the iterations inside leave out elements of the box around those they write: the copy overwrites them.
  static scheduling::Refusal not_a_box(const scheduling::TreeNode* block, const Buffer& buffer,
                                       const scheduling::TreeNode* loop) {
    const Analyzer& facts = block->tree->facts;
    scheduling::Nodes inside = loops_above(block, loop);
    auto fills_its_extent = [&](const IterVar& axis) {
      auto map = find_iter_map({axis.value}, ranges_of(inside), facts);
      if (!map) return false;
      Expr count = int_imm(1, dtype_of(axis.var));
      for (const IterDigit& digit : map->sums[0].digits) count = count * cast_to(digit.extent, dtype_of(count));
      return facts.can_prove_equal(count, map->sums[0].extent);
    };
    VarSet seen;
    for (const Range& range : write_of(block, buffer)->ranges) {
      bool is_fine = is_int(range.extent, 1);
      for (const IterVar& axis : block->axes()) {
        if (!is_fine || !uses_var(range.min, axis.var)) continue;
        is_fine = same_node(range.min, axis.var) && !seen.contains(axis.var.get()) && fills_its_extent(axis);
        seen.insert(axis.var.get());
      }
      if (!is_fine)
        return message("block '{}' is not known to write all of a box of '{}' in an iteration of loop '{}'", block,
                       buffer, loop);
    }
    return std::nullopt;
  }
};

}  // namespace relaxc
