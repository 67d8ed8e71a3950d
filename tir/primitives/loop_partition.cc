#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

// What the numbers leave is the last loop. Blocks are copied; each copy covers a part of its axes and is named after
// its loop, "C_i0" in the first part of loop "i" (so TVM, which has blocks around the parts, too).
Loops Schedule::loop_partition(LoopRV loop_rv, Factors factors, bool preserve_unit_iters) {
  Step step(*this, PrimitiveId::k_loop_partition, loop_rv, factors, preserve_unit_iters);
  TreeNode* node = step.loop(loop_rv);
  const For old = *node->loop;
  Tree& tree = *node->tree;
  const Analyzer& facts = tree.facts;
  DType dtype = dtype_of(old.var);
  if (!is_int(old.min, 0)) step.refuse({node}, fmt::format("loop '{}' does not start at 0", old.var->name));
  if (binds_thread(old.kind) || !old.annotations.empty())
    step.refuse({node}, fmt::format("loop '{}' is bound to threads or annotated", old.var->name));
  if (factors.empty()) step.refuse({node}, "there are no factors");
  for (TreeNode* block : blocks_below(node)) {
    bool has_elements = !block->block->init;
    for (const IterVar& axis : block->block->iter_vars) {
      if (axis.kind == IterKind::kReduce && block->block->init && mentions(axis.value, old.var))
        step.refuse({node, block}, fmt::format("the loop drives reduce axis '{}' of block '{}', whose init belongs to "
                                               "the first iteration; decompose the reduction before",
                                               axis.var->name, block->block->name));
      has_elements = has_elements || mentions(axis.value, old.var);
    }
    if (!has_elements)
      step.refuse({node, block}, fmt::format("each part would set the same elements of block '{}' to its init anew",
                                             block->block->name));
  }
  Expr zero = int_imm(0, dtype), sum = zero;
  std::optional<size_t> open;
  std::vector<Expr> sizes;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i].value && open) step.refuse({node}, "two factors are None; one can be inferred");
    if (!factors[i].value) open = i;
    Expr size = factors[i].value ? cast_to(step.number(*factors[i].value), dtype) : zero;
    if (auto known = as_int(size); known && factors[i].value && *known < 1)
      step.refuse({node}, fmt::format("factor {} is not positive", *known));
    sizes.push_back(size);
    sum = sum + size;
  }
  auto not_negative = [&](const Expr& e) { return facts.can_prove(e >= zero) ? e : max(e, zero); };
  Expr left_over = facts.simplify(old.extent - sum);
  if (auto known = as_int(left_over); known && *known < (open ? 1 : 0))
    step.refuse({node},
                *known < 0 ? fmt::format("the parts take {} iterations more than loop '{}' has", -*known, old.var->name)
                           : fmt::format("the parts leave nothing of loop '{}' for the one left open", old.var->name));
  Expr rest = not_negative(left_over);
  if (open) sizes[*open] = rest;
  if (!open && !is_int(rest, 0)) sizes.push_back(rest);

  Expr begin = zero;
  std::vector<std::pair<Expr, Expr>> parts;  // begin, number of iterations
  for (const Expr& size : sizes) {
    Expr left = old.extent - begin;
    Expr count = facts.can_prove(size <= left) ? size : not_negative(min(size, left));
    count = facts.simplify(count);
    parts.emplace_back(begin, count);
    begin = facts.simplify(begin + size);
  }
  std::vector<TreeNode*> loops;
  std::vector<std::string> names;
  for (TreeNode* block : blocks_below(node)) names.push_back(block->block->name);
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [from, count] = parts[i];
    TreeNode* part = i + 1 == parts.size() ? node : copy_subtree(tree, node);
    VarRef was = part->loop->var;
    loops.push_back(tree.new_loop(fmt::format("{}{}", old.var->name, i), count, old.kind));
    TreeNode* loop = loops.back();
    bool is_unit = !preserve_unit_iters && is_int(count, 1);
    Expr position = is_unit ? from : facts.simplify(from + loop->loop->var);
    std::vector<TreeNode*> body = part->children;
    for (TreeNode* child : body) {
      tree.detach(child);
      substitute_below(child, {{was.get(), position}});
      for (TreeNode* block : blocks_below(child)) block->partial = true;
      tree.append(loop, child);
    }
    // Names are made for what stands in the program.
    tree.insert(node->parent, node->position(), loop);
    for (size_t b = 0; TreeNode * block : blocks_below(loop))
      block->block->name = tree.fresh_block_name(fmt::format("{}_{}", names[b++], loop->loop->var->name));
  }
  tree.detach(node);
  refresh_regions_above(loops[0]);
  return step.loop_results(loops);
}

}  // namespace relaxc
