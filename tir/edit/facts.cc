#include "tir/edit/facts.h"

#include <algorithm>

#include "tir/edit/blocks.h"
#include "tir/edit/reduction_order.h"
#include "tir/edit/written.h"

namespace relaxc::scheduling {

namespace {

// Replaces domains that depend on loops (as in `for j in range(i + 1)`) by those over all iterations of these loops:
// loops change while the domains stay.
void widen_domains(TreeNode* block) {
  Nodes loops = loops_above(block);
  for (IterVar& axis : block->axes()) {
    Range& domain = axis.domain;
    if (!mentions_any(domain.min, loops) && !mentions_any(domain.extent, loops)) continue;
    const Analyzer& facts = block->tree->facts;
    auto first = bounds_over(domain.min, running(loops), facts);
    auto end = bounds_over(end_of(domain), running(loops), facts);
    if (first && end) domain = {first->min, facts.simplify(end->max - first->min)};
  }
}

bool is_partial(const TreeNode* block) {
  if (block->block->predicate) return true;
  const Analyzer& facts = block->tree->facts;
  Nodes loops = loops_above(block);
  // In a nest that is not a box (a triangle) the axes go through their domains, but not through all of their pairs.
  for (const TreeNode* at : loops) {
    if (mentions_any(at->loop->min, loops) || mentions_any(at->loop->extent, loops)) return true;
  }
  RunningVars vars = running(loops);
  return !std::ranges::all_of(block->axes(), [&](const IterVar& axis) {
    auto bounds = bounds_over(axis.value, vars, facts);
    return bounds && facts.can_prove_equal(bounds->min, axis.domain.min) &&
           facts.can_prove_equal(bounds->max + int_imm(1, dtype_of(bounds->max)), end_of(axis.domain));
  });
}

// A block that reads what a block behind it in the same loop made carries values over iterations, and so does one that
// reads more than the iteration has made so far.
void find_carried_between_blocks(Tree& tree) {
  for (TreeNode* reader : tree.blocks()) {
    TreeNode* scope = scope_of(reader);
    for (const BufferRegion& read : reader->block->reads) {
      for (TreeNode* writer : writers(scope, read.buffer)) {
        if (writer == reader) continue;
        TreeNode* shared = common_ancestor({writer, reader});
        if (shared->is_block()) continue;
        // The update of a sum reads the values of the init and its own earlier ones.
        bool covered =
            precedes(writer, reader) && writes_all({writer}, read.buffer, shared, region_at(reader, read, shared));
        if (!covered) writer->carried = reader->carried = true;
      }
    }
  }
}

// Returns whether iterations of the block's spatial axes may store to the same element, or one reads an element that
// another stores. Reduce axes are a matter of their order (reduction_order.h).
bool shares_elements(const TreeNode* block) {
  Tree& tree = *block->tree;
  Nodes axes;
  VarMap loops_of_axes;
  for (const IterVar& axis : block->axes()) {
    if (axis.kind == IterKind::kReduce || is_int(axis.domain.extent, 1)) continue;
    axes.push_back(tree.new_loop(axis.var->name, axis.domain.extent));
    loops_of_axes.emplace(axis.var.get(), axis.domain.min + axes.back()->var());
  }
  for (const BufferRegion& write : block->block->writes) {
    Nodes loops = axes;
    std::vector<Expr> elements;
    // Dims without axes are the same for all iterations, so the other dims must keep the iterations apart.
    auto has_axes = [&](const Range& range) {
      return std::ranges::any_of(block->axes(), [&](const IterVar& axis) {
        return uses_var(range.min, axis.var) || uses_var(range.extent, axis.var);
      });
    };
    for (const Range& range : write.ranges) {
      if (!has_axes(range)) continue;
      elements.push_back(substitute(range.min, loops_of_axes));
      if (is_int(range.extent, 1)) continue;
      loops.push_back(tree.new_loop("element", range.extent));
      elements.back() = elements.back() + cast_to(loops.back()->var(), dtype_of(elements.back()));
    }
    if (!find_injective_map(elements, ranges_of(loops), {}, tree.facts)) return true;
    const BufferRegion* read = read_of(block, write.buffer);
    for (size_t d = 0; read && d < write.ranges.size(); ++d) {
      if (has_axes(write.ranges[d]) && !covers(write.ranges[d], read->ranges[d], tree.facts)) return true;
    }
  }
  return false;
}

}  // namespace

void find_facts(Tree& tree) {
  for (TreeNode* block : tree.blocks()) {
    widen_domains(block);
    block->partial = is_partial(block);
    block->in_order = block->is_leaf_block() && needs_order(*block->block);
  }
  find_carried_between_blocks(tree);
  for (TreeNode* block : tree.blocks()) {
    block->meets_itself = block != tree.root() && shares_elements(block);
    block->carried = block->carried || block->meets_itself;
  }
}

}  // namespace relaxc::scheduling
