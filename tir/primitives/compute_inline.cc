#include "tir/primitives/compute_inline.h"

#include "tir/analysis/nests.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the position of each axis among the indices of the block's store; absent for axes of extent 1, which need
// none.
using StoreDims = std::vector<std::optional<size_t>>;
StoreDims dims_of_store(Step& step, TreeNode* block, const BufferStore& store) {
  const std::vector<IterVar>& axes = block->axes();
  StoreDims dims(axes.size());
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const IterVar* axis = axis_named(block, store.indices[d]);
    std::optional<size_t>* dim = axis ? &dims[static_cast<size_t>(axis - axes.data())] : nullptr;
    bool is_own_axis = dim && !*dim;
    if (is_own_axis) *dim = d;
    if (!is_own_axis && !is_int(buffer_type(store.buffer).shape[d], 1))
      step.refuse({block}, "index {} of the store is not an axis of its own", d);
  }
  for (size_t a = 0; a < dims.size(); ++a) {
    if (!dims[a] && !is_int(axes[a].domain.extent, 1))
      step.refuse({block}, "axis '{}' is not an index of the store", axes[a].var);
  }
  return dims;
}

// Loads are all that can be replaced.
bool only_loads_elements(const TreeNode* user, const Buffer& buffer) {
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
  return mentioned == loaded;
}

Nodes users_of_result(Step& step, TreeNode* block, const Buffer& buffer) {
  Nodes users = block->tree->blocks();
  std::erase_if(users, [&](TreeNode* user) {
    return user == block || !user->is_leaf_block() || !(read_of(user, buffer) || uses_var(user->block->body, buffer));
  });
  for (TreeNode* user : users) {
    if (!only_loads_elements(user, buffer))
      step.refuse({user, block}, "block '{}' uses '{}' in another way than loading elements", user, buffer);
  }
  if (users.empty()) step.refuse({block}, "nothing reads what block '{}' writes", block);
  return users;
}

}  // namespace

void ComputeInline::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  step.require(not_movable(block), block);
  step.require(not_complete(block), block);
  step.require(inputs_change(block), block);
  const BufferStore* store = single_store(block);
  if (!store || block->block->init) step.refuse({block}, "block '{}' is not a single store of an element", block);
  if (is_output(block)) step.refuse({block}, "block '{}' writes an output", block);
  StoreDims dims = dims_of_store(step, block, *store);
  const Buffer buffer = store->buffer;
  Nodes users = users_of_result(step, block, buffer);
  auto inlined = [&](const Stmt& stmt) {
    return rewrite(stmt, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!same_node(load->buffer, buffer)) return std::nullopt;
      VarMap axes;
      for (size_t a = 0; a < dims.size(); ++a) {
        const IterVar& axis = block->axes()[a];
        Expr at = dims[a] ? load->indices[*dims[a]] : axis.domain.min;
        axes.emplace(axis.var.get(), cast_to(at, dtype_of(axis.var)));
      }
      return substitute(store->value, axes);
    });
  };
  for (TreeNode* user : users) {
    user->block->body = inlined(user->block->body);
    if (user->block->init) user->block->init = inlined(*user->block->init);
    refresh_regions_around(user);
  }
  block->tree->remove_with_buffer(block, buffer);
}

}  // namespace relaxc
