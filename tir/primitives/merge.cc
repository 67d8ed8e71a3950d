#include <algorithm>

#include "tir/edit/step.h"
#include "tir/edit/written.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Why an iteration of the merged nests would meet what the other has not made, or has made too much of. `vars`: the
// second nest's variables as the first's.
Refusal not_mergeable(const TreeNode* first, TreeNode* a, const TreeNode* second, TreeNode* b, const VarMap& vars) {
  const std::string &one = a->block->name, &two = b->block->name;
  for (const BufferRegion& write : b->block->writes) {
    if (read_of(a, write.buffer) || write_of(a, write.buffer))
      return fmt::format("block '{}' writes '{}', which '{}' accesses", two, write.buffer->name, one);
  }
  for (const BufferRegion& read : b->block->reads) {
    if (!write_of(a, read.buffer)) continue;
    if (a->partial || a->carried || b->carried)
      return fmt::format("block '{}' may not have made all of '{}' in an iteration", one, read.buffer->name);
    if (Refusal refusal = not_complete_or_reduction(a)) return refusal;
    for (const IterVar& axis : a->block->iter_vars) {
      if (axis.kind == IterKind::kSpatial) continue;
      for (const TreeNode* at = first; at && at->is_loop(); at = at->parent) {
        if (mentions(axis.value, at->loop->var))
          return fmt::format("loop '{}' drives axis '{}' of block '{}', whose results are not final in an iteration",
                             at->loop->var->name, axis.var->name, one);
      }
    }
    std::vector<Range> needed = region_at(b, read, second);
    for (Range& range : needed) range = {substitute(range.min, vars), substitute(range.extent, vars)};
    if (!writes_all({a}, read.buffer, first, needed))
      return fmt::format("block '{}' is not known to read only what '{}' makes of '{}' in an iteration", two, one,
                         read.buffer->name);
  }
  return std::nullopt;
}

}  // namespace

LoopRV Schedule::merge(Variadic loop_rvs) {
  Step step(*this, PrimitiveId::k_merge, loop_rvs);
  std::vector<TreeNode*> loops = step.loops(loop_rvs);
  if (loops.size() < 2) step.refuse(loops, "there are fewer than two loops");
  for (size_t i = 0; i < loops.size(); ++i) {
    for (size_t other = 0; other < loops.size(); ++other) {
      if (i != other && is_ancestor(loops[i], loops[other]))
        step.refuse({loops[i], loops[other]},
                    fmt::format("loop '{}' is in loop '{}'", loops[other]->loop->var->name, loops[i]->loop->var->name));
    }
  }
  std::sort(loops.begin(), loops.end(), [](const TreeNode* a, const TreeNode* b) { return precedes(a, b); });
  Tree& tree = *loops[0]->tree;
  TreeNode* above = common_ancestor(loops);
  step.require(has_other_statements(above->is_block() ? above : scope_of(above)), above);
  std::vector<std::vector<TreeNode*>> nests;
  for (TreeNode* loop : loops) {
    std::vector<TreeNode*> nest;
    for (TreeNode* at = loop; at != above; at = at->parent) {
      if (!at->is_loop()) step.refuse({loops[0], loop}, "the loops are in different blocks");
      nest.insert(nest.begin(), at);
    }
    for (size_t i = 0; i < nest.size(); ++i) {
      const For& content = *nest[i]->loop;
      if (i + 1 < nest.size() && nest[i]->children.size() != 1)
        step.refuse({nest[i]}, fmt::format("loop '{}' holds more than the next loop", content.var->name));
      if (binds_thread(content.kind) || !content.annotations.empty() || !is_int(content.min, 0))
        step.refuse({nest[i]},
                    fmt::format("loop '{}' is bound to threads, annotated, or does not start at 0", content.var->name));
      if (nests.empty()) continue;
      const std::vector<TreeNode*>& first = nests[0];
      bool alike = nest.size() == first.size() && content.kind == first[i]->loop->kind &&
                   dtype_of(content.var) == dtype_of(first[i]->loop->var) &&
                   tree.facts.can_prove_equal(content.extent, first[i]->loop->extent);
      if (!alike)
        step.refuse({first[0], nest[0]}, fmt::format("the nests down to '{}' and '{}' are not of the same loops",
                                                     first.back()->loop->var->name, nest.back()->loop->var->name));
    }
    nests.push_back(nest);
  }
  for (size_t second = 1; second < nests.size(); ++second) {
    TreeNode* top = nests[second][0];
    // It moves up, past what stands between.
    for (size_t p = nests[0][0]->position() + 1; p < top->position(); ++p) {
      bool merged = std::any_of(nests.begin(), nests.end(), [&](const auto& n) { return n[0] == above->children[p]; });
      if (merged) continue;
      for (TreeNode* between : blocks_below(above->children[p])) {
        for (TreeNode* block : blocks_below(top)) {
          if (depend(between, block))
            step.refuse({between, block}, fmt::format("block '{}', between the loops, and '{}' depend on each other",
                                                      between->block->name, block->block->name));
        }
      }
    }
    for (size_t first = 0; first < second; ++first) {
      VarMap vars;
      for (size_t i = 0; i < nests[0].size(); ++i)
        vars.emplace(nests[second][i]->loop->var.get(), nests[first][i]->loop->var);
      for (TreeNode* a : blocks_below(nests[first][0])) {
        for (TreeNode* b : blocks_below(top)) {
          if (Refusal why = not_mergeable(nests[first].back(), a, nests[second].back(), b, vars))
            step.refuse({a, b}, *why);
        }
      }
    }
  }
  TreeNode* merged = nests[0].back();
  for (size_t n = 1; n < nests.size(); ++n) {
    VarMap vars;
    for (size_t i = 0; i < nests[0].size(); ++i) vars.emplace(nests[n][i]->loop->var.get(), nests[0][i]->loop->var);
    std::vector<TreeNode*> body = nests[n].back()->children;
    for (TreeNode* child : body) {
      tree.detach(child);
      substitute_below(child, vars);
      tree.append(merged, child);
    }
    tree.remove(nests[n].back());
  }
  return step.loop_result(merged);
}

}  // namespace relaxc
