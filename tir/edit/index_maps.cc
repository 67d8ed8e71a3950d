#include "tir/edit/index_maps.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"

namespace relaxc::scheduling {

// Computes each source from its digits in the coordinates.
static std::vector<Expr> find_origins(const IterMap& map, const std::vector<VarRef>& vars, size_t rank,
                                      const Analyzer& facts) {
  std::vector<Expr> result(map.sources.size(), int_imm(0));
  for (size_t s = map.sources.size(); s-- > 0;) {
    DType dtype = dtype_of(map.sources[s].value);
    Expr total = int_imm(0, dtype);
    std::vector<Expr> seen;
    auto take = [&](const std::vector<IterDigit>& digits, const Expr& from) {
      for (size_t i = 0; i < digits.size(); ++i) {
        const IterDigit& digit = digits[i];
        bool again = std::ranges::any_of(seen, [&](const Expr& e) { return structural_equal(e, digit.lower); });
        if (digit.source != s || again || is_int(digit.extent, 1)) continue;
        seen.push_back(digit.lower);
        Expr extent = cast_to(digit.extent, dtype);
        Expr value = floor_div(cast_to(from, dtype), cast_to(digit.scale, dtype));
        if (i > 0) value = floor_mod(value, extent);
        if (digit.reversed) value = extent - 1 - value;
        total = total + value * cast_to(digit.lower, dtype);
      }
    };
    for (size_t d = 0; d < map.sums.size(); ++d) take(map.sums[d].digits, vars[d]);
    for (size_t later = std::max(s + 1, rank); later < map.sources.size(); ++later)
      take(map.sources[later].parts, result[later]);
    result[s] = facts.simplify(total);
  }
  result.resize(rank, int_imm(0));
  return result;
}

std::optional<MappedBox> map_box(Tree& tree, const std::vector<LoopRange>& positions, const std::vector<Expr>& images,
                                 std::string* why) {
  std::optional<IterMap> found = find_injective_map(images, positions, {}, tree.facts, why);
  if (!found) return std::nullopt;
  MappedBox box;
  for (const IterSum& sum : found->sums) {
    if (!is_int(tree.facts.simplify(sum.base), 0)) {
      if (why) *why = message("result {} of the map does not start at 0", box.extents.size());
      return std::nullopt;
    }
    box.extents.push_back(sum.extent);
    box.vars.push_back(make_var(fmt::format("v{}", box.vars.size()), prim_type(dtype_of(sum.extent))));
    tree.facts.bind(box.vars.back(), int_imm(0, dtype_of(sum.extent)), sum.extent);
  }
  box.origins = find_origins(*found, box.vars, positions.size(), tree.facts);
  // A one-to-one map with as many coordinates as positions reaches all of them. Where a dim is 0 the counts agree, too,
  // but the other dims still have to fit each other: inits and windows know only some of them.
  Expr num_positions = int_imm(1), num_coordinates = num_positions;
  VarMap origins;
  for (size_t i = 0; i < positions.size(); ++i) {
    num_positions = num_positions * cast_to(positions[i].range.extent, kInt64);
    origins.emplace(positions[i].var.get(), box.origins[i]);
  }
  for (const Expr& extent : box.extents) num_coordinates = num_coordinates * cast_to(extent, kInt64);
  num_positions = tree.facts.simplify(num_positions);
  if (!is_int(num_positions, 0) && tree.facts.can_prove_equal(num_positions, num_coordinates)) return box;
  for (size_t i = 0; i < positions.size(); ++i) {
    Expr inside = tree.facts.simplify(box.origins[i] < positions[i].range.extent);
    if (!tree.facts.can_prove(inside)) box.conditions.push_back(inside);
  }
  for (size_t d = 0; d < images.size(); ++d) {
    Expr image = substitute(images[d], origins);
    if (!tree.facts.can_prove_equal(image, box.vars[d]))
      box.conditions.push_back(equal(tree.facts.simplify(image), box.vars[d]));
  }
  return box;
}

std::optional<MappedBox> map_box(Tree& tree, const std::vector<IterVar>& axes, const std::vector<Expr>& images,
                                 std::string* why) {
  auto as_loop = [](const IterVar& axis) { return LoopRange{axis.var, axis.domain}; };
  return map_box(tree, map_each(axes, as_loop), images, why);
}

namespace {

// Returns the single place where the block accesses the buffer.
std::vector<Expr> only_place(Step& step, TreeNode* block, const Buffer& buffer) {
  std::vector<std::vector<Expr>> places = places_of<BufferLoad>(block, buffer);
  std::ranges::copy(places_of<BufferStore>(block, buffer), std::back_inserter(places));
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
            step.refuse({block}, "the place in '{}' depends on '{}', which is not an axis", buffer, var);
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
  if (!reads && !block->block->init && !places_of<BufferLoad>(block, buffer).empty())
    step.refuse({block}, "block '{}' takes what '{}' held before", block, buffer);
  step.require(other_uses(block, buffer), block);
}

// Returns the axes on which the place in the buffer, or in the copy, depends.
std::vector<IterVar> axes_of_copy(Step& step, TreeNode* block, const Buffer& buffer, AccessKind kind,
                                  const std::vector<Expr>& place, const std::vector<Expr>& mapped) {
  bool in_init = block->block->init && uses_var(*block->block->init, buffer);
  std::vector<IterVar> used;
  for (const IterVar& axis : block->axes()) {
    if (!uses_var(mapped, axis.var) && !uses_var(place, axis.var)) continue;
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
  TreeNode* top = child_towards(scope, block);
  bool reads = kind == AccessKind::kRead;
  for (bool write : {false, true}) {
    for (TreeNode* other : write ? writers(scope, buffer) : readers(scope, buffer)) {
      if (other == block || (reads && !write)) continue;
      TreeNode* child = child_towards(scope, other);
      bool in_time = reads ? child->position() < top->position() : child != top;
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

  // In terms of the axes, of which digits become one; in those of loops they are quotients of sums.
  const std::vector<Expr> simple_place =
      map_each(place, [&](const Expr& index) { return block->tree->facts.simplify(index); });
  TreeNode* scope = scope_of(block);
  TreeNode* nest = compute_nest(*block->tree, name, extents, [&](const std::vector<Expr>& position) {
    VarMap here = axes_as(axes, position);
    std::vector<Expr> at = substitute(simple_place, here), in_cache = substitute(mapped, here);
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
