#include <algorithm>

#include "ir/undefined.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

Blocks Schedule::cache_index(BlockRV block_rv, std::string storage_scope, int64_t cse_thresh) {
  Step step(*this, PrimitiveId::k_cache_index, block_rv, storage_scope, cse_thresh);
  TreeNode* block = step.block(block_rv);
  Tree& tree = *block->tree;
  TreeNode* scope = scope_of(block);
  if (!scope || !block->is_leaf_block()) step.refuse({block}, "the block holds blocks");
  step.require(not_movable(block), block);
  struct Index {
    Expr value;
    int64_t uses;
    std::vector<IterVar> axes;
    std::optional<Buffer> buffer;
  };
  std::vector<Index> found;
  std::vector<VarRef> outer = free_vars(block->block->body);
  auto consider = [&](const Expr& e) {
    if (!e.is<Binary>() || dtype_of(e).lanes != 1) return;
    bool plain = true;
    walk_nodes(e, [&](const NodeRef& node) {
      plain = plain && (node.is<Binary>() || node.is<IntImm>() || node.is<Var>());
      if (node.is<Var>())
        plain = plain && std::any_of(outer.begin(), outer.end(), [&](const VarRef& v) { return same_node(v, node); });
      return plain;
    });
    // Here the index is computed for all values of the axes, in the block perhaps beneath a guard.
    if (!plain || may_be_undefined(e, tree.facts)) return;
    auto known = std::find_if(found.begin(), found.end(), [&](const Index& i) { return structural_equal(i.value, e); });
    if (known != found.end()) {
      ++known->uses;
      return;
    }
    Index index{e, 1, {}, {}};
    for (const IterVar& axis : block->block->iter_vars) {
      if (mentions(e, axis.var)) index.axes.push_back(axis);
      if (mentions(e, axis.var) && !is_int(axis.domain.min, 0)) return;
    }
    if (!index.axes.empty()) found.push_back(index);
  };
  walk(block->block->body, [&](const BufferLoad& load) {
    for (const Expr& index : load.indices) consider(index);
  });
  std::erase_if(found, [&](const Index& index) { return index.uses < cse_thresh; });
  std::vector<TreeNode*> made;
  for (Index& index : found) {
    std::vector<Expr> extents;
    for (const IterVar& axis : index.axes) extents.push_back(axis.domain.extent);
    std::string name = fmt::format("index_{}", made.size());
    index.buffer = make_buffer(name, dtype_of(index.value), extents, storage_scope);
    TreeNode* nest = compute_nest(tree, name, extents, [&](const std::vector<Expr>& position) {
      VarMap here;
      for (size_t a = 0; a < position.size(); ++a) here.emplace(index.axes[a].var.get(), position[a]);
      return store(*index.buffer, substitute(index.value, here), position);
    });
    tree.insert(scope, child_towards(scope, block)->position(), nest);
    scope->block->alloc_buffers.push_back(*index.buffer);
    made.push_back(blocks_below(nest)[0]);
  }
  block->block->body = rewrite(block->block->body, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    BufferLoad copy = *load;
    bool changed = false;
    for (Expr& at : copy.indices) {
      for (const Index& index : found) {
        if (!structural_equal(at, index.value)) continue;
        std::vector<Expr> vars;
        for (const IterVar& axis : index.axes) vars.push_back(axis.var);
        at = relaxc::load(*index.buffer, vars);
        changed = true;
        break;
      }
    }
    return changed ? std::optional<Expr>(make(std::move(copy), load.type(), load.span())) : std::nullopt;
  });
  refresh_regions(block);
  refresh_regions_above(block);
  return step.block_results(made);
}

}  // namespace relaxc
