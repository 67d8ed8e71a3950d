#include <algorithm>

#include "ir/text/printer.h"
#include "support/diagnostic.h"
#include "tir/edit/affine.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// An axis divided between the loops outside and inside: value = outer * extent + inner.
struct Divided {
  Expr outer, inner, extent;
};

Expr sum_of(const std::vector<IterDigit>& digits, const Expr& base) {
  Expr result = base;
  for (const IterDigit& digit : digits) result = result + digit.value * digit.scale;
  return result;
}

// The init of the block's elements in one tile: a nest of the loops inside that drive spatial axes alone. Fused loops,
// which reduce, too, do not run where the sum is empty; the axes that they drive get loops of their own. `positions`:
// of the block's axes, over the tile's; the conditions are those inside of the tile.
Stmt init_of_tile(TreeNode* inner, const std::vector<TreeNode*>& inside, const std::vector<IterVar>& tile_axes,
                  const VarMap& positions, const std::vector<Expr>& conditions,
                  const std::vector<VarRef>& outer_reduce_axes) {
  Tree& tree = *inner->tree;
  std::vector<TreeNode*> reduce_loops, spatial_loops;
  for (TreeNode* loop : inside) {
    bool reduces = std::any_of(tile_axes.begin(), tile_axes.end(), [&](const IterVar& axis) {
      return axis.kind == IterKind::kReduce && mentions(axis.value, loop->loop->var);
    });
    (reduces ? reduce_loops : spatial_loops).push_back(loop);
  }
  std::vector<std::pair<VarRef, Expr>> nest;
  VarMap vars, axes, placed;
  auto add_loop = [&](const VarRef& of, const Expr& extent) {
    nest.emplace_back(make_var(of->name + "_init", of.type()), extent);
    tree.facts.bind(nest.back().first, int_imm(0, dtype_of(of)), extent);
    return nest.back().first;
  };
  std::vector<TreeNode*> left_out = reduce_loops;
  for (TreeNode* loop : spatial_loops) {
    bool drives = false, is_used = false;
    for (const IterVar& axis : tile_axes) {
      drives = drives || mentions(axis.value, loop->loop->var);
      is_used = is_used || (mentions(axis.value, loop->loop->var) && !mentions_any(axis.value, reduce_loops));
    }
    if (drives && !is_used) left_out.push_back(loop);
    if (is_used) vars.emplace(loop->loop->var.get(), add_loop(loop->loop->var, substitute(loop->loop->extent, vars)));
  }
  Block init{.name = tree.fresh_block_name(inner->block->name + "_init"),
             .iter_vars = {},
             .predicate = std::nullopt,
             .reads = {},
             .writes = {},
             .annotations = {},
             .alloc_buffers = {},
             .match_buffers = {},
             .init = std::nullopt,
             .body = substitute(*inner->block->init, positions)};
  for (const IterVar& axis : tile_axes) {
    if (axis.kind != IterKind::kSpatial) continue;
    bool by_itself = mentions_any(axis.value, reduce_loops);
    Range domain = axis.domain;
    for (const IterVar& whole : inner->block->iter_vars) {
      // The only tile: how far fused loops reach, by a quotient of what may be 0, does not matter.
      if (by_itself && same_node(positions.at(whole.var.get()), axis.var)) domain = whole.domain;
    }
    Expr value = by_itself ? domain.min + add_loop(axis.var, domain.extent) : substitute(axis.value, vars);
    VarRef var = make_var(axis.var->name, axis.var.type());
    axes.emplace(axis.var.get(), var);
    placed.emplace(axis.var.get(), value);
    init.iter_vars.push_back({var, domain, axis.kind, value});
  }
  init.body = substitute(init.body, axes);
  VarMap known = vars;
  for (TreeNode* loop : spatial_loops) known.try_emplace(loop->loop->var.get(), loop->loop->min);
  std::vector<Expr> kept;
  for (const Expr& condition : conditions) {
    bool reduces = mentions_any(condition, left_out);
    for (const VarRef& axis : outer_reduce_axes) reduces = reduces || mentions(condition, axis);
    // Loops of one iteration that no axis knows any more stand still.
    if (!reduces) kept.push_back(substitute(condition, known));
  }
  // A condition on fused loops, which has no place here, bounded the elements, too.
  bool lost = kept.size() < conditions.size();
  for (const IterVar& axis : lost ? inner->block->iter_vars : std::vector<IterVar>()) {
    if (axis.kind != IterKind::kSpatial) continue;
    Expr at = substitute(positions.at(axis.var.get()), placed);
    Expr in_domain = tree.facts.simplify(at < axis.domain.min + axis.domain.extent);
    if (!tree.facts.can_prove(in_domain)) kept.push_back(in_domain);
  }
  init.predicate = conjunction(kept);
  TreeNode* node = tree.new_block(init);
  refresh_regions(node);
  Stmt result = tree.stmt(*node);
  for (size_t i = nest.size(); i-- > 0;) result = loop(nest[i].first, nest[i].second, result);
  return result;
}

