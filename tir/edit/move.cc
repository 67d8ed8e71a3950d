#include "tir/edit/move.h"

#include <algorithm>

#include "ir/undefined.h"
#include "tir/edit/accesses.h"

namespace relaxc::scheduling {

namespace {

// index = factor * axis + rest for the only axis in it.
struct Linear {
  size_t axis;
  int64_t factor;
  Expr rest;
};
std::optional<Linear> as_linear(const Expr& index, const std::vector<IterVar>& axes, const Analyzer& facts) {
  std::optional<size_t> only;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (!uses_var(index, axes[a].var)) continue;
    if (only) return std::nullopt;
    only = a;
  }
  if (!only) return std::nullopt;
  const VarRef& var = axes[*only].var;
  Expr zero = int_imm(0, dtype_of(var));
  if (same_node(index, var)) return Linear{*only, 1, zero};
  Expr rest = facts.simplify(substitute(index, {{var.get(), zero}}));
  auto factor = coefficient(index, var, facts);
  if (!factor || *factor < 1) return std::nullopt;
  return Linear{*only, *factor, rest};
}

// Returns the range with operands that are always defined: it is evaluated outside of the guards of its accesses.
Range defined(const Range& range, const Analyzer& facts) {
  return {with_defined_operands(range.min, facts), with_defined_operands(range.extent, facts)};
}

}  // namespace

AxisRanges solve_axes(const TreeNode* block, const std::vector<Range>& region, const std::vector<Range>& needed,
                      bool* exact) {
  const Analyzer& facts = block->tree->facts;
  const std::vector<IterVar>& axes = block->axes();
  AxisRanges result(axes.size());
  for (size_t d = 0; d < region.size(); ++d) {
    if (!mentions_axes(region[d].min, block)) continue;
    std::optional<Linear> linear = as_linear(region[d].min, axes, facts);
    bool one_size = !mentions_axes(region[d].extent, block);  // a tile that is cut at the buffer's end has not
    if (!linear || !one_size || result[linear->axis]) {
      if (exact) *exact = false;
      continue;
    }
    DType dtype = dtype_of(axes[linear->axis].var);
    auto same_dtype = [&](const Expr& e) { return cast_to(e, dtype); };
    Expr low = same_dtype(needed[d].min) - same_dtype(linear->rest);
    Expr last = low + same_dtype(needed[d].extent) - 1;
    Expr size = same_dtype(region[d].extent);
    if (exact && (linear->factor != 1 || !is_int(size, 1))) *exact = *exact && is_int(size, linear->factor);
    // The block touches the region where factor * axis + size > low and factor * axis <= last.
    Expr first = floor_div(low - size + int_imm(linear->factor, dtype), linear->factor);
    Expr end = floor_div(last, linear->factor);
    first = facts.simplify(first);
    result[linear->axis] = Range{first, facts.simplify(end - first + 1)};
  }
  return result;
}

// Returns the range with a constant extent if its extent moves with the loops from `loop` outwards and is bounded;
// conditions then restrict the axis to the range.
static Range with_known_extent(Range range, const VarRef& axis, const TreeNode* loop, std::vector<Expr>& conditions) {
  const Analyzer& facts = loop->tree->facts;
  bool moves = false;
  for (; loop && loop->is_loop(); loop = loop->parent) moves = moves || uses_var(range.extent, loop->var());
  int64_t most = as_int(range.extent) || !moves ? INT64_MAX : constant_above(range.extent, facts);
  if (most >= (int64_t{1} << 31)) return range;
  Expr end = facts.simplify(end_of(range));
  const Binary* either = end.as<Binary>();
  bool two = either && either->op == BinaryOp::kMin;  // of which the new extent may imply one
  if (two) conditions.push_back(axis < either->a);
  conditions.push_back(axis < (two ? either->b : end));
  return {range.min, int_imm(most, dtype_of(range.extent))};
}

void move_block(Tree& tree, TreeNode* block, TreeNode* loop, size_t position, const AxisRanges& ranges,
                bool preserve_unit_loops) {
  tree.remove(block);
  block->block->predicate.reset();
  block->affine.reset();
  Nodes loops;
  std::vector<Expr> conditions;
  for (size_t a = 0; a < ranges.size(); ++a) {
    IterVar& axis = block->axes()[a];
    // A range that is at least as long as the domain stands for the domain.
    bool is_whole = !ranges[a] || tree.facts.can_prove(ranges[a]->extent >= axis.domain.extent);
    Range range = is_whole ? axis.domain : with_known_extent(*ranges[a], axis.var, loop, conditions);
    range = defined(range, tree.facts);
    if (is_int(range.extent, 1) && !preserve_unit_loops) {
      axis.value = range.min;
    } else {
      loops.push_back(tree.new_loop(fmt::format("ax{}", loops.size()), cast_to(range.extent, dtype_of(axis.var))));
      axis.value = tree.facts.simplify(range.min + loops.back()->var());
    }
    if (is_whole) continue;
    conditions.push_back(axis.var >= axis.domain.min);
    conditions.push_back(axis.var < end_of(axis.domain));
  }
  // Proofs must use the axes' values: of an axis its domain is known already.
  VarMap values = values_of_axes(block);
  tree.insert(loop, position, block);
  Analyzer facts = tree.facts;
  for (const Expr& condition : conditions) {
    Expr of_axes = facts.simplify(substitute(condition, values));
    restrict_block(block, of_axes);
    facts.assume(of_axes);
  }
  tree.wrap(block, loops);
}

