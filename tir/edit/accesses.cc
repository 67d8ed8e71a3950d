#include "tir/edit/accesses.h"

#include <algorithm>

#include "ir/regions.h"
#include "tir/analysis/nests.h"

namespace relaxc::scheduling {

static bool uses_otherwise(const Stmt& stmt, const Buffer& buffer) {
  size_t mentioned = 0, plain = 0;
  auto count = [&](const auto& access) {
    plain += same_node(access.buffer, buffer) && !access.predicate && is_element(access.indices);
  };
  walk(
      stmt, [&](const Ref<Var>& var) { mentioned += same_node(var, buffer); },
      [&](const BufferLoad& load) { count(load); }, [&](const BufferStore& store) { count(store); },
      [&](const Block& block) {
        for (const BufferRegion& read : block.reads) plain += same_node(read.buffer, buffer);
        for (const BufferRegion& write : block.writes) plain += same_node(write.buffer, buffer);
      });
  return mentioned != plain;
}

Refusal other_uses(const TreeNode* below, const Buffer& buffer) {
  for (const TreeNode* node : subtree(below)) {
    if (node->kind == TreeKind::kLeaf && uses_otherwise(*node->leaf, buffer))
      return message("a statement uses '{}' in another way than loading and storing elements", buffer);
    if (!node->is_block()) continue;
    const Block& block = *node->block;
    bool other = (node->is_leaf_block() && uses_otherwise(block.body, buffer)) ||
                 (block.init && uses_otherwise(*block.init, buffer)) ||
                 (accesses(node, buffer) && !block.match_buffers.empty());
    if (other) return message("block '{}' uses '{}' in another way than loading and storing elements", node, buffer);
  }
  return std::nullopt;
}

void rewrite_accesses(TreeNode* below, const Buffer& buffer, const AccessRewrite& with) {
  auto in_stmt = [&](const Stmt& stmt) {
    return relaxc::rewrite(
        stmt,
        [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
          return same_node(load->buffer, buffer) ? std::optional(with.load(*load)) : std::nullopt;
        },
        [&](const Ref<BufferStore>& store) -> std::optional<Stmt> {
          return same_node(store->buffer, buffer) ? std::optional(with.store(*store)) : std::nullopt;
        },
        [&](const Ref<Block>& block) -> std::optional<Stmt> {
          if (!find_region(block->reads, buffer) && !find_region(block->writes, buffer)) return std::nullopt;
          Block copy = *block;
          Accesses found = find_accesses(copy.body, copy.init);
          copy.reads = std::move(found.reads);
          copy.writes = std::move(found.writes);
          return make(std::move(copy), block.span());
        });
  };
  Nodes nodes = subtree(below);
  std::ranges::reverse(nodes);  // regions of a block follow from those of the blocks inside
  for (TreeNode* node : nodes) {
    if (node->kind == TreeKind::kLeaf) node->leaf = in_stmt(*node->leaf);
    if (!node->is_block()) continue;
    Block& block = *node->block;
    if (node->is_leaf_block()) block.body = in_stmt(block.body);
    if (block.init) block.init = in_stmt(*block.init);
    if (accesses(node, buffer)) refresh_regions(node);
  }
  refresh_regions_above(below);
}

Buffer with_buffer_type(const Buffer& buffer, BufferType type) {
  return make_var(buffer->name, make(std::move(type)), buffer.span());
}

Buffer cache_buffer(const std::string& name, const Buffer& of, const std::vector<Expr>& shape,
                    const std::string& storage_scope) {
  return make_buffer(name, buffer_type(of).dtype, shape, storage_scope);
}

void replace_definition(Tree& tree, const Buffer& from, const Buffer& to) {
  TreeNode* home = allocating_block(tree, from);
  if (!home) return tree.replace_param(from, to);
  std::ranges::replace_if(home->block->alloc_buffers, [&](const Buffer& old) { return same_node(old, from); }, to);
}

}  // namespace relaxc::scheduling
