#include "tir/primitives/compute_inline.h"

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

Nodes users_of_result(Step& step, TreeNode* block, const Buffer& buffer) {
  Nodes users = block->tree->blocks();
  std::erase_if(users, [&](TreeNode* user) {
    return user == block || !user->is_leaf_block() || !(read_of(user, buffer) || uses_var(user->block->body, buffer));
  });
  for (TreeNode* user : users) {
    if (other_uses(user, buffer) || !stores_of(user, buffer).empty())
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
  const Buffer buffer = store->buffer;
  std::string why;
  std::optional<AxisDims> dims = dims_of_axes(block, buffer, store->indices, &why);
  if (!dims) step.refuse({block}, "in the store {}", why);
  Nodes users = users_of_result(step, block, buffer);
  auto inlined = [&](const Stmt& stmt) {
    return rewrite(stmt, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!same_node(load->buffer, buffer)) return std::nullopt;
      VarMap axes;
      for (size_t a = 0; a < dims->size(); ++a) {
        const IterVar& axis = block->axes()[a];
        Expr at = (*dims)[a] ? load->indices[*(*dims)[a]] : axis.domain.min;
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
