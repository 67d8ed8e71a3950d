// Rewrites every load and store of one buffer, for primitives that change a buffer's layout, dtype or storage scope.
#pragma once
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

// Refuses uses of the buffer in the subtree that are not loads and stores of single elements (windows, calls, vectors).
Refusal other_uses(const TreeNode* below, const Buffer& buffer);
// Returns the indices of the elements that the block's body and init load (BufferLoad) or store (BufferStore).
template <class Access>
std::vector<std::vector<Expr>> places_of(const TreeNode* block, const Buffer& buffer) {
  std::vector<std::vector<Expr>> result;
  auto take = [&](const Access& access) {
    if (same_node(access.buffer, buffer)) result.push_back(access.indices);
  };
  walk(block->block->body, take);
  if (block->block->init) walk(*block->block->init, take);
  return result;
}

struct AccessRewrite {
  std::function<Expr(const BufferLoad&)> load;  // values and indices are rewritten already
  std::function<Stmt(const BufferStore&)> store;
};
// Replaces each load and store in the subtree by the functions' results, and updates its regions and those around it.
void rewrite_accesses(TreeNode* below, const Buffer& buffer, const AccessRewrite& rewrite);

// Returns a buffer for the same memory with another type.
Buffer with_buffer_type(const Buffer& buffer, BufferType type);
// Returns a new dense buffer for copies of the other's elements.
Buffer cache_buffer(const std::string& name, const Buffer& of, const std::vector<Expr>& shape,
                    const std::string& storage_scope);
// Allocates `to` where `from` was allocated, or makes it the param that `from` was.
void replace_definition(Tree& tree, const Buffer& from, const Buffer& to);

}  // namespace relaxc::scheduling
