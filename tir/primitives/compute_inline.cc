#include "tir/analysis/nests.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

void Schedule::compute_inline(BlockRV block_rv) {
  Step step(*this, PrimitiveId::k_compute_inline, block_rv);
  TreeNode* block = step.block(block_rv);
  Tree& tree = *block->tree;
  const std::string& name = block->block->name;
  step.require(not_movable(block), block);
  step.require(not_complete(block), block);
  step.require(inputs_change(block), block);
  const BufferStore* store = single_store(block);
  if (!store || block->block->init)
    step.refuse({block}, fmt::format("block '{}' is not a single store of an element", name));
  if (is_output(block)) step.refuse({block}, fmt::format("block '{}' writes an output", name));
  // Where each axis stands among the indices.
  std::vector<std::optional<size_t>> dims(block->block->iter_vars.size());
  for (size_t d = 0; d < store->indices.size(); ++d) {
    bool is_axis = false;
    for (size_t a = 0; a < dims.size(); ++a) {
      if (!same_node(store->indices[d], block->block->iter_vars[a].var)) continue;
      if (dims[a]) break;
      dims[a] = d;
      is_axis = true;
    }
    if (!is_axis && !is_int(buffer_type(store->buffer).shape[d], 1))
      step.refuse({block}, fmt::format("index {} of the store is not an axis of its own", d));
  }
  for (size_t a = 0; a < dims.size(); ++a) {
    const IterVar& axis = block->block->iter_vars[a];
    if (!dims[a] && !is_int(axis.domain.extent, 1))
      step.refuse({block}, fmt::format("axis '{}' is not an index of the store", axis.var->name));
  }
  Buffer buffer = store->buffer;
  Expr value = store->value;
  std::vector<TreeNode*> users;
  for (TreeNode* user : tree.blocks()) {
    if (user == block || !user->is_leaf_block() || !(read_of(user, buffer) || mentions(user->block->body, buffer)))
      continue;
    users.push_back(user);
    // Loads are all that can be replaced.
    size_t mentioned = 0, loaded = 0;
    auto count = [&](const Stmt& stmt) {
      walk(
          stmt, [&](const Ref<Var>& var) { mentioned += same_node(var, buffer); },
          [&](const BufferLoad& load) {
            loaded += same_node(load.buffer, buffer) && !load.predicate && is_element(load.indices);
          });
    };
    count(user->block->body);
    if (user->block->init) count(*user->block->init);
    for (const MatchBuffer& window : user->block->match_buffers) mentioned += same_node(window.source.buffer, buffer);
    if (mentioned != loaded)
      step.refuse({user, block}, fmt::format("block '{}' uses '{}' in another way than loading elements",
                                             user->block->name, buffer->name));
  }
  if (users.empty()) step.refuse({block}, fmt::format("nothing reads what block '{}' writes", name));
  auto inlined = [&](const Stmt& stmt) {
    return rewrite(stmt, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!same_node(load->buffer, buffer)) return std::nullopt;
      VarMap axes;
      for (size_t a = 0; a < dims.size(); ++a) {
        const IterVar& axis = block->block->iter_vars[a];
        Expr at = dims[a] ? load->indices[*dims[a]] : axis.domain.min;
        axes.emplace(axis.var.get(), cast_to(at, dtype_of(axis.var)));
      }
      return substitute(value, axes);
    });
  };
  for (TreeNode* user : users) {
    user->block->body = inlined(user->block->body);
    if (user->block->init) user->block->init = inlined(*user->block->init);
    refresh_regions(user);
    refresh_regions_above(user);
  }
  TreeNode* scope = scope_of(block);
  tree.remove(block);
  std::erase_if(scope->block->alloc_buffers, [&](const Buffer& own) { return same_node(own, buffer); });
  step.done();
}

}  // namespace relaxc
