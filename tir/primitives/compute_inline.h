#pragma once
#include "tir/edit/accesses.h"
#include "tir/edit/move.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ComputeInline {
  BlockRV block;

  static constexpr PrimitiveInfo kInfo{"compute_inline", "inlines an elementwise producer into its consumers"};
  static constexpr auto fields() { return list(required<&ComputeInline::block>("the producer")); }
  void apply(scheduling::Step& step) const {
    scheduling::TreeNode* block = step.block(this->block);
    step.require_all(block, scheduling::not_movable, scheduling::not_complete, scheduling::inputs_change);
    const BufferStore* store = single_store(block);
    if (!store || block->block->init) step.refuse({block}, "block '{}' is not a single store of an element", block);
    if (is_output(block)) step.refuse({block}, "block '{}' writes an output", block);
    const Buffer buffer = store->buffer;
    std::string why;
    std::optional<scheduling::AxisDims> dims = dims_of_axes(block, buffer, store->indices, &why);
    if (!dims) step.refuse({block}, "in the store {}", why);
    scheduling::Nodes users = users_of_result(step, block, buffer);
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
    for (scheduling::TreeNode* user : users) {
      user->block->body = inlined(user->block->body);
      if (user->block->init) user->block->init = inlined(*user->block->init);
      refresh_regions_around(user);
    }
    block->tree->remove_with_buffer(block, buffer);
  }

 private:
  static scheduling::Nodes users_of_result(scheduling::Step& step, scheduling::TreeNode* block, const Buffer& buffer) {
    scheduling::Nodes users = block->tree->blocks();
    std::erase_if(users, [&](scheduling::TreeNode* user) {
      return user == block || !user->is_leaf_block() || !(read_of(user, buffer) || uses_var(user->block->body, buffer));
    });
    for (scheduling::TreeNode* user : users) {
      if (other_uses(user, buffer) || !places_of<BufferStore>(user, buffer).empty())
        step.refuse({user, block}, "block '{}' uses '{}' in another way than loading elements", user, buffer);
    }
    if (users.empty()) step.refuse({block}, "nothing reads what block '{}' writes", block);
    return users;
  }
};

}  // namespace relaxc
