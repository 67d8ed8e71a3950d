#include "tir/primitives/split.h"

#include "ir/op_names.h"
#include "ir/text/printer.h"
#include "tir/scalable_vectors.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The extents of the new loops, of which there is one for each factor.
struct SplitExtents {
  std::vector<Expr> extents;
  Expr product;
  std::optional<size_t> open;  // the factor that the others leave
};

// A factor that was sampled for an unknown extent is 0 where it is left open.
bool is_left_open(const Step& step, const Factor& factor) {
  return !factor.value || (factor.value->is<Var>() && is_int(step.number(*factor.value), 0));
}

SplitExtents split_extents(Step& step, TreeNode* node, const Factors& factors) {
  const For& old = *node->loop;
  const Analyzer& facts = node->tree->facts;
  DType dtype = dtype_of(old.var);
  SplitExtents result{{}, int_imm(1, dtype), {}};
  auto& [extents, product, open] = result;
  if (factors.empty()) step.refuse({node}, "there are no factors");
  for (size_t i = 0; i < factors.size(); ++i) {
    if (is_left_open(step, factors[i])) {
      if (open) step.refuse({node}, "two factors are None; one can be inferred");
      open = i;
      extents.push_back(product);
      continue;
    }
    Expr given = step.number(*factors[i].value);
    if (!dtype_of(given).is_integral() || dtype_of(given).lanes != 1)
      step.refuse({node}, "factor {} is not a whole number", print_plain(given));
    extents.push_back(index_in_dtype(given, dtype));
    if (auto known = as_int(extents[i]); known && *known < 1) step.refuse({node}, "factor {} is not positive", *known);
    product = product * extents[i];
    if (auto known = as_int(product); known && *known > kLargestNumber)
      step.refuse({node}, "the factors' product, {}, is too large", *known);
  }
  // The factor that is left open is the extent divided by the others' product, rounded up.
  if (open) {
    extents[*open] = facts.simplify(floor_div(old.extent + product - 1, product));
    product = product * extents[*open];
  }
  // A loop that never runs does not get iterations with a condition instead: a sum over it is its init, and lowering
  // looks for that at loops that may be empty.
  if (is_int(old.extent, 0)) extents[open.value_or(0)] = int_imm(0, dtype);
  // Too few iterations would drop some.
  if (!open && !facts.can_prove(product >= old.extent))
    step.refuse({node}, "the factors' product is not known to reach the extent of loop '{}'", old.var);
  return result;
}

// Returns whether the product may divide the extent for some vscale. The machine decides, so the user is trusted.
bool may_divide(const Expr& product, const Expr& extent) {
  bool scalable = false;
  Expr least = rewrite(product, [&](const Ref<Call>& call) -> std::optional<Expr> {
    if (op_name(call) != ops::kVscale) return std::nullopt;
    scalable = true;
    return int_imm(1, dtype_of(call));
  });
  auto factor = as_int(simplify(least)), whole = as_int(extent);
  return scalable && (!factor || !whole || *whole % *factor == 0);
}

// Lets blocks and other statements in the subtree run only where the condition holds.
void guard_below(TreeNode* node, const Expr& condition) {
  if (node->kind == TreeKind::kLeaf) node->leaf = make(IfThenElse{condition, *node->leaf, std::nullopt});
  if (node->is_block()) restrict_block(node, condition);
  if (!node->is_loop()) return;
  for (TreeNode* child : node->children) guard_below(child, condition);
}

}  // namespace

Loops Split::apply(Step& step) const {
  TreeNode* node = step.loop(this->loop);
  const For& old = *node->loop;
  Tree& tree = *node->tree;
  step.require(not_replaceable(node), node);
  const auto [extents, product, open] = split_extents(step, node, factors);
  Nodes loops;
  Expr position = int_imm(0, dtype_of(old.var));
  for (size_t i = 0; i < extents.size(); ++i) {
    // The inner loops of one that threads share are each thread's own.
    const bool is_own = i > 0 && old.kind == ForKind::kParallel;
    TreeNode* loop =
        tree.new_loop(fmt::format("{}_{}", old.var->name, i), extents[i], is_own ? ForKind::kSerial : old.kind);
    loop->span = node->span;
    loops.push_back(loop);
    position = position * extents[i];
    // The loop of a factor 1 stays, as there is a result for each factor; positions do without its variable.
    if (preserve_unit_iters || !is_int(extents[i], 1)) position = position + loop->var();
  }
  position = tree.facts.simplify(position);
  Expr inside = position < old.extent;
  bool is_exact = tree.facts.can_prove(inside);
  if (!is_exact && disable_predication && !may_divide(product, old.extent))
    step.refuse({node},
                "predication is disabled, and the extent of loop '{}' is not known to be a multiple of the factors "
                "(with it, tails are loops of their own: docs/schedules.md)",
                old.var);
  move_body(node, loops.back(), {{old.var.get(), position}});
  if (!is_exact && !disable_predication) guard_below(loops.back(), inside);
  tree.replace(node, tree.wrap(loops.back(), {loops.begin(), loops.end() - 1}));
  return step.loop_results(loops);
}

}  // namespace relaxc