// Blocks side by side in one block, whose axes are the loops around them.
TreeNode* blockize_together(Step& step, const std::vector<TreeNode*>& blocks) {
  if (blocks.empty()) step.refuse({}, "there are no blocks");
  TreeNode* above = common_ancestor(blocks);
  TreeNode* scope = above->is_block() ? above : scope_of(above);
  Tree& tree = *above->tree;
  for (TreeNode* block : blocks) {
    if (!block->parent || scope_of(block) != scope)
      step.refuse(blocks, fmt::format("block '{}' is not beside the others", block->block->name));
  }
  step.require(has_other_statements(scope), scope);
  size_t first = above->children.size(), last = 0;
  for (TreeNode* block : blocks) {
    first = std::min(first, child_towards(above, block)->position());
    last = std::max(last, child_towards(above, block)->position());
  }
  std::vector<TreeNode*> inside(above->children.begin() + static_cast<long>(first),
                                above->children.begin() + static_cast<long>(last) + 1),
      loops = loops_above(inside[0]);
  for (TreeNode* child : inside) {
    for (TreeNode* other : blocks_below(child)) {
      if (std::find(blocks.begin(), blocks.end(), other) == blocks.end())
        step.refuse({other}, fmt::format("block '{}' stands between them, but is not listed", other->block->name));
    }
  }
  Block outer{.name = blocks[0]->block->name,
              .iter_vars = {},
              .predicate = std::nullopt,
              .reads = {},
              .writes = {},
              .annotations = {},
              .alloc_buffers = {},
              .match_buffers = {},
              .init = std::nullopt,
              .body = no_op()};
  for (size_t i = 1; i < blocks.size(); ++i) outer.name += "_" + blocks[i]->block->name;
  outer.name = tree.fresh_block_name(outer.name + "_o");
  VarMap axes;
  for (TreeNode* loop : loops) {
    VarRef var = make_var("v" + loop->loop->var->name, loop->loop->var.type());
    IterKind kind = not_parallel(loop) ? IterKind::kOpaque : IterKind::kSpatial;
    outer.iter_vars.push_back({var, {loop->loop->min, loop->loop->extent}, kind, loop->loop->var});
    if (mentions_any(loop->loop->extent, loops))
      step.refuse({loop}, fmt::format("the extent of loop '{}' depends on another loop", loop->loop->var->name));
    axes.emplace(loop->loop->var.get(), var);
  }
  TreeNode* block = tree.new_block(std::move(outer));
  for (TreeNode* child : inside) {
    tree.detach(child);
    for (TreeNode* inner : blocks_below(child)) {
      // Inside of the new block an axis stands still where a loop outside drives it.
      for (const IterVar& axis : inner->block->iter_vars)
        inner->partial = inner->partial || mentions_any(axis.value, loops);
      if (inner->block->predicate && mentions_any(*inner->block->predicate, loops)) inner->partial = true;
    }
    substitute_below(child, axes);
    tree.append(block, child);
  }
  tree.insert(above, first, block);
  refresh_regions(block);
  refresh_regions_above(block);
  return block;
}

}  // namespace

