#include "ir/text/printer.h"
#include "tir/edit/step.h"
#include "tir/scalable.h"

namespace relaxc {

using namespace scheduling;

Loops Schedule::split(LoopRV loop_rv, Factors factors, bool preserve_unit_iters, bool disable_predication) {
  Step step(*this, PrimitiveId::k_split, loop_rv, factors, preserve_unit_iters, disable_predication);
  TreeNode* node = step.loop(loop_rv);
  const For& old = *node->loop;
  Tree& tree = *node->tree;
  DType dtype = dtype_of(old.var);
  if (!is_int(old.min, 0)) step.refuse({node}, fmt::format("loop '{}' does not start at 0", old.var->name));
  if (binds_thread(old.kind) || !old.annotations.empty())
    step.refuse({node}, fmt::format("loop '{}' is bound to threads or annotated", old.var->name));
  if (factors.empty()) step.refuse({node}, "there are no factors");

  // The factor left open is what the others leave of the extent, rounded up.
  Expr product = int_imm(1, dtype);
  std::optional<size_t> open;
  std::vector<Expr> extents;
  for (size_t i = 0; i < factors.size(); ++i) {
    // Sampled for an extent that is not known, the outermost is 0.
    bool left_open = !factors[i].value || (factors[i].value->is<Var>() && is_int(step.number(*factors[i].value), 0));
    if (left_open) {
      if (open) step.refuse({node}, "two factors are None; one can be inferred");
      open = i;
      extents.push_back(product);
      continue;
    }
    Expr given = step.number(*factors[i].value);
    if (!dtype_of(given).is_integral() || dtype_of(given).lanes != 1)
      step.refuse({node}, fmt::format("factor {} is no whole number", print_expr(given)));
    Expr factor = index_in_dtype(given, dtype);
    if (auto known = as_int(factor); known && *known < 1)
      step.refuse({node}, fmt::format("factor {} is not positive", *known));
    extents.push_back(factor);
    product = product * factor;
    if (auto known = as_int(product); known && *known > kLargestNumber)
      step.refuse({node}, fmt::format("the factors' product, {}, is too large", *known));
  }
  if (open) {
    Expr one = int_imm(1, dtype);
    extents[*open] = tree.facts.simplify(floor_div(old.extent + product - one, product));
    product = product * extents[*open];
  }
  // What never runs has no iterations with a condition instead: a sum over it is its init, and lowering looks for that
  // at loops that may be empty.
  if (is_int(old.extent, 0)) extents[open.value_or(0)] = int_imm(0, dtype);
  // Too few iterations would drop some.
  if (!open && !tree.facts.can_prove(product >= old.extent))
    step.refuse({node},
                fmt::format("the factors' product is not known to reach the extent of loop '{}'", old.var->name));

  std::vector<TreeNode*> loops;
  Expr position = int_imm(0, dtype);
  for (size_t i = 0; i < extents.size(); ++i) {
    TreeNode* loop = tree.new_loop(fmt::format("{}_{}", old.var->name, i), extents[i], old.kind);
    loop->span = node->span;
    loops.push_back(loop);
    position = position * extents[i];
    // The loop stays, as the results are one for each factor; positions do without its variable.
    if (preserve_unit_iters || !is_int(extents[i], 1)) position = position + loop->loop->var;
  }
  position = tree.facts.simplify(position);
  Expr inside = position < old.extent;
  bool exact = tree.facts.can_prove(inside);
  if (!exact && disable_predication) {
    // That vscale divides is the user's word: the machine decides it.
    bool scalable = false;
    Expr least = rewrite(product, [&](const Ref<Call>& call) -> std::optional<Expr> {
      if (op_name(call) != "tir.vscale") return std::nullopt;
      scalable = true;
      return int_imm(1, dtype_of(call));
    });
    auto known = as_int(simplify(least)), extent = as_int(old.extent);
    bool may_divide = scalable && (!known || !extent || *extent % *known == 0);
    if (!may_divide)
      step.refuse({node}, fmt::format("predication is disabled, and the extent of loop '{}' is not known to be a "
                                      "multiple of the factors (with it, tails are loops of their own: "
                                      "docs/schedules.md)",
                                      old.var->name));
    exact = true;
  }

  std::vector<TreeNode*> body = node->children;
  for (TreeNode* child : body) {
    tree.detach(child);
    substitute_below(child, {{old.var.get(), position}});
    if (exact) continue;
    for (TreeNode* block : blocks_below(child)) restrict_block(block, inside);
    if (child->kind == TreeKind::kLeaf) child->leaf = make(IfThenElse{inside, *child->leaf, std::nullopt});
  }
  // Statements inside of inner loops, too.
  if (!exact) {
    auto guard = [&](auto& self, TreeNode* at) -> void {
      if (!at->is_loop()) return;
      for (TreeNode* inner : at->children) {
        if (inner->kind == TreeKind::kLeaf) inner->leaf = make(IfThenElse{inside, *inner->leaf, std::nullopt});
        self(self, inner);
      }
    };
    for (TreeNode* child : body) guard(guard, child);
  }
  for (TreeNode* child : body) tree.append(loops.back(), child);
  tree.replace(node, loops.front());
  for (size_t i = 1; i < loops.size(); ++i) tree.append(loops[i - 1], loops[i]);
  return step.loop_results(loops);
}

}  // namespace relaxc
