#include "tir/primitives/loop_partition.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Refuses reductions that each part would begin anew.
void require_no_init_in_parts(Step& step, TreeNode* loop) {
  const VarRef& var = loop->var();
  for (TreeNode* block : blocks_below(loop)) {
    if (!block->block->init) continue;
    bool has_elements = false;
    for (const IterVar& axis : block->axes()) {
      if (axis.kind == IterKind::kReduce && uses_var(axis.value, var))
        step.refuse({loop, block},
                    "the loop drives reduce axis '{}' of block '{}', whose init belongs to the first iteration; "
                    "decompose the reduction before",
                    axis.var, block);
      has_elements = has_elements || uses_var(axis.value, var);
    }
    if (!has_elements)
      step.refuse({loop, block}, "each part would set the same elements of block '{}' to its init anew", block);
  }
}

Expr not_negative(const Expr& e, const Analyzer& facts) {
  Expr zero = int_imm(0, dtype_of(e));
  return facts.can_prove(e >= zero) ? e : max(e, zero);
}

// Returns how many iterations each part takes, given the number of iterations in all.
std::vector<Expr> sizes_of_parts(Step& step, TreeNode* node, const Factors& factors) {
  const For& old = *node->loop;
  const Analyzer& facts = node->tree->facts;
  DType dtype = dtype_of(old.var);
  Expr zero = int_imm(0, dtype), sum = zero;
  std::optional<size_t> open;
  std::vector<Expr> sizes;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i].value && open) step.refuse({node}, "two factors are None; one can be inferred");
    if (!factors[i].value) open = i;
    Expr size = factors[i].value ? cast_to(step.number(*factors[i].value), dtype) : zero;
    if (auto known = as_int(size); known && factors[i].value && *known < 1)
      step.refuse({node}, "factor {} is not positive", *known);
    sizes.push_back(size);
    sum = sum + size;
  }
  Expr left_over = facts.simplify(old.extent - sum);
  auto known = as_int(left_over);
  if (known && *known < 0)
    step.refuse({node}, "the parts take {} iterations more than loop '{}' has", -*known, old.var);
  if (known && *known == 0 && open)
    step.refuse({node}, "the given parts already cover loop '{}'; leave out the open one", old.var);
  Expr rest = not_negative(left_over, facts);
  if (open) sizes[*open] = rest;
  if (!open && !is_int(rest, 0)) sizes.push_back(rest);
  return sizes;
}

// Returns the first iteration of each part and its number of iterations, fewer where the loop ends earlier.
std::vector<Range> find_parts(const For& loop, const std::vector<Expr>& sizes, const Analyzer& facts) {
  std::vector<Range> parts;
  Expr begin = int_imm(0, dtype_of(loop.var));
  for (const Expr& size : sizes) {
    Expr left = loop.extent - begin;
    Expr count = facts.can_prove(size <= left) ? size : not_negative(min(size, left), facts);
    parts.push_back({begin, facts.simplify(count)});
    begin = facts.simplify(begin + size);
  }
  return parts;
}

}  // namespace

// The last loop gets the iterations that are left. Each copy of a block covers a part of its axes and is named after
// its loop, "C_i0" in the first part of loop "i" (as in TVM, which also has blocks around the parts).
Loops LoopPartition::apply(Step& step) const {
  TreeNode* node = step.loop(this->loop);
  const For old = *node->loop;
  Tree& tree = *node->tree;
  step.require(not_replaceable(node), node);
  if (factors.empty()) step.refuse({node}, "there are no factors");
  require_no_init_in_parts(step, node);
  std::vector<Range> parts = find_parts(old, sizes_of_parts(step, node, factors), tree.facts);
  Nodes loops;
  auto names = map_each(blocks_below(node), [](const TreeNode* block) { return block->name(); });
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [from, count] = parts[i];
    TreeNode* part = i + 1 == parts.size() ? node : copy_subtree(tree, node);
    TreeNode* loop = tree.new_loop(fmt::format("{}{}", old.var->name, i), count, old.kind);
    loops.push_back(loop);
    bool is_unit = !preserve_unit_iters && is_int(count, 1);
    Expr position = is_unit ? from : tree.facts.simplify(from + loop->var());
    move_body(part, loop, {{part->var().get(), position}});
    for (TreeNode* block : blocks_below(loop)) block->partial = true;
    // A name is fresh among the blocks of the program, so the copies must stand in it.
    tree.insert(node->parent, node->position(), loop);
    for (size_t b = 0; TreeNode * block : blocks_below(loop))
      block->block->name = tree.fresh_block_name(fmt::format("{}_{}", names[b++], loop->name()));
  }
  tree.detach(node);
  refresh_regions_above(loops[0]);
  return step.loop_results(loops);
}

}  // namespace relaxc