std::vector<Range> whole_buffer(const Buffer& buffer) {
  return map_each(buffer_type(buffer).shape, [](const Expr& dim) { return Range{int_imm(0, dtype_of(dim)), dim}; });
}

// Returns whether all iterations of the loops around a copy of the region, up to its scope, copy less than the buffer:
// the region is smaller and loop-invariant, or moves with axes of an outer block.
static bool is_part(const Tree& tree, const Buffer& buffer, const std::vector<Range>& region) {
  bool whole = true, moves_with_loops = false, moves_with_axes = false;
  for (size_t d = 0; d < region.size(); ++d) whole = whole && covers(region[d], whole_buffer(buffer)[d], tree.facts);
  for (const TreeNode* node : subtree(tree.root())) {
    for (const Range& range : region) {
      if (node->is_loop()) moves_with_loops = moves_with_loops || uses_var(range.min, node->var());
      if (node->is_block()) moves_with_axes = moves_with_axes || mentions_axes(range.min, node);
    }
  }
  return !whole && (moves_with_axes || !moves_with_loops);
}

TreeNode* insert_copy(TreeNode* parent, size_t place, const std::string& name, const Buffer& from, const Buffer& to,
                      const std::vector<Range>& region) {
  Tree& tree = *parent->tree;
  Nodes loops;
  std::vector<IterVar> axes;
  std::vector<Expr> position, conditions;
  const std::vector<Expr>& shape = buffer_type(from).shape;
  for (size_t d = 0; d < region.size(); ++d) {
    DType dtype = tree.index_dtype();
    Expr dim = cast_to(shape[d], dtype);
    Range range = defined(region[d], tree.facts);
    Expr min = cast_to(range.min, dtype), extent = cast_to(range.extent, dtype);
    loops.push_back(tree.new_loop(fmt::format("ax{}", d), extent));
    VarRef axis = make_var(fmt::format("v{}", d), prim_type(dtype));
    Expr value = tree.facts.simplify(min + loops.back()->var());
    axes.push_back({axis, {int_imm(0, dtype), dim}, IterKind::kSpatial, value});
    position.push_back(axis);
    conditions.push_back(value >= int_imm(0, dtype));
    conditions.push_back(value < dim);
  }
  auto point = [&](const Buffer& buffer) {
    auto element = [](const Expr& at) { return Range{at, int_imm(1, dtype_of(at))}; };
    return std::vector<BufferRegion>{{buffer, map_each(position, element)}};
  };
  TreeNode* block = tree.new_block({.name = tree.fresh_block_name(name),
                                    .iter_vars = axes,
                                    .reads = point(from),
                                    .writes = point(to),
                                    .body = store(to, load(from, position), position)});
  for (const Expr& condition : conditions) restrict_block(block, condition);
  block->partial = is_part(tree, from, region);
  tree.insert(parent, place, tree.wrap(block, loops));
  return block;
}

TreeNode* insert_cache(TreeNode* parent, size_t position, const Buffer& buffer, AccessKind kind,
                       const std::string& storage_scope, const std::vector<Range>& region, const Nodes& users) {
  std::string name = fmt::format("{}_{}", buffer->name, storage_scope);
  Buffer cache = cache_buffer(name, buffer, buffer_type(buffer).shape, storage_scope);
  bool reads = kind == AccessKind::kRead;
  TreeNode* copy = insert_copy(parent, position, name, reads ? buffer : cache, reads ? cache : buffer, region);
  scope_of(copy)->block->alloc_buffers.push_back(cache);
  for (TreeNode* user : users) replace_buffer(user, buffer, cache);
  refresh_regions_above(copy);
  return copy;
}

TreeNode* leaf_block(Tree& tree, const std::string& name, std::vector<IterVar> axes, const Stmt& body,
                     const std::optional<Stmt>& init) {
  TreeNode* block =
      tree.new_block({.name = tree.fresh_block_name(name), .iter_vars = std::move(axes), .init = init, .body = body});
  refresh_regions(block);
  return block;
}

