#include "tir/edit/reindex_stage.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/mapped_box.h"
#include "tir/edit/move.h"

namespace relaxc::scheduling {

namespace {

// Returns the single place where the block accesses the buffer.
std::vector<Expr> only_place(Step& step, TreeNode* block, const Buffer& buffer) {
  std::vector<std::vector<Expr>> places;
  for (const auto& load : loads_of(block, buffer)) places.push_back(load->indices);
  for (const auto& store : stores_of(block, buffer)) places.push_back(store->indices);
  for (const auto& place : places) {
    if (!std::ranges::equal(place, places[0], [](const Expr& a, const Expr& b) { return structural_equal(a, b); }))
      step.refuse({block}, "block '{}' accesses '{}' at more than one place", block, buffer);
  }
  std::vector<VarRef> outer = free_vars(block->block->body);
  for (const Expr& index : places[0]) {
    walk(
        index,
        [&](const Ref<Var>& var) {
          if (!contains(outer, var))
            step.refuse({block}, "the place in '{}' depends on '{}', which is no axis", buffer, var);
        },
        [&](const BufferLoad& load) {
          step.refuse({block}, "the place in '{}' depends on what '{}' holds", buffer, load.buffer);
        },
        [&](const Let&) { step.refuse({block}, "the place in '{}' has bindings of its own", buffer); });
  }
  return places[0];
}

void require_one_place(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind) {
  bool reads = kind == AccessKind::kRead;
  step.scope(block);
  if (!block->is_leaf_block()) step.refuse({block}, "block '{}' holds blocks", block);
  step.require(not_movable(block), block);
  if (!reads) step.require(not_complete_or_reduction(block), block);
  if (reads && write_of(block, buffer)) step.refuse({block}, "block '{}' writes '{}', which it reads", block, buffer);
  if (!reads && !block->block->init && !loads_of(block, buffer).empty())
    step.refuse({block}, "block '{}' takes what '{}' held before", block, buffer);
  step.require(other_uses(block, buffer), block);
}

// Returns the axes on which the place in the buffer, or in the copy, depends.
std::vector<IterVar> axes_of_copy(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind,
                                  const std::vector<Expr>& place, const std::vector<Expr>& mapped) {
  bool in_init = block->block->init && uses_var(*block->block->init, buffer);
  std::vector<IterVar> used;
  for (const IterVar& axis : block->axes()) {
    auto uses = [&](const Expr& e) { return uses_var(e, axis.var); };
    bool in_map = std::ranges::any_of(mapped, uses);
    bool in_place = std::ranges::any_of(place, uses);
    if (!in_map && !in_place) continue;
    if (kind == AccessKind::kWrite && axis.kind != IterKind::kSpatial)
      step.refuse({block}, "axis '{}' is not spatial", axis.var);
    if (in_init && axis.kind == IterKind::kReduce)
      step.refuse({block}, "the init reads '{}', so that its place in the copy cannot depend on the reduce axis '{}'",
                  buffer, axis.var);
    used.push_back(axis);
  }
  return used;
}

// Refuses places out of range: the copy reads for all of the axes' domains, the block perhaps under a condition.
void require_in_range(Step& step, TreeNode* block, const Buffer& buffer, const std::vector<Expr>& place) {
  const Analyzer& facts = block->tree->facts;
  for (size_t d = 0; d < place.size(); ++d) {
    DType dtype = dtype_of(place[d]);
    Expr dim = cast_to(buffer_type(buffer).shape[d], dtype);
    if (!facts.can_prove(place[d] >= int_imm(0, dtype)) || !facts.can_prove(place[d] < dim))
      step.refuse({block}, "index {} of '{}' is not known to be in its range for all values of the axes", d, buffer);
  }
}

// Refuses other users of the buffer between which and the block the copy cannot stand.
void require_place_between(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind) {
  TreeNode* scope = scope_of(block);
  TreeNode* own = child_towards(scope, block);
  bool reads = kind == AccessKind::kRead;
  for (bool write : {false, true}) {
    for (TreeNode* other : write ? writers(scope, buffer) : readers(scope, buffer)) {
      if (other == block || (reads && !write)) continue;
      TreeNode* child = child_towards(scope, other);
      bool in_time = reads ? child->position() < own->position() : child != own;
      if (!in_time)
        step.refuse({other, block}, "no place is between '{}' and '{}', which share '{}'", other, block, buffer);
    }
  }
}

}  // namespace

BlockRV reindex_stage(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind, const std::string& name,
                      const std::string& storage_scope, const IndexMap* map) {
  bool reads = kind == AccessKind::kRead;
  require_one_place(step, block, buffer, kind);
  const std::vector<Expr> place = only_place(step, block, buffer);
  if (map) step.require_rank(*map, block);
  std::vector<Expr> mapped = map ? (*map)(axis_vars(block)) : std::vector<Expr>(), extents;
  std::vector<IterVar> axes = axes_of_copy(step, block, buffer, kind, place, mapped);
  for (const IterVar& axis : axes) {
    if (!map) mapped.push_back(axis.var);
    extents.push_back(axis.domain.extent);
  }
  std::string why;
  std::optional<MappedBox> box = map_box(*block->tree, axes, mapped, &why);
  if (!box) step.refuse({block}, "the map is not known to be one to one: {}", why);
  Buffer cache = cache_buffer(name, buffer, box->extents, storage_scope);
  if (reads) require_in_range(step, block, buffer, place);
  require_place_between(step, block, buffer, kind);

  TreeNode* scope = scope_of(block);
  TreeNode* nest = compute_nest(*block->tree, name, extents, [&](const std::vector<Expr>& position) {
    VarMap here = axes_as(axes, position);
    std::vector<Expr> at = substitute(place, here), in_cache = substitute(mapped, here);
    return reads ? store(cache, load(buffer, at), in_cache) : store(buffer, load(cache, in_cache), at);
  });
  block->tree->insert(scope, child_towards(scope, block)->position() + (reads ? 0 : 1), nest);
  scope->block->alloc_buffers.push_back(cache);
  rewrite_accesses(block, buffer,
                   {[&](const BufferLoad&) { return load(cache, mapped); },
                    [&](const BufferStore& s) { return store(cache, s.value, mapped); }});
  refresh_regions_above(nest);
  return step.block_result(blocks_below(nest)[0]);
}

}  // namespace relaxc::scheduling
