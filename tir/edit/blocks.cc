#include "tir/edit/blocks.h"

#include <algorithm>

#include "ir/regions.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/nests.h"
#include "tir/edit/affine.h"

namespace relaxc::scheduling {

const BufferRegion* find_region(const std::vector<BufferRegion>& regions, const Buffer& buffer) {
  for (const BufferRegion& region : regions) {
    if (same_node(region.buffer, buffer)) return &region;
  }
  return nullptr;
}

namespace {

template <class F>
std::vector<TreeNode*> blocks_of_scope(const TreeNode* scope, F&& wanted) {
  std::vector<TreeNode*> result;
  if (!scope) return result;  // of the root
  for (TreeNode* child : scope->children) {
    for (TreeNode* block : blocks_below(child)) {
      if (wanted(block)) result.push_back(block);
    }
  }
  return result;
}

// Memory of the program that only blocks in the loop use.
bool is_private_to(const TreeNode* loop, const Buffer& buffer) {
  const Tree& tree = *loop->tree;
  if (!allocating_block(tree, buffer)) return false;
  for (const TreeNode* block : tree.blocks()) {
    bool uses = read_of(block, buffer) || write_of(block, buffer);
    if (uses && !is_ancestor(loop, block) && !is_ancestor(block, loop)) return false;
  }
  return true;
}

bool share(const std::vector<BufferRegion>& a, const std::vector<BufferRegion>& b) {
  return std::any_of(a.begin(), a.end(), [&](const BufferRegion& r) { return find_region(b, r.buffer); });
}

bool holds_kind(const TreeNode* block, IterKind kind) {
  return std::any_of(block->block->iter_vars.begin(), block->block->iter_vars.end(),
                     [&](const IterVar& axis) { return axis.kind == kind; });
}

const std::string& name_of(const TreeNode* block) { return block->block->name; }

}  // namespace

std::vector<TreeNode*> writers(const TreeNode* scope, const Buffer& buffer) {
  return blocks_of_scope(scope, [&](const TreeNode* block) { return write_of(block, buffer) != nullptr; });
}
std::vector<TreeNode*> readers(const TreeNode* scope, const Buffer& buffer) {
  return blocks_of_scope(scope, [&](const TreeNode* block) { return read_of(block, buffer) != nullptr; });
}

std::vector<TreeNode*> producers_of(const TreeNode* block) {
  return blocks_of_scope(scope_of(block), [&](const TreeNode* other) {
    return other != block && share(other->block->writes, block->block->reads);
  });
}
std::vector<TreeNode*> consumers_of(const TreeNode* block) {
  return blocks_of_scope(scope_of(block), [&](const TreeNode* other) {
    return other != block && share(block->block->writes, other->block->reads);
  });
}

bool depend(const TreeNode* a, const TreeNode* b) {
  return share(a->block->writes, b->block->reads) || share(a->block->reads, b->block->writes) ||
         share(a->block->writes, b->block->writes);
}

TreeNode* allocating_block(const Tree& tree, const Buffer& buffer) {
  std::vector<TreeNode*> all = tree.blocks();
  all.push_back(tree.root());
  for (TreeNode* block : all) {
    for (const Buffer& own : block->block->alloc_buffers) {
      if (same_node(own, buffer)) return block;
    }
  }
  return nullptr;
}

bool is_output(const TreeNode* block) {
  const TreeNode* scope = scope_of(block);
  for (const BufferRegion& write : block->block->writes) {
    const std::vector<Buffer>& own = scope->block->alloc_buffers;
    if (std::none_of(own.begin(), own.end(), [&](const Buffer& b) { return same_node(b, write.buffer); })) return true;
  }
  return false;
}

const IterVar* axis_named(const TreeNode* block, const Expr& e) {
  for (const IterVar& axis : block->block->iter_vars) {
    if (same_node(axis.var, e)) return &axis;
  }
  return nullptr;
}

Drives drives(const TreeNode* loop, const std::vector<IterVar>& axes) {
  Drives result;
  for (const IterVar& axis : axes) {
    if (mentions(axis.value, loop->loop->var))
      (axis.kind == IterKind::kSpatial ? result.spatial : result.reduce) = true;
  }
  return result;
}

std::optional<DrivenAxis> find_unfinished(const TreeNode* block, TreeNode* loop) {
  for (const IterVar& axis : block->block->iter_vars) {
    if (axis.kind == IterKind::kSpatial) continue;
    for (TreeNode* at = loop; at && at->is_loop(); at = at->parent) {
      if (mentions(axis.value, at->loop->var)) return DrivenAxis{at, &axis};
    }
  }
  return std::nullopt;
}

// ---- Conditions

Refusal not_spatial(const TreeNode* block) {
  for (const IterVar& axis : block->block->iter_vars) {
    if (axis.kind != IterKind::kSpatial)
      return fmt::format("axis '{}' of block '{}' is not spatial", axis.var->name, name_of(block));
  }
  for (const BufferRegion& write : block->block->writes) {
    if (read_of(block, write.buffer))
      return fmt::format("block '{}' reads '{}', which it writes", name_of(block), write.buffer->name);
  }
  return std::nullopt;
}

namespace {

Refusal has_other_writers(const TreeNode* block, const TreeNode* within = nullptr) {
  for (const BufferRegion& write : block->block->writes) {
    for (const TreeNode* other : writers(scope_of(block), write.buffer)) {
      if (other != block && (!within || is_ancestor(within, other)))
        return fmt::format("blocks '{}' and '{}' both write '{}'", name_of(block), name_of(other), write.buffer->name);
    }
  }
  return std::nullopt;
}

}  // namespace

Refusal not_complete(const TreeNode* block) {
  if (Refusal refusal = not_spatial(block)) return refusal;
  return has_other_writers(block);
}

Refusal not_reduction(const TreeNode* block, const TreeNode* within) {
  if (!block->block->init) return fmt::format("block '{}' has no init", name_of(block));
  for (const IterVar& axis : block->block->iter_vars) {
    if (axis.kind != IterKind::kSpatial && axis.kind != IterKind::kReduce)
      return fmt::format("axis '{}' of block '{}' is neither spatial nor reduce", axis.var->name, name_of(block));
    if (axis.kind == IterKind::kSpatial) continue;
    for (const BufferRegion& write : block->block->writes) {
      for (const Range& range : write.ranges) {
        if (mentions(range.min, axis.var))
          return fmt::format("block '{}' writes '{}' at a place that depends on the reduce axis '{}'", name_of(block),
                             write.buffer->name, axis.var->name);
      }
    }
  }
  return has_other_writers(block, within);
}

Refusal not_complete_or_reduction(const TreeNode* block) {
  return block->block->init || holds_kind(block, IterKind::kReduce) ? not_reduction(block) : not_complete(block);
}

namespace {
// Returns whether the block may read in one iteration of the loop a value from an earlier one. Values that other blocks
// compute are carried by loops that hold those blocks, too.
bool carries(const TreeNode* loop, const TreeNode* block) {
  return block->carried && (block->meets_itself || blocks_below(loop).size() > 1);
}
}  // namespace

Refusal not_parallel(const TreeNode* loop) {
  for (TreeNode* block : blocks_below(loop)) {
    for (const IterVar& axis : block->block->iter_vars) {
      if (!mentions(axis.value, loop->loop->var)) continue;
      if (axis.kind != IterKind::kSpatial)
        return fmt::format("it drives axis '{}' of block '{}', which is not spatial", axis.var->name, name_of(block));
    }
    if (carries(loop, block)) return fmt::format("block '{}' takes what an earlier iteration made", name_of(block));
    // Each iteration has elements of its own, or memory of its own: buffers that nobody touches outside of the loop are
    // allocated inside of it when the program is lowered.
    bool is_private = true;
    for (const BufferRegion& write : block->block->writes) is_private = is_private && is_private_to(loop, write.buffer);
    // Loops outside may repeat elements, as those around a copy of a part do.
    std::vector<TreeNode*> inside = loops_above(block);
    inside.erase(inside.begin(), std::find(inside.begin(), inside.end(), loop));
    std::string why;
    if (!is_private && !has_affine_bindings(block) && !has_affine_bindings(block, inside, &why))
      return fmt::format("in block '{}' {}", name_of(block), why);
  }
  return has_other_statements(loop);
}

Refusal not_reorderable(TreeNode* block, const TreeNode* outermost) {
  for (const IterVar& axis : block->block->iter_vars) {
    if (axis.kind != IterKind::kSpatial && axis.kind != IterKind::kReduce)
      return fmt::format("axis '{}' of block '{}' is neither spatial nor reduce", axis.var->name, name_of(block));
  }
  if (outermost ? carries(outermost, block) : block->carried)
    return fmt::format("block '{}' takes what an earlier iteration made", name_of(block));
  std::string why;
  std::vector<TreeNode*> inside = loops_above(block);
  if (outermost) inside.erase(inside.begin(), std::find(inside.begin(), inside.end(), outermost));
  if (!has_affine_bindings(block) && !has_affine_bindings(block, inside, &why))
    return fmt::format("in block '{}' {}", name_of(block), why);
  // In another order a loop that drives both would meet later reduce iterations of an element before the first, which
  // has the init.
  for (const TreeNode* loop : block->block->init ? loops_above(block) : std::vector<TreeNode*>()) {
    Drives driven = drives(loop, block->block->iter_vars);
    if (driven.spatial && driven.reduce)
      return fmt::format("loop '{}' drives spatial and reduce axes of block '{}'", loop->loop->var->name,
                         name_of(block));
  }
  return std::nullopt;
}

Refusal not_replaceable(const TreeNode* loop) {
  const For& content = *loop->loop;
  if (!is_int(content.min, 0)) return fmt::format("loop '{}' does not start at 0", content.var->name);
  if (binds_thread(content.kind) || !content.annotations.empty())
    return fmt::format("loop '{}' is bound to threads or annotated", content.var->name);
  return std::nullopt;
}

Refusal has_other_statements(const TreeNode* scope) {
  bool found = false;
  auto look = [&](auto& self, const TreeNode* node) -> void {
    for (const TreeNode* child : node->children) {
      found = found || child->kind == TreeKind::kLeaf;
      if (child->is_loop()) self(self, child);
    }
  };
  look(look, scope);
  if (!found) return std::nullopt;
  return scope->is_loop() ? fmt::format("loop '{}' holds statements outside of blocks", scope->loop->var->name)
                          : fmt::format("block '{}' holds statements outside of its blocks", name_of(scope));
}

const BufferStore* single_store(const TreeNode* block) {
  bool is_plain = block->is_leaf_block() && block->block->match_buffers.empty();
  return is_plain ? relaxc::single_store(*block->block) : nullptr;
}

// ---- Regions

namespace {

// Regions that annotate_buffer_access has said stay, as the annotation lists them.
void keep_said(Block& block, const char* key, const std::vector<BufferRegion>& before, std::vector<BufferRegion>& now) {
  const AttrValue* note = block.annotations.find(key);
  if (!note || !note->as<AttrList>()) return;
  AttrList kept;
  for (const AttrValue& item : *note->as<AttrList>()) {
    const int64_t* number = item.as<int64_t>();
    if (!number || *number < 0 || *number >= static_cast<int64_t>(before.size())) continue;
    const BufferRegion& said = before[static_cast<size_t>(*number)];
    for (size_t i = 0; i < now.size(); ++i) {
      if (!same_node(now[i].buffer, said.buffer)) continue;
      now[i] = said;
      kept.emplace_back(i);
    }
  }
  block.annotations = kept.empty() ? block.annotations.without(key) : block.annotations.with(key, kept);
}

bool is_window(const Block& block, const Buffer& buffer) {
  return std::any_of(block.match_buffers.begin(), block.match_buffers.end(),
                     [&](const MatchBuffer& window) { return same_node(window.buffer, buffer); });
}

}  // namespace

void refresh_regions(TreeNode* block) {
  if (block == block->tree->root()) return;
  if (block->is_leaf_block()) {
    Accesses accesses = find_accesses(block->block->body, block->block->init);
    // What is done with windows is declared only.
    auto take_windows = [&](std::vector<BufferRegion>& before, std::vector<BufferRegion>& now) {
      std::erase_if(now, [&](const BufferRegion& region) { return is_window(*block->block, region.buffer); });
      for (const MatchBuffer& window : block->block->match_buffers) {
        const BufferRegion* declared = find_region(before, window.source.buffer);
        if (!declared) continue;
        std::erase_if(now, [&](const BufferRegion& found) { return same_node(found.buffer, declared->buffer); });
        now.push_back(*declared);
      }
    };
    take_windows(block->block->reads, accesses.reads);
    take_windows(block->block->writes, accesses.writes);
    keep_said(*block->block, annotations::kExplicitReadRegion.name, block->block->reads, accesses.reads);
    keep_said(*block->block, annotations::kExplicitWriteRegion.name, block->block->writes, accesses.writes);
    block->block->reads = std::move(accesses.reads);
    block->block->writes = std::move(accesses.writes);
    return;
  }
  std::vector<BufferRegion> reads, writes;
  const std::vector<Buffer>& own = block->block->alloc_buffers;
  auto add = [&](std::vector<BufferRegion>& into, const BufferRegion& region, std::vector<Range> ranges) {
    if (std::any_of(own.begin(), own.end(), [&](const Buffer& b) { return same_node(b, region.buffer); })) return;
    for (BufferRegion& known : into) {
      if (!same_node(known.buffer, region.buffer)) continue;
      for (size_t d = 0; d < ranges.size(); ++d)
        known.ranges[d] = hull(known.ranges[d], ranges[d], buffer_type(region.buffer).shape[d], block->tree->facts);
      return;
    }
    into.push_back({region.buffer, std::move(ranges)});
  };
  for (TreeNode* child : block->children) {
    for (TreeNode* inner : blocks_below(child)) {
      for (const BufferRegion& read : inner->block->reads) add(reads, read, region_at(inner, read, nullptr));
      for (const BufferRegion& write : inner->block->writes) add(writes, write, region_at(inner, write, nullptr));
    }
  }
  // An accumulator that only its own update reads is no input.
  if (block->block->init) {
    std::erase_if(reads, [&](const BufferRegion& read) { return find_region(writes, read.buffer) != nullptr; });
  }
  block->block->reads = std::move(reads);
  block->block->writes = std::move(writes);
}

void refresh_regions_above(TreeNode* node) {
  for (TreeNode* scope = scope_of(node); scope && scope != node->tree->root(); scope = scope_of(scope))
    refresh_regions(scope);
}

void replace_buffer(TreeNode* below, const Buffer& from, const Buffer& to) {
  auto in_stmt = [&](const Stmt& stmt) { return substitute(stmt, {{from.get(), to}}); };
  if (below->kind == TreeKind::kLeaf) below->leaf = in_stmt(*below->leaf);
  if (below->is_block()) {
    Block& block = *below->block;
    if (read_of(below, from) || write_of(below, from) || below == below->tree->root()) {
      if (below->is_leaf_block()) block.body = in_stmt(block.body);
      if (block.init) block.init = in_stmt(*block.init);
      for (auto* regions : {&block.reads, &block.writes}) {
        for (BufferRegion& region : *regions) {
          if (same_node(region.buffer, from)) region.buffer = to;
        }
      }
      for (MatchBuffer& window : block.match_buffers) {
        if (same_node(window.source.buffer, from)) window.source.buffer = to;
      }
    }
  }
  for (TreeNode* child : below->children) replace_buffer(child, from, to);
}

}  // namespace relaxc::scheduling