BlockRV Schedule::blockize(Subtree target, bool preserve_unit_iters) {
  Step step(*this, PrimitiveId::k_blockize, target, preserve_unit_iters);
  if (const Blocks* list = std::get_if<Blocks>(&target); list && list->size() != 1)
    return step.block_result(blockize_together(step, step.blocks(*list)));
  TreeNode* top = std::holds_alternative<Blocks>(target) ? step.block(std::get<Blocks>(target)[0])
                                                         : std::visit(
                                                               [&](const auto& rv) -> TreeNode* {
                                                                 if constexpr (requires { rv.var; })
                                                                   return step.node(rv.var);
                                                                 return nullptr;
                                                               },
                                                               target);
  Tree& tree = *top->tree;
  std::vector<TreeNode*> below = blocks_below(top);
  if (below.size() != 1) step.refuse({top}, fmt::format("the subtree holds {} blocks, expected one", below.size()));
  TreeNode* inner = below[0];
  if (!inner->parent) step.refuse({top}, "nothing can stand around the root block");
  if (top->is_loop()) step.require(has_other_statements(top), top);
  std::vector<TreeNode*> loops = loops_above(inner), inside;
  for (TreeNode* at = inner; at != top; at = at->parent) inside.insert(inside.begin(), at->parent);
  for (TreeNode* at : inside) {
    if (mentions_any(at->loop->min, inside) || mentions_any(at->loop->extent, inside))
      step.refuse({at}, fmt::format("the extent of loop '{}' depends on another loop", at->loop->var->name));
  }
  std::vector<Expr> values;
  for (const IterVar& axis : inner->block->iter_vars) values.push_back(axis.value);
  std::string why;
  std::optional<IterMap> map = find_iter_map(values, loops, tree.facts, &why);
  if (!map) step.refuse({inner}, fmt::format("in block '{}' {}", inner->block->name, why));
  if (inner->block->init && !has_affine_bindings(inner, inside, &why)) step.refuse({inner}, why);
  size_t first_inside = loops.size() - inside.size();

  std::vector<Divided> parts;
  for (size_t a = 0; a < values.size(); ++a) {
    const IterSum& sum = map->sums[a];
    std::vector<IterDigit> low, high;
    for (const IterDigit& digit : sum.digits) {
      bool is_inside = digit.source >= first_inside && digit.source < loops.size();
      if (digit.source >= loops.size()) {  // a fused sum: all of its parts on one side
        is_inside = mentions_any(digit.value, inside);
        std::vector<TreeNode*> outside(loops.begin(), loops.begin() + static_cast<long>(first_inside));
        if (is_inside && mentions_any(digit.value, outside))
          step.refuse({inner, top},
                      fmt::format("axis '{}' mixes loops in- and outside", inner->block->iter_vars[a].var->name));
      }
      (is_inside ? low : high).push_back(digit);
    }
    DType dtype = dtype_of(values[a]);
    Expr zero = int_imm(0, dtype), extent = int_imm(1, dtype);
    for (const IterDigit& digit : low) extent = extent + (digit.extent - int_imm(1, dtype)) * digit.scale;
    extent = tree.facts.simplify(extent);
    Expr inner_value = sum_of(low, zero), outer_value = tree.facts.simplify(sum_of(high, sum.base));
    Expr quotient = is_int(outer_value, 0) ? zero : tree.facts.simplify(floor_div(outer_value, extent));
    if (!tree.facts.can_prove_equal(quotient * extent, outer_value))
      step.refuse({inner, top}, fmt::format("axis '{}' does not divide into tiles of {}",
                                            inner->block->iter_vars[a].var->name, print_expr(extent)));
    // Positions are counted in tiles, which must not be empty; dims are taken as not 0.
    Analyzer facts = tree.facts;
    for (const VarRef& var : free_vars(extent))
      facts.assume(static_cast<const Expr&>(var) >= int_imm(1, dtype_of(var)));
    const IterVar& axis = inner->block->iter_vars[a];
    if (!facts.can_prove(extent >= int_imm(1, dtype)) && !facts.can_prove_equal(extent, axis.domain.extent))
      step.refuse({inner, top}, fmt::format("tiles of axis '{}' may be empty", axis.var->name));
    parts.push_back({quotient, inner_value, extent});
  }

  // Conditions on one side go there; the bound of an axis becomes one of the tile's position.
  std::vector<Expr> outer_conditions, inner_conditions;
  std::vector<VarRef> outer_vars;
  for (const IterVar& axis : inner->block->iter_vars)
    outer_vars.push_back(make_var(axis.var->name + "o", axis.var.type()));
  for (const Expr& condition : conjuncts(inner->block->predicate)) {
    bool in = mentions_any(condition, inside), out = false;
    for (const TreeNode* at = top->parent; at; at = at->parent) {
      if (at->is_loop()) out = out || mentions(condition, at->loop->var);
      if (!at->is_block()) continue;
      for (const IterVar& axis : at->block->iter_vars) out = out || mentions(condition, axis.var);
    }
    if (!in || !out) {
      (in ? inner_conditions : outer_conditions).push_back(condition);
      continue;
    }
    bool is_bound = false;
    for (size_t a = 0; a < values.size() && !is_bound; ++a) {
      const Range& domain = inner->block->iter_vars[a].domain;
      Expr end = domain.min + domain.extent;
      Expr position = outer_vars[a] * parts[a].extent + parts[a].inner;
      const Binary* compare = condition.as<Binary>();
      if (!compare || compare->op != BinaryOp::kLT) continue;
      if (!tree.facts.can_prove_equal(end - values[a], compare->b - compare->a)) continue;
      inner_conditions.push_back(position < end);
      // Tiles that begin behind the end are none, but the first one of an empty sum is its init.
      bool sums = inner->block->init && inner->block->iter_vars[a].kind == IterKind::kReduce &&
                  !tree.facts.can_prove(end >= int_imm(1, dtype_of(end)));
      Expr begins = parts[a].outer * parts[a].extent < (sums ? max(end, int_imm(1, dtype_of(end))) : end);
      if (!tree.facts.can_prove(begins)) outer_conditions.push_back(tree.facts.simplify(begins));
      is_bound = true;
    }
    if (!is_bound) step.refuse({inner, top}, "a condition of the block ties loops in- and outside together");
  }

  // Behind a loop partition a tile may stand where it never begins.
  for (size_t a = 0; a < values.size(); ++a) {
    const Range& domain = inner->block->iter_vars[a].domain;
    Expr begins = parts[a].outer * parts[a].extent < domain.min + domain.extent;
    if (as_int(parts[a].outer).value_or(0) > 0 && !tree.facts.can_prove(begins))
      outer_conditions.push_back(tree.facts.simplify(begins));
  }

  Block outer{.name = tree.fresh_block_name(inner->block->name + "_o"),
              .iter_vars = {},
              .predicate = conjunction(outer_conditions),
              .reads = {},
              .writes = {},
              .annotations = {},
              .alloc_buffers = {},
              .match_buffers = {},
              .init = std::nullopt,
              .body = no_op()};
  VarMap positions, fixed;  // old axes; outer axes that are left out
  std::vector<IterVar> inner_axes;
  for (size_t a = 0; a < values.size(); ++a) {
    const IterVar& axis = inner->block->iter_vars[a];
    Expr one = int_imm(1, dtype_of(axis.var)), end = axis.domain.min + axis.domain.extent;
    Expr tiles = one;
    if (!tree.facts.can_prove_equal(parts[a].extent, end) && !is_int(parts[a].outer, 0)) {
      // A quotient by a dim would be undefined where the dim is 0; the loops' ends say the same.
      auto bounds = as_int(parts[a].extent) ? std::nullopt : bounds_over(parts[a].outer, running(loops), tree.facts);
      tiles = tree.facts.simplify(bounds ? bounds->max + one : floor_div(end + parts[a].extent - one, parts[a].extent));
    }
    Expr outer_at = outer_vars[a];
    if (is_int(tiles, 1) && !preserve_unit_iters) {
      outer_at = int_imm(0, dtype_of(axis.var));
      fixed.emplace(outer_vars[a].get(), outer_at);
    } else {
      outer.iter_vars.push_back({outer_vars[a], {int_imm(0, dtype_of(axis.var)), tiles}, axis.kind, parts[a].outer});
      tree.facts.bind(outer_vars[a], int_imm(0, dtype_of(axis.var)), tiles);
    }
    Expr at = outer_at * parts[a].extent;
    if (is_int(parts[a].extent, 1) && !preserve_unit_iters) {
      positions.emplace(axis.var.get(), tree.facts.simplify(at));
      continue;
    }
    VarRef tile_var = make_var(axis.var->name + "i", axis.var.type());
    positions.emplace(axis.var.get(), at + tile_var);
    inner_axes.push_back({tile_var, {int_imm(0, dtype_of(axis.var)), parts[a].extent}, axis.kind, parts[a].inner});
  }
  for (Expr& condition : inner_conditions) condition = substitute(condition, fixed);

  // The init moves to the outer block.
  if (inner->block->init) {
    std::vector<VarRef> outer_reduces;
    for (const IterVar& axis : outer.iter_vars) {
      if (axis.kind == IterKind::kReduce) outer_reduces.push_back(axis.var);
    }
    outer.init = init_of_tile(inner, inside, inner_axes, positions, inner_conditions, outer_reduces);
  }

  Block& content = *inner->block;
  if (!inner->children.empty()) step.refuse({inner}, "the block holds blocks already");
  content.init.reset();
  substitute_content(content, positions);
  content.iter_vars = inner_axes;
  content.predicate = conjunction(inner_conditions);
  inner->affine.reset();
  for (const IterVar& axis : inner_axes) tree.facts.bind(axis.var, axis.domain.min, axis.domain.extent);
  bool partial = inner->partial;
  // Conditions say more than the tile's domain now.
  inner->partial = partial || !inner_conditions.empty();
  TreeNode* block = tree.new_block(std::move(outer));
  block->partial = partial;
  block->carried = inner->carried;
  block->meets_itself = inner->meets_itself;
  block->in_order = inner->in_order;
  tree.replace(top, block);
  tree.append(block, top);
  refresh_regions(inner);
  refresh_regions(block);
  refresh_regions_above(block);
  return step.block_result(block);
}

}  // namespace relaxc
