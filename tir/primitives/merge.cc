#include "tir/primitives/merge.h"

#include <algorithm>

namespace relaxc {

using namespace scheduling;

namespace {

// Returns whether threads share all loops from `outermost` down to this one. Elements that an iteration of these writes
// no other one accesses, in however many steps it writes them.
bool are_shared(const TreeNode* loop, const TreeNode* outermost) {
  for (const TreeNode* at = loop;; at = at->parent) {
    if (at->loop->kind != ForKind::kParallel) return false;
    if (at == outermost) return true;
  }
}

// Returns the node right below `above` on the way to this one.
TreeNode* towards(TreeNode* node, const TreeNode* above) {
  while (node->parent != above) node = node->parent;
  return node;
}

// Returns whether, in each iteration of the first loop, `writers` make what block `b` reads in the same iteration of
// the second one: all of it, or in each iteration of loops right below that count the same. That is seen where rows of
// several axes are counted together, as in (3 * i + j) // 16 and (3 * i + j) % 16.
bool makes_what_is_read(const Nodes& writers, TreeNode* first, TreeNode* b, const TreeNode* second,
                        const BufferRegion& read, VarMap vars) {
  auto needed = map_each(region_at(b, read, second), [&](const Range& range) { return substitute(range, vars); });
  if (writes_all(writers, read.buffer, first, needed)) return true;
  if (writers.empty() || b == second) return false;
  TreeNode *inner = towards(writers[0], first), *other = towards(b, second);
  const bool is_same =
      inner->is_loop() && other->is_loop() && inner->loop->kind == other->loop->kind &&
      std::ranges::all_of(writers, [&](TreeNode* writer) { return towards(writer, first) == inner; }) &&
      first->tree->facts.can_prove_equal(inner->loop->min, other->loop->min) &&
      first->tree->facts.can_prove_equal(inner->loop->extent, other->loop->extent);
  if (!is_same) return false;
  vars.emplace(other->var().get(), inner->var());
  return makes_what_is_read(writers, inner, b, other, read, std::move(vars));
}

// Returns why block `b` of the second nest cannot follow block `a` of the first in each merged iteration. `vars` are
// the second nest's variables in terms of the first's.
Refusal not_mergeable(TreeNode* first, TreeNode* a, const TreeNode* second, TreeNode* b, const VarMap& vars,
                      bool is_shared) {
  for (const BufferRegion& write : b->block->writes) {
    if (read_of(a, write.buffer) || write_of(a, write.buffer))
      return message("block '{}' writes '{}', which '{}' accesses", b, write.buffer, a);
  }
  for (const BufferRegion& read : b->block->reads) {
    if (!write_of(a, read.buffer)) continue;
    if (is_shared) {
      Nodes writers = blocks_below(first);
      std::erase_if(writers, [&](const TreeNode* block) { return !write_of(block, read.buffer); });
      if (makes_what_is_read(writers, first, b, second, read, vars)) continue;
    }
    if (a->partial || a->carried || b->carried)
      return message("block '{}' may not have made all of '{}' in an iteration", a, read.buffer);
    if (Refusal refusal = not_complete_or_reduction(a)) return refusal;
    if (auto driven = find_unfinished(a, first))
      return message("loop '{}' drives axis '{}' of block '{}', whose results are not final in an iteration",
                     driven->loop, driven->axis->var, a);
    if (!makes_what_is_read({a}, first, b, second, read, vars))
      return message(
          "cannot prove that block '{}' reads only elements that '{}' computes of '{}' in the same iteration", b, a,
          read.buffer);
  }
  return std::nullopt;
}

using LoopNest = Nodes;  // outermost first

// Returns the second nest's variables in terms of the first's.
VarMap vars_of_nest(const LoopNest& second, const LoopNest& first) {
  VarMap vars;
  for (size_t i = 0; i < first.size(); ++i) vars.emplace(second[i]->var().get(), first[i]->var());
  return vars;
}

// Returns the loops below `above` down to this one.
LoopNest nest_down_to(Step& step, TreeNode* loop, const TreeNode* above, TreeNode* first_loop) {
  LoopNest nest;
  for (TreeNode* at = loop; at != above; at = at->parent) {
    if (!at->is_loop()) step.refuse({first_loop, loop}, "the loops are in different blocks");
    nest.insert(nest.begin(), at);
  }
  return nest;
}

void require_same_loops(Step& step, const LoopNest& nest, const LoopNest& first) {
  const Analyzer& facts = first[0]->tree->facts;
  for (size_t i = 0; i < nest.size(); ++i) {
    const For& content = *nest[i]->loop;
    if (i + 1 < nest.size() && nest[i]->children.size() != 1)
      step.refuse({nest[i]}, "loop '{}' holds more than the next loop", content.var);
    step.require(not_replaceable(nest[i]), nest[i]);
    bool alike = nest.size() == first.size() && content.kind == first[i]->loop->kind &&
                 dtype_of(content.var) == dtype_of(first[i]->var()) &&
                 facts.can_prove_equal(content.extent, first[i]->loop->extent);
    if (!alike)
      step.refuse({first[0], nest[0]}, "the nests down to '{}' and '{}' are not of the same loops", first.back(),
                  nest.back());
  }
}

// Refuses statements between the nests that depend on the one that moves up past them.
void require_independent_between(Step& step, const std::vector<LoopNest>& nests, TreeNode* top) {
  const Nodes& children = top->parent->children;
  for (size_t p = nests[0][0]->position() + 1; p < top->position(); ++p) {
    bool is_merged = std::ranges::any_of(nests, [&](const LoopNest& n) { return n[0] == children[p]; });
    if (is_merged) continue;
    for (TreeNode* between : blocks_below(children[p])) {
      for (TreeNode* block : blocks_below(top)) {
        if (depend(between, block))
          step.refuse({between, block}, "block '{}', between the loops, and '{}' depend on each other", between, block);
      }
    }
  }
}

void require_mergeable(Step& step, const LoopNest& first, const LoopNest& second) {
  VarMap vars = vars_of_nest(second, first);
  const bool is_shared = are_shared(first.back(), first[0]);
  for (TreeNode* a : blocks_below(first[0])) {
    for (TreeNode* b : blocks_below(second[0]))
      step.require(not_mergeable(first.back(), a, second.back(), b, vars, is_shared), {a, b});
  }
}

}  // namespace

LoopRV Merge::apply(Step& step) const {
  Nodes loops = step.loops(this->loops);
  if (loops.size() < 2) step.refuse(loops, "there are fewer than two loops");
  for (size_t i = 0; i < loops.size(); ++i) {
    for (size_t other = 0; other < loops.size(); ++other) {
      if (i != other && is_ancestor(loops[i], loops[other]))
        step.refuse({loops[i], loops[other]}, "loop '{}' is in loop '{}'", loops[other], loops[i]);
    }
  }
  std::ranges::sort(loops, [](const TreeNode* a, const TreeNode* b) { return precedes(a, b); });
  TreeNode* above = common_ancestor(loops);
  step.require(has_other_statements(above->is_block() ? above : scope_of(above)), above);
  std::vector<LoopNest> nests;
  for (TreeNode* loop : loops) {
    nests.push_back(nest_down_to(step, loop, above, loops[0]));
    require_same_loops(step, nests.back(), nests[0]);
  }
  for (size_t second = 1; second < nests.size(); ++second) {
    require_independent_between(step, nests, nests[second][0]);
    for (size_t first = 0; first < second; ++first) require_mergeable(step, nests[first], nests[second]);
  }
  TreeNode* merged = nests[0].back();
  for (size_t n = 1; n < nests.size(); ++n) {
    move_body(nests[n].back(), merged, vars_of_nest(nests[n], nests[0]));
    above->tree->remove(nests[n].back());
  }
  return step.loop_result(merged);
}

}  // namespace relaxc
