#include "tir/primitives/cache_index.h"

#include <algorithm>

#include "ir/undefined.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// An index expression of a block's loads, how often it stands there, the axes it depends on, and its values.
struct CachedIndex {
  Expr value;
  int64_t uses;
  std::vector<IterVar> axes;
  std::optional<Buffer> buffer = {};
};

// Returns whether the index can be computed for all values of the axes, not only where the block guards it.
bool is_computable(const Expr& e, const std::vector<VarRef>& outer, const Analyzer& facts) {
  if (!e.is<Binary>() || dtype_of(e).lanes != 1) return false;
  auto is_other = [&](const NodeRef& node) {
    return !node.is<Binary>() && !node.is<IntImm>() && !(node.is<Var>() && contains(outer, node));
  };
  return !any_node(e, is_other) && !may_be_undefined(e, facts);
}

// Returns the entry of the value, or the end.
auto find_index(auto& list, const Expr& value) {
  return std::ranges::find_if(list, [&](const CachedIndex& index) { return structural_equal(index.value, value); });
}

std::vector<CachedIndex> find_indices(const TreeNode* block, int64_t least_uses) {
  std::vector<CachedIndex> found;
  const std::vector<VarRef> outer = free_vars(block->block->body);
  auto consider = [&](const Expr& e) {
    if (!is_computable(e, outer, block->tree->facts)) return;
    auto known = find_index(found, e);
    if (known != found.end()) {
      ++known->uses;
      return;
    }
    CachedIndex index{e, 1, {}};
    for (const IterVar& axis : block->axes()) {
      if (!uses_var(e, axis.var)) continue;
      if (!is_int(axis.domain.min, 0)) return;
      index.axes.push_back(axis);
    }
    if (!index.axes.empty()) found.push_back(index);
  };
  walk(block->block->body, [&](const BufferLoad& load) {
    for (const Expr& index : load.indices) consider(index);
  });
  std::erase_if(found, [&](const CachedIndex& index) { return index.uses < least_uses; });
  return found;
}

// Makes a nest that computes all values of the index into a buffer.
TreeNode* nest_of_index(Tree& tree, CachedIndex& index, const std::string& name, const std::string& storage_scope) {
  auto extents = map_each(index.axes, [](const IterVar& axis) { return axis.domain.extent; });
  index.buffer = make_buffer(name, dtype_of(index.value), extents, storage_scope);
  return compute_nest(tree, name, extents, [&](const std::vector<Expr>& position) {
    return store(*index.buffer, substitute(index.value, axes_as(index.axes, position)), position);
  });
}

Stmt with_cached_indices(const Stmt& body, const std::vector<CachedIndex>& cached) {
  return rewrite(body, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    BufferLoad copy = *load;
    bool changed = false;
    for (Expr& at : copy.indices) {
      auto index = find_index(cached, at);
      if (index == cached.end()) continue;
      at = relaxc::load(*index->buffer, map_each(index->axes, [](const IterVar& axis) -> Expr { return axis.var; }));
      changed = true;
    }
    return changed ? std::optional<Expr>(make(std::move(copy), load.type(), load.span())) : std::nullopt;
  });
}

}  // namespace

Blocks CacheIndex::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Tree& tree = *block->tree;
  TreeNode* scope = scope_of(block);
  if (!scope || !block->is_leaf_block()) step.refuse({block}, "the block holds blocks");
  step.require(not_movable(block), block);
  std::vector<CachedIndex> found = find_indices(block, cse_thresh);
  Nodes made;
  for (CachedIndex& index : found) {
    TreeNode* nest = nest_of_index(tree, index, fmt::format("index_{}", made.size()), storage_scope);
    tree.insert(scope, child_towards(scope, block)->position(), nest);
    scope->block->alloc_buffers.push_back(*index.buffer);
    made.push_back(blocks_below(nest)[0]);
  }
  block->block->body = with_cached_indices(block->block->body, found);
  refresh_regions_around(block);
  return step.block_results(made);
}

}  // namespace relaxc
