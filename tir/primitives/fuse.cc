#include "tir/edit/step.h"

namespace relaxc {

using namespace scheduling;

LoopRV Schedule::fuse(Variadic loop_rvs, bool preserve_unit_iters) {
  Step step(*this, PrimitiveId::k_fuse, loop_rvs, preserve_unit_iters);
  std::vector<TreeNode*> loops = step.loops(loop_rvs);
  if (loops.empty()) step.refuse({}, "there are no loops");
  Tree& tree = *loops[0]->tree;
  for (size_t i = 0; i < loops.size(); ++i) {
    const For& loop = *loops[i]->loop;
    if (!is_int(loop.min, 0)) step.refuse({loops[i]}, fmt::format("loop '{}' does not start at 0", loop.var->name));
    if (binds_thread(loop.kind) || !loop.annotations.empty())
      step.refuse({loops[i]}, fmt::format("loop '{}' is bound to threads or annotated", loop.var->name));
    if (loop.kind != loops[0]->loop->kind)
      step.refuse({loops[i]},
                  fmt::format("loops '{}' and '{}' are of different kinds", loops[0]->loop->var->name, loop.var->name));
    for (TreeNode* block : is_int(loop.extent, 0) ? blocks_below(loops[i]) : std::vector<TreeNode*>()) {
      for (const IterVar& axis : block->block->iter_vars) {
        if (loops.size() > 1 && axis.kind == IterKind::kReduce && mentions(axis.value, loop.var))
          step.refuse({loops[i], block},
                      fmt::format("loop '{}' never runs, so that block '{}' is its init alone: fused with other loops, "
                                  "it would hide of which elements",
                                  loop.var->name, block->block->name));
      }
    }
    if (i == 0) continue;
    if (loops[i]->parent != loops[i - 1] || loops[i - 1]->children.size() != 1)
      step.refuse({loops[i - 1], loops[i]}, fmt::format("loop '{}' is not the only statement in loop '{}'",
                                                        loop.var->name, loops[i - 1]->loop->var->name));
    for (size_t o = 0; o < i; ++o) {
      if (mentions(loop.extent, loops[o]->loop->var))
        step.refuse({loops[o], loops[i]}, fmt::format("the extent of loop '{}' depends on loop '{}'", loop.var->name,
                                                      loops[o]->loop->var->name));
    }
  }
  std::string name;
  Expr total = int_imm(1, dtype_of(loops[0]->loop->var));
  for (const TreeNode* loop : loops) {
    name += (name.empty() ? "" : "_") + loop->loop->var->name;
    if (name.size() > 40) name = "fused";
    total = total * cast_to(loop->loop->extent, dtype_of(total));
  }
  total = tree.facts.simplify(total);
  TreeNode* fused = tree.new_loop(name + "_fused", total, loops[0]->loop->kind);
  fused->span = loops[0]->span;
  VarMap values;
  Expr rest = fused->loop->var;
  for (size_t i = loops.size(); i-- > 0;) {
    const For& loop = *loops[i]->loop;
    if (is_int(total, 0)) {  // no value of any variable matters, but that they depend on the loop does
      values.emplace(loop.var.get(), cast_to(rest, dtype_of(loop.var)));
      continue;
    }
    Expr extent = cast_to(loop.extent, dtype_of(rest));
    bool drops = !preserve_unit_iters && is_int(extent, 1);
    Expr value = i == 0 ? rest : floor_mod(rest, extent);
    values.emplace(loop.var.get(),
                   drops ? int_imm(0, dtype_of(loop.var)) : cast_to(tree.facts.simplify(value), dtype_of(loop.var)));
    rest = floor_div(rest, extent);
  }
  std::vector<TreeNode*> body = loops.back()->children;
  for (TreeNode* child : body) {
    tree.detach(child);
    substitute_below(child, values);
    tree.append(fused, child);
  }
  tree.replace(loops[0], fused);
  for (size_t i = 1; i < loops.size(); ++i) tree.detach(loops[i]);
  return step.loop_result(fused);
}

}  // namespace relaxc
