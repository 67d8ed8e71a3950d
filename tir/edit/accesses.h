// Every load and store of one buffer, changed alike: for primitives that give a buffer another layout, dtype or home.
#pragma once
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

// Uses of the buffer in the subtree that are no loads and stores of single elements (windows, calls, vectors).
Refusal other_uses(const TreeNode* below, const Buffer& buffer);
// The elements that the block's body and init load and store.
std::vector<Ref<BufferLoad>> loads_of(const TreeNode* block, const Buffer& buffer);
std::vector<Ref<BufferStore>> stores_of(const TreeNode* block, const Buffer& buffer);

struct AccessRewrite {
  std::function<Expr(const BufferLoad&)> load;  // values and indices are rewritten already
  std::function<Stmt(const BufferStore&)> store;
};
// Each load and store in the subtree becomes what the functions say; regions follow, also those of blocks around it.
void rewrite_accesses(TreeNode* below, const Buffer& buffer, const AccessRewrite& rewrite);

// The same memory under another type.
Buffer with_buffer_type(const Buffer& buffer, BufferType type);
// A dense buffer of its own for copies of what the other holds.
Buffer cache_buffer(const std::string& name, const Buffer& of, const std::vector<Expr>& shape,
                    const std::string& storage_scope);
// The same with the shape of the other, named after both.
Buffer cache_of(const Buffer& buffer, const std::string& storage_scope);
// `to` is allocated where `from` was, or is the param that it was.
void replace_definition(Tree& tree, const Buffer& from, const Buffer& to);

}  // namespace relaxc::scheduling
