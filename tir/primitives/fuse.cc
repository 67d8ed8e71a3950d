#include "tir/primitives/fuse.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Refuses a reduce loop that never runs: a fused loop would hide which elements get their init alone.
void require_runs(Step& step, TreeNode* loop) {
  if (!is_int(loop->loop->extent, 0)) return;
  for (TreeNode* block : blocks_below(loop)) {
    for (const IterVar& axis : block->axes()) {
      if (axis.kind == IterKind::kReduce && uses_var(axis.value, loop->var()))
        step.refuse({loop, block},
                    "loop '{}' never runs, so that block '{}' is its init alone: fused with other loops, it would hide "
                    "of which elements",
                    loop, block);
    }
  }
}

void require_fusable(Step& step, const Nodes& loops) {
  const For& first = *loops[0]->loop;
  for (size_t i = 0; i < loops.size(); ++i) {
    const For& loop = *loops[i]->loop;
    step.require(not_replaceable(loops[i]), loops[i]);
    if (loop.kind != first.kind)
      step.refuse({loops[i]}, "loops '{}' and '{}' are of different kinds", first.var, loop.var);
    if (loops.size() > 1) require_runs(step, loops[i]);
    if (i == 0) continue;
    if (loops[i]->parent != loops[i - 1] || loops[i - 1]->children.size() != 1)
      step.refuse({loops[i - 1], loops[i]}, "loop '{}' is not the only statement in loop '{}'", loop.var, loops[i - 1]);
    for (size_t o = 0; o < i; ++o) {
      if (uses_var(loop.extent, loops[o]->var()))
        step.refuse({loops[o], loops[i]}, "the extent of loop '{}' depends on loop '{}'", loop.var, loops[o]);
    }
  }
}

// Returns a loop with as many iterations as these have together.
TreeNode* fused_loop(const Nodes& loops) {
  Tree& tree = *loops[0]->tree;
  std::string name;
  Expr total = int_imm(1, dtype_of(loops[0]->var()));
  for (const TreeNode* loop : loops) {
    name += (name.empty() ? "" : "_") + loop->name();
    if (name.size() > 40) name = "fused";
    total = total * cast_to(loop->loop->extent, dtype_of(total));
  }
  TreeNode* fused = tree.new_loop(name + "_fused", tree.facts.simplify(total), loops[0]->loop->kind);
  fused->span = loops[0]->span;
  return fused;
}

// Returns the old variables in terms of the new one, as digits in mixed radix.
VarMap values_in(const For& fused, const Nodes& loops, bool preserve_unit_iters) {
  const Analyzer& facts = loops[0]->tree->facts;
  bool never_runs = is_int(fused.extent, 0);
  VarMap values;
  Expr rest = fused.var;
  for (size_t i = loops.size(); i-- > 0;) {
    const For& loop = *loops[i]->loop;
    DType dtype = dtype_of(loop.var);
    if (never_runs) {  // no value of any variable matters, but that they depend on the loop does
      values.emplace(loop.var.get(), cast_to(rest, dtype));
      continue;
    }
    Expr extent = cast_to(loop.extent, dtype_of(rest));
    bool drops = !preserve_unit_iters && is_int(extent, 1);
    Expr value = i == 0 ? rest : floor_mod(rest, extent);
    values.emplace(loop.var.get(), drops ? int_imm(0, dtype) : cast_to(facts.simplify(value), dtype));
    rest = floor_div(rest, extent);
  }
  return values;
}

}  // namespace

LoopRV Fuse::apply(Step& step) const {
  Nodes loops = step.loops(this->loops);
  if (loops.empty()) step.refuse({}, "there are no loops");
  require_fusable(step, loops);
  Tree& tree = *loops[0]->tree;
  TreeNode* fused = fused_loop(loops);
  move_body(loops.back(), fused, values_in(*fused->loop, loops, preserve_unit_iters));
  tree.replace(loops[0], fused);
  for (size_t i = 1; i < loops.size(); ++i) tree.detach(loops[i]);
  return step.loop_result(fused);
}

}  // namespace relaxc