TreeNode* compute_nest(Tree& tree, const std::string& name, const std::vector<Expr>& extents,
                       const std::function<Stmt(const std::vector<Expr>&)>& body) {
  Nodes loops;
  std::vector<IterVar> axes;
  std::vector<Expr> position;
  for (const Expr& extent : extents) {
    VarRef axis = make_var(fmt::format("v{}", axes.size()), prim_type(dtype_of(extent)));
    axes.push_back(add_loop_with_axis(tree, loops, axis, extent));
    position.push_back(axis);
  }
  return tree.wrap(leaf_block(tree, name, axes, body(position)), loops);
}

IterVar add_loop_with_axis(Tree& tree, Nodes& loops, const VarRef& axis, const Expr& extent, IterKind kind) {
  loops.push_back(tree.new_loop(fmt::format("ax{}", loops.size()), extent));
  return {axis, {int_imm(0, dtype_of(axis)), extent}, kind, loops.back()->var()};
}

TreeNode* top_of_exclusive_loops(TreeNode* node) {
  TreeNode* top = node;
  while (top->parent && top->parent->is_loop() && top->parent->children.size() == 1) top = top->parent;
  return top;
}

void replace_exclusive_loops(TreeNode* block, const Nodes& loops) {
  Tree& tree = *block->tree;
  TreeNode* top = top_of_exclusive_loops(block);
  TreeNode* parent = top->parent;
  size_t position = top->position();
  tree.detach(block);
  if (top != block) tree.detach(top);
  tree.insert(parent, position, tree.wrap(block, loops));
  block->affine.reset();
}

IterVar fresh_axis(const IterVar& axis, const VarMap& loops, VarMap& axes) {
  VarRef var = make_var(axis.var->name, axis.var.type());
  axes.emplace(axis.var.get(), var);
  return {var, axis.domain, axis.kind, substitute(axis.value, loops)};
}

Refusal not_movable(const TreeNode* block) {
  if (!block->parent) return "the root block cannot be moved";
  if (block->partial) return message("block '{}' has a predicate, or does not cover the domains of its axes", block);
  if (block->uses_outer_vars) return message("block '{}' uses variables of loops around it directly", block);
  if (block->carried) return message("block '{}' takes what an earlier iteration made, or makes it", block);
  if (block->in_order && !comes_in_order(block))
    return message("the result of block '{}' depends on the order of its reduce loops, which is not that of its axes",
                   block);
  return has_other_statements(scope_of(block));
}

Refusal inputs_change(const TreeNode* block) {
  for (const BufferRegion& read : block->block->reads) {
    for (const TreeNode* writer : writers(scope_of(block), read.buffer)) {
      if (writer != block && !precedes(writer, block))
        return message("block '{}' writes '{}' after block '{}' has read it", writer, read.buffer, block);
      TreeNode* shared =
          writer == block ? nullptr : common_ancestor({const_cast<TreeNode*>(block), const_cast<TreeNode*>(writer)});
      if (shared && shared->is_loop() && writer->meets_itself)
        return message(
            "block '{}' writes elements of '{}' again in later iterations of loop '{}', in which '{}' reads them",
            writer, read.buffer, shared, block);
    }
  }
  return std::nullopt;
}

Refusal not_a_destination(const TreeNode* loop, const TreeNode* block) {
  if (scope_of(block) != scope_of(loop))
    return message("block '{}' and loop '{}' are in different blocks", block, loop);
  if (is_ancestor(loop, block)) return message("block '{}' is in loop '{}' already", block, loop);
  return std::nullopt;
}

// Returns the loop of each axis, in order. Returns none when the loops are not the axes one to one.
static Nodes loops_that_are_axes(const TreeNode* block) {
  const std::vector<IterVar>& axes = block->axes();
  Nodes all = loops_above(block), result;
  for (const IterVar& axis : axes) {
    for (TreeNode* loop : all) {
      if (!contains(result, loop) && same_node(axis.value, loop->var())) result.push_back(loop);
    }
  }
  bool are_all = result.size() == axes.size() && all.size() == axes.size();
  return are_all ? result : Nodes();
}

void extend_axes(TreeNode* block, const std::vector<Expr>& extents) {
  Tree& tree = *block->tree;
  Nodes loops = loops_that_are_axes(block);
  bool stay = loops.size() == extents.size();
  for (size_t a = 0; a < extents.size(); ++a) {
    IterVar& axis = block->axes()[a];
    if (!stay) loops.push_back(tree.new_loop(fmt::format("ax{}", a), extents[a]));
    For& loop = *loops[a]->loop;
    loop.extent = extents[a];
    tree.facts.bind(loop.var, loop.min, loop.extent);
    axis.domain.extent = extents[a];
    axis.value = loop.var;
    tree.facts.bind(axis.var, axis.domain.min, axis.domain.extent);
  }
  block->block->predicate.reset();
  block->affine.reset();
  if (!stay) replace_exclusive_loops(block, loops);
}

}  // namespace relaxc::scheduling
