#include "tir/edit/reindex_stage.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/affine.h"
#include "tir/edit/move.h"

namespace relaxc::scheduling {

namespace {

bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return structural_equal(x, y); });
}

// Where the block accesses the buffer, always the same place; refuses by returning why.
std::variant<std::vector<Expr>, std::string> only_place(const TreeNode* block, const Buffer& buffer) {
  std::vector<std::vector<Expr>> places;
  for (const auto& load : loads_of(block, buffer)) places.push_back(load->indices);
  for (const auto& store : stores_of(block, buffer)) places.push_back(store->indices);
  for (const auto& place : places) {
    if (!same_indices(place, places[0]))
      return fmt::format("block '{}' accesses '{}' at more than one place", block->block->name, buffer->name);
  }
  std::vector<VarRef> outer = free_vars(block->block->body);
  std::string why;
  for (const Expr& index : places[0]) {
    walk(
        index,
        [&](const Ref<Var>& var) {
          bool known = std::any_of(outer.begin(), outer.end(), [&](const VarRef& v) { return same_node(v, var); });
          if (!known) why = fmt::format("the place in '{}' depends on '{}', which is no axis", buffer->name, var->name);
        },
        [&](const BufferLoad& load) {
          why = fmt::format("the place in '{}' depends on what '{}' holds", buffer->name, load.buffer->name);
        },
        [&](const Let&) { why = fmt::format("the place in '{}' has bindings of its own", buffer->name); });
  }
  if (!why.empty()) return why;
  return places[0];
}

}  // namespace

TreeNode* reindex_stage(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind, const std::string& name,
                        const std::string& storage_scope, const IndexMap* map) {
  Tree& tree = *block->tree;
  TreeNode* scope = scope_of(block);
  bool reads = kind == AccessKind::kRead;
  if (!scope) step.refuse({block}, "the root block has no place outside");
  if (!block->is_leaf_block()) step.refuse({block}, fmt::format("block '{}' holds blocks", block->block->name));
  step.require(not_movable(block), block);
  if (!reads) step.require(not_complete_or_reduction(block), block);
  if (reads && write_of(block, buffer))
    step.refuse({block}, fmt::format("block '{}' writes '{}', which it reads", block->block->name, buffer->name));
  if (!reads && !block->block->init && !loads_of(block, buffer).empty())
    step.refuse({block}, fmt::format("block '{}' takes what '{}' held before", block->block->name, buffer->name));
  step.require(other_uses(block, buffer), block);
  auto place = only_place(block, buffer);
  if (const std::string* why = std::get_if<std::string>(&place)) step.refuse({block}, *why);
  const std::vector<Expr>& indices = std::get<std::vector<Expr>>(place);

  // Axes that the place, or the place in the copy, depends on.
  const std::vector<IterVar>& axes = block->block->iter_vars;
  std::vector<Expr> vars, mapped;
  for (const IterVar& axis : axes) vars.push_back(axis.var);
  if (map && map->rank() != axes.size())
    step.refuse({block},
                fmt::format("the map takes {} axes, block '{}' has {}", map->rank(), block->block->name, axes.size()));
  if (map) mapped = (*map)(vars);
  bool in_init = false;
  if (block->block->init)
    walk(*block->block->init, [&](const BufferLoad& load) { in_init = in_init || same_node(load.buffer, buffer); });
  std::vector<IterVar> used;
  for (const IterVar& axis : axes) {
    auto uses = [&](const Expr& e) { return mentions(e, axis.var); };
    bool in_map = std::any_of(mapped.begin(), mapped.end(), uses);
    bool in_place = std::any_of(indices.begin(), indices.end(), uses);
    if (!in_map && !in_place) continue;
    if (!is_int(axis.domain.min, 0)) step.refuse({block}, fmt::format("axis '{}' does not start at 0", axis.var->name));
    if (!reads && axis.kind != IterKind::kSpatial)
      step.refuse({block}, fmt::format("axis '{}' is not spatial", axis.var->name));
    if (in_init && axis.kind == IterKind::kReduce)
      step.refuse({block}, fmt::format("the init reads '{}', so that its place in the copy cannot depend on the reduce "
                                       "axis '{}'",
                                       buffer->name, axis.var->name));
    used.push_back(axis);
  }
  if (!map) {
    for (const IterVar& axis : used) mapped.push_back(axis.var);
  }
  VarMap to_loops;
  std::vector<TreeNode*> loops;
  std::vector<Expr> values, extents, shape;
  for (const IterVar& axis : used) {
    loops.push_back(tree.new_loop(axis.var->name, axis.domain.extent));
    to_loops.emplace(axis.var.get(), loops.back()->loop->var);
    extents.push_back(axis.domain.extent);
  }
  for (const Expr& e : mapped) values.push_back(substitute(e, to_loops));
  std::string why;
  std::optional<IterMap> found = find_iter_map(values, loops, tree.facts, &why);
  if (!found || !is_injective(*found, {}, tree.facts, &why))
    step.refuse({block}, fmt::format("the map is not known to be one to one: {}", why));
  for (const IterSum& sum : found->sums) {
    if (!is_int(tree.facts.simplify(sum.base), 0)) step.refuse({block}, "the map's results do not start at 0");
    shape.push_back(sum.extent);
  }
  // The copy reads for all of the axes' domains; the block may do so under a condition.
  for (size_t d = 0; reads && d < indices.size(); ++d) {
    const Expr& dim = buffer_type(buffer).shape[d];
    Expr zero = int_imm(0, dtype_of(indices[d]));
    if (!tree.facts.can_prove(indices[d] >= zero) ||
        !tree.facts.can_prove(indices[d] < cast_to(dim, dtype_of(indices[d]))))
      step.refuse({block}, fmt::format("index {} of '{}' is not known to be in its range for all values of the axes", d,
                                       buffer->name));
  }
  TreeNode* own = child_towards(scope, block);
  for (bool write : {false, true}) {
    for (TreeNode* other : write ? writers(scope, buffer) : readers(scope, buffer)) {
      if (other == block || (reads && !write)) continue;
      TreeNode* child = child_towards(scope, other);
      bool in_time = reads ? child->position() < own->position() : child != own;
      if (!in_time)
        step.refuse({other, block}, fmt::format("no place is between '{}' and '{}', which share '{}'",
                                                other->block->name, block->block->name, buffer->name));
    }
  }

  Buffer cache = cache_buffer(name, buffer, shape, storage_scope);
  TreeNode* nest = compute_nest(tree, name, extents, [&](const std::vector<Expr>& position) {
    VarMap here;
    for (size_t a = 0; a < used.size(); ++a) here.emplace(used[a].var.get(), position[a]);
    std::vector<Expr> at, in_cache;
    for (const Expr& e : indices) at.push_back(substitute(e, here));
    for (const Expr& e : mapped) in_cache.push_back(substitute(e, here));
    return reads ? store(cache, load(buffer, at), in_cache) : store(buffer, load(cache, in_cache), at);
  });
  tree.insert(scope, own->position() + (reads ? 0 : 1), nest);
  scope->block->alloc_buffers.push_back(cache);
  rewrite_accesses(block, buffer,
                   {[&](const BufferLoad&) { return load(cache, mapped); },
                    [&](const BufferStore& s) { return store(cache, s.value, mapped); }});
  TreeNode* copy = blocks_below(nest)[0];
  refresh_regions_above(copy);
  return copy;
}

}  // namespace relaxc::scheduling
