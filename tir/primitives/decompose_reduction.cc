#include <algorithm>

#include "tir/edit/affine.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

BlockRV Schedule::decompose_reduction(BlockRV block_rv, LoopRV loop_rv) {
  Step step(*this, PrimitiveId::k_decompose_reduction, block_rv, loop_rv);
  TreeNode* block = step.block(block_rv);
  TreeNode* loop = step.loop(loop_rv);
  Tree& tree = *block->tree;
  step.require(not_reduction(block, loop), block);
  std::vector<TreeNode*> above = loops_above(block);
  auto at = std::find(above.begin(), above.end(), loop);
  if (at == above.end())
    step.refuse({block, loop},
                fmt::format("loop '{}' is not around block '{}'", loop->loop->var->name, block->block->name));
  std::vector<TreeNode*> outside(above.begin(), at), inside(at, above.end());
  // Elements that others take over in later iterations (rolling_buffer) would get no init there.
  for (TreeNode* other : block->carried ? blocks_below(loop) : std::vector<TreeNode*>()) {
    if (other != block)
      step.refuse({block, other, loop}, fmt::format("block '{}' takes what an iteration of loop '{}' made",
                                                    other->block->name, loop->loop->var->name));
  }
  // Iterations that repeat an update would need the init each time.
  std::string why;
  if (!has_affine_bindings(block, inside, &why)) step.refuse({block}, why);

  // Loops inside that drive spatial axes are made again for the init; the others are left out.
  std::vector<TreeNode*> left_out, init_loops;
  VarMap vars;
  for (TreeNode* inner : above) {
    bool spatial = false, reduce = false;
    for (const IterVar& axis : block->block->iter_vars) {
      if (mentions(axis.value, inner->loop->var)) (axis.kind == IterKind::kSpatial ? spatial : reduce) = true;
    }
    bool is_outside = std::find(outside.begin(), outside.end(), inner) != outside.end();
    if (reduce && is_outside)
      step.refuse({block, inner}, fmt::format("loop '{}', outside of '{}', drives a reduce axis",
                                              inner->loop->var->name, loop->loop->var->name));
    if (reduce && spatial)
      step.refuse({block, inner}, fmt::format("loop '{}' drives spatial and reduce axes", inner->loop->var->name));
    if (is_outside) continue;
    if (!spatial) left_out.push_back(inner);
    if (!spatial) continue;
    ForKind kind = binds_thread(inner->loop->kind) ? ForKind::kSerial : inner->loop->kind;
    init_loops.push_back(tree.new_loop(inner->loop->var->name + "_init", substitute(inner->loop->extent, vars), kind));
    vars.emplace(inner->loop->var.get(), init_loops.back()->loop->var);
  }
  // Of the parts of a partitioned reduce loop only the first one has the init.
  if (not_reduction(block)) {
    VarMap begins;
    for (const TreeNode* inner : left_out) begins.emplace(inner->loop->var.get(), inner->loop->min);
    for (const IterVar& axis : block->block->iter_vars) {
      bool is_first = axis.kind == IterKind::kSpatial ||
                      tree.facts.can_prove_equal(substitute(axis.value, begins), axis.domain.min);
      if (!is_first)
        step.refuse({block, loop}, fmt::format("loop '{}' is not known to begin with the first iteration of axis '{}', "
                                               "which has the init",
                                               loop->loop->var->name, axis.var->name));
    }
  }
  // A block around it that several iterations enter would init each time.
  for (TreeNode* scope = scope_of(block); scope; scope = scope_of(scope)) {
    for (const IterVar& outer : scope->block->iter_vars) {
      for (const IterVar& axis : block->block->iter_vars) {
        if (axis.kind != IterKind::kSpatial && mentions(axis.value, outer.var))
          step.refuse({block, scope},
                      fmt::format("axis '{}' of the block around it drives a reduce axis", outer.var->name));
      }
    }
  }
  std::vector<Expr> conditions;
  for (const Expr& condition : conjuncts(block->block->predicate)) {
    if (!mentions_any(condition, left_out)) {
      conditions.push_back(substitute(condition, vars));
      continue;
    }
    bool mixed = mentions_any(condition, outside);
    for (const TreeNode* inner : inside) {
      bool is_left_out = std::find(left_out.begin(), left_out.end(), inner) != left_out.end();
      mixed = mixed || (!is_left_out && mentions(condition, inner->loop->var));
    }
    if (mixed) step.refuse({block}, "a condition of the block ties spatial and reduce loops together");
  }
  VarMap axes;
  Block init{.name = tree.fresh_block_name(block->block->name + "_init"),
             .iter_vars = {},
             .predicate = conjunction(conditions),
             .reads = {},
             .writes = block->block->writes,
             .annotations = {},
             .alloc_buffers = {},
             .match_buffers = {},
             .init = std::nullopt,
             .body = *block->block->init};
  for (const IterVar& axis : block->block->iter_vars) {
    if (axis.kind != IterKind::kSpatial) continue;
    VarRef var = make_var(axis.var->name, axis.var.type());
    axes.emplace(axis.var.get(), var);
    init.iter_vars.push_back({var, axis.domain, axis.kind, substitute(axis.value, vars)});
  }
  init.body = substitute(init.body, axes);
  for (BufferRegion& write : init.writes) {
    for (Range& range : write.ranges) range = {substitute(range.min, axes), substitute(range.extent, axes)};
  }
  TreeNode* init_block = tree.import(make(std::move(init)))[0];
  init_block->partial = block->partial;
  refresh_regions(init_block);
  TreeNode* nest = tree.wrap(init_block, init_loops);
  tree.insert(loop->parent, loop->position(), nest);
  block->block->init.reset();
  block->block->name = tree.fresh_block_name(block->block->name + "_update");
  refresh_regions(block);
  refresh_regions_above(block);
  return step.block_result(init_block);
}

}  // namespace relaxc
