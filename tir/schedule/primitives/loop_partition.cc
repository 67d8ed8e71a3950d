#include "tir/schedule/step.h"

namespace relaxc {

using namespace scheduling;

// What the numbers leave is the last loop. Blocks are copied; each copy covers a part of its axes.
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
    for (const IterVar& axis : block->block->iter_vars) {
      if (axis.kind == IterKind::kReduce && block->block->init && mentions(axis.value, old.var))
        step.refuse({node, block}, fmt::format("the loop drives reduce axis '{}' of block '{}', whose init belongs to "
                                               "the first iteration; decompose the reduction before",
                                               axis.var->name, block->block->name));
    }
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
  Expr rest = facts.simplify(not_negative(facts.simplify(old.extent - sum)));
  if (open) sizes[*open] = rest;
  if (!open && !is_int(rest, 0)) sizes.push_back(rest);

  Expr begin = zero;
  std::vector<std::pair<Expr, Expr>> parts;  // begin, number of iterations
  for (const Expr& size : sizes) {
    Expr left = old.extent - begin;
    Expr count = facts.can_prove(size <= left) ? size : not_negative(min(size, left));
    count = facts.simplify(count);
    if (!is_int(count, 0)) parts.emplace_back(begin, count);
    begin = facts.simplify(begin + size);
  }
  if (parts.empty()) step.refuse({node}, fmt::format("loop '{}' has no iterations", old.var->name));
  std::vector<TreeNode*> loops, nodes;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [from, count] = parts[i];
    TreeNode* part = i + 1 == parts.size() ? node : copy_subtree(tree, node);
    VarRef was = part->loop->var;
    TreeNode* loop = tree.new_loop(fmt::format("{}_{}", old.var->name, i), count, old.kind);
    bool drops = !preserve_unit_iters && is_int(count, 1);
    Expr position = drops ? from : facts.simplify(from + loop->loop->var);
    std::vector<TreeNode*> body = part->children;
    for (TreeNode* child : body) {
      tree.detach(child);
      substitute_below(child, {{was.get(), position}});
      for (TreeNode* block : blocks_below(child)) block->partial = true;
      if (drops) {
        nodes.push_back(child);
      } else {
        tree.append(loop, child);
      }
    }
    if (drops) continue;
    loops.push_back(loop);
    nodes.push_back(loop);
    // Copies get their names when they are made: those made before must be found in the program.
    if (part != node) {
      for (TreeNode* at : nodes) {
        if (!at->parent) tree.insert(node->parent, node->position(), at);
      }
    }
  }
  for (TreeNode* at : nodes) {
    if (!at->parent) tree.insert(node->parent, node->position(), at);
  }
  tree.detach(node);
  refresh_regions_above(nodes[0]);
  return step.loop_results(loops);
}

}  // namespace relaxc
