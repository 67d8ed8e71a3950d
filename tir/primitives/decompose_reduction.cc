#include "tir/primitives/decompose_reduction.h"

#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The loops around a reduction, divided at the place of its new init.
struct InitLoops {
  Nodes outside, inside;
  Nodes spatial;   // inside, to be made again for the init
  Nodes left_out;  // the others inside
};

InitLoops find_init_loops(Step& step, TreeNode* block, TreeNode* loop) {
  step.require_around(loop, block);
  InitLoops result{loops_above(loop), loops_from(loop, block), {}, {}};
  // Elements that other blocks reuse in later iterations (rolling_buffer) would not get an init there.
  for (TreeNode* other : block->carried ? blocks_below(loop) : Nodes()) {
    if (other != block)
      step.refuse({block, other, loop}, "block '{}' takes what an iteration of loop '{}' made", other, loop);
  }
  // Iterations that repeat an update would need the init each time.
  std::string why;
  if (!has_affine_bindings(block, result.inside, &why)) step.refuse({block}, why);
  for (TreeNode* outer : result.outside) {
    if (drives(outer, block->axes()).reduce)
      step.refuse({block, outer}, "loop '{}', outside of '{}', drives a reduce axis", outer, loop);
  }
  for (TreeNode* inner : result.inside) {
    Drives driven = drives(inner, block->axes());
    if (driven.spatial && driven.reduce) step.refuse({block, inner}, "loop '{}' drives spatial and reduce axes", inner);
    (driven.spatial ? result.spatial : result.left_out).push_back(inner);
  }
  return result;
}

// Returns a reduce axis that is not known to have its first value in the loops' first iterations, or null.
const IterVar* axis_begun_before(const TreeNode* block, const Nodes& loops) {
  VarMap begins;
  for (const TreeNode* loop : loops) begins.emplace(loop->var().get(), loop->loop->min);
  for (const IterVar& axis : block->axes()) {
    Expr first = substitute(axis.value, begins);
    if (axis.kind != IterKind::kSpatial && !block->tree->facts.can_prove_equal(first, axis.domain.min)) return &axis;
  }
  return nullptr;
}

// Refuses a surrounding block that runs once per step of a reduce axis: the init would run each time.
void require_entered_once(Step& step, TreeNode* block) {
  for (TreeNode* scope = scope_of(block); scope; scope = scope_of(scope)) {
    for (const IterVar& outer : scope->axes()) {
      for (const IterVar& axis : block->axes()) {
        if (axis.kind != IterKind::kSpatial && uses_var(axis.value, outer.var))
          step.refuse({block, scope}, "axis '{}' of the block around it drives a reduce axis", outer.var);
      }
    }
  }
}

// Returns the conditions that say which elements there are; those on reduce iterations are left out.
std::vector<Expr> conditions_of_init(Step& step, TreeNode* block, const InitLoops& loops) {
  std::vector<Expr> result;
  for (const Expr& condition : conjuncts(block->block->predicate)) {
    if (!mentions_any(condition, loops.left_out)) {
      result.push_back(condition);
    } else if (mentions_any(condition, loops.outside) || mentions_any(condition, loops.spatial)) {
      step.refuse({block}, "a condition of the block ties spatial and reduce loops together");
    }
  }
  return result;
}

// Makes a block of the init in loops of its own, copies of the spatial ones.
TreeNode* nest_of_init(TreeNode* block, const Nodes& spatial_loops, const std::vector<Expr>& conditions) {
  Tree& tree = *block->tree;
  Nodes loops;
  VarMap vars, axes;
  for (const TreeNode* at : spatial_loops) {
    const For& old = *at->loop;
    ForKind kind = binds_thread(old.kind) ? ForKind::kSerial : old.kind;
    loops.push_back(tree.new_loop(old.var->name + "_init", substitute(old.extent, vars), kind));
    vars.emplace(old.var.get(), loops.back()->var());
  }
  Block init{.name = tree.fresh_block_name(block->name() + "_init"),
             .predicate = conjunction(substitute(conditions, vars)),
             .body = no_op()};
  for (const IterVar& axis : block->axes()) {
    if (axis.kind == IterKind::kSpatial) init.iter_vars.push_back(fresh_axis(axis, vars, axes));
  }
  init.body = substitute(*block->block->init, axes);
  TreeNode* node = tree.import(make(std::move(init)))[0];
  node->partial = block->partial;
  refresh_regions(node);
  return tree.wrap(node, loops);
}

}  // namespace

BlockRV DecomposeReduction::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  TreeNode* loop = step.loop(this->loop);
  step.require(not_reduction_within(loop, block), block);
  InitLoops loops = find_init_loops(step, block, loop);
  // Among the parts of a partitioned reduce loop only the first one has the init.
  const IterVar* begun = not_reduction(block) ? axis_begun_before(block, loops.left_out) : nullptr;
  if (begun)
    step.refuse({block, loop},
                "loop '{}' is not known to begin with the first iteration of axis '{}', which has the init", loop,
                begun->var);
  require_entered_once(step, block);
  TreeNode* nest = nest_of_init(block, loops.spatial, conditions_of_init(step, block, loops));
  block->tree->insert(loop->parent, loop->position(), nest);
  block->block->init.reset();
  block->block->name = block->tree->fresh_block_name(block->name() + "_update");
  refresh_regions_around(block);
  return step.block_result(blocks_below(nest)[0]);
}

}  // namespace relaxc
