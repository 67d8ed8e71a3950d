#include "tir/primitives/blockize.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "support/joined.h"
#include "tir/analysis/nests.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// The innermost place around all of some blocks of one scope, and its children that hold them.
struct Neighbours {
  TreeNode* above;
  size_t first;
  Nodes children;
};

Neighbours find_neighbours(Step& step, const Nodes& blocks) {
  if (blocks.empty()) step.refuse({}, "there are no blocks");
  TreeNode* above = common_ancestor(blocks);
  TreeNode* scope = above->is_block() ? above : scope_of(above);
  for (TreeNode* block : blocks) {
    if (!block->parent || scope_of(block) != scope) step.refuse(blocks, "block '{}' is not beside the others", block);
  }
  step.require(has_other_statements(scope), scope);
  auto position = [&](TreeNode* block) { return child_towards(above, block)->position(); };
  auto [first, last] = std::ranges::minmax(map_each(blocks, position));
  auto begin = above->children.begin();
  Nodes children(begin + static_cast<long>(first), begin + static_cast<long>(last) + 1);
  for (TreeNode* child : children) {
    for (TreeNode* other : blocks_below(child)) {
      if (!contains(blocks, other)) step.refuse({other}, "block '{}' stands between them, but is not listed", other);
    }
  }
  return {above, first, children};
}

// Puts blocks that stand side by side into one block, whose axes are the loops around them.
TreeNode* blockize_together(Step& step, const Nodes& blocks) {
  const auto [above, first, inside] = find_neighbours(step, blocks);
  Tree& tree = *above->tree;
  Nodes loops = loops_above(inside[0]);
  step.require_independent(loops);
  auto names = map_each(blocks, [](const TreeNode* block) { return block->name(); });
  Block outer{.name = tree.fresh_block_name(fmt::format("{}_o", joined(names, "_"))), .body = no_op()};
  VarMap axes;
  for (TreeNode* loop : loops) {
    VarRef var = make_var("v" + loop->name(), loop->var().type());
    IterKind kind = not_parallel(loop) ? IterKind::kOpaque : IterKind::kSpatial;
    outer.iter_vars.push_back({var, {loop->loop->min, loop->loop->extent}, kind, loop->var()});
    axes.emplace(loop->var().get(), var);
  }
  TreeNode* block = tree.new_block(std::move(outer));
  for (TreeNode* child : inside) {
    tree.detach(child);
    for (TreeNode* inner : blocks_below(child)) {
      // Inside of the new block an axis has a fixed value where a loop outside drives it.
      for (const IterVar& axis : inner->axes()) inner->partial = inner->partial || mentions_any(axis.value, loops);
      if (inner->block->predicate && mentions_any(*inner->block->predicate, loops)) inner->partial = true;
    }
    substitute_below(child, axes);
    tree.append(block, child);
  }
  tree.insert(above, first, block);
  refresh_regions_around(block);
  return block;
}

// An axis divided between the loops outside and inside: value = outer * extent + inner.
struct Divided {
  Expr outer, inner, extent;
};

Expr sum_of(const std::vector<IterDigit>& digits, const Expr& base) {
  Expr result = base;
  for (const IterDigit& digit : digits) result = result + digit.value * digit.scale;
  return result;
}

// Makes the init of a reduction's elements in one tile: a nest of the loops inside of the tile that drive spatial axes
// alone. Fused loops that also reduce do not run where the sum is empty, so the spatial axes that they drive get
// separate loops. `positions` maps the block's axes to expressions over the tile's.
class InitOfTile {
 public:
  InitOfTile(TreeNode* block, const Nodes& inside, const std::vector<IterVar>& tile_axes, const VarMap& positions)
      : tree_(*block->tree), block_(block), tile_axes_(tile_axes), positions_(positions) {
    for (TreeNode* loop : inside) {
      bool reduces = std::ranges::any_of(tile_axes, [&](const IterVar& axis) {
        return axis.kind == IterKind::kReduce && uses_var(axis.value, loop->var());
      });
      (reduces ? reduce_loops_ : spatial_loops_).push_back(loop);
    }
  }

  Stmt make_nest(const std::vector<Expr>& conditions, const std::vector<IterVar>& outer_reduce_axes) {
    Block init{.name = tree_.fresh_block_name(block_->name() + "_init"),
               .body = substitute(*block_->block->init, positions_)};
    repeat_loops();
    add_axes(init);
    init.predicate = conjunction(kept_conditions(conditions, outer_reduce_axes));
    TreeNode* node = tree_.new_block(init);
    refresh_regions(node);
    Stmt result = tree_.stmt(*node);
    for (size_t i = nest_.size(); i-- > 0;) result = loop(nest_[i].first, nest_[i].second, result);
    return result;
  }

 private:
  VarRef add_loop(const VarRef& of, const Expr& extent) {
    nest_.emplace_back(make_var(of->name + "_init", of.type()), extent);
    tree_.facts.bind(nest_.back().first, int_imm(0, dtype_of(of)), extent);
    return nest_.back().first;
  }

  void repeat_loops() {
    left_out_ = reduce_loops_;
    for (TreeNode* loop : spatial_loops_) {
      bool is_driver = false, is_used = false;
      for (const IterVar& axis : tile_axes_) {
        bool drives_axis = uses_var(axis.value, loop->var());
        is_driver = is_driver || drives_axis;
        is_used = is_used || (drives_axis && !mentions_any(axis.value, reduce_loops_));
      }
      if (is_driver && !is_used) left_out_.push_back(loop);
      if (!is_used) continue;
      vars_.emplace(loop->var().get(), add_loop(loop->var(), substitute(loop->loop->extent, vars_)));
    }
  }

  void add_axes(Block& init) {
    VarMap axes;
    for (const IterVar& axis : tile_axes_) {
      if (axis.kind != IterKind::kSpatial) continue;
      bool by_itself = mentions_any(axis.value, reduce_loops_);
      IterVar again = fresh_axis(axis, vars_, axes);
      for (const IterVar& whole : block_->axes()) {
        // There is one tile, so the reach of fused loops, a quotient by an extent that may be 0, does not matter.
        if (by_itself && same_node(positions_.at(whole.var.get()), axis.var)) again.domain = whole.domain;
      }
      if (by_itself) again.value = again.domain.min + add_loop(axis.var, again.domain.extent);
      placed_.emplace(axis.var.get(), again.value);
      init.iter_vars.push_back(again);
    }
    init.body = substitute(init.body, axes);
  }

  std::vector<Expr> kept_conditions(const std::vector<Expr>& conditions,
                                    const std::vector<IterVar>& outer_reduce_axes) {
    VarMap known = vars_;
    for (TreeNode* loop : spatial_loops_) known.try_emplace(loop->var().get(), loop->loop->min);
    std::vector<Expr> kept;
    for (const Expr& condition : conditions) {
      bool reduces = mentions_any(condition, left_out_);
      for (const IterVar& axis : outer_reduce_axes) reduces = reduces || uses_var(condition, axis.var);
      // Unit loops that no axis uses any more are loop-invariant.
      if (!reduces) kept.push_back(substitute(condition, known));
    }
    if (kept.size() == conditions.size()) return kept;
    // The conditions on fused loops that were left out also kept the elements in the domains.
    for (const IterVar& axis : block_->axes()) {
      if (axis.kind != IterKind::kSpatial) continue;
      Expr at = substitute(positions_.at(axis.var.get()), placed_);
      Expr in_domain = tree_.facts.simplify(at < end_of(axis.domain));
      if (!tree_.facts.can_prove(in_domain)) kept.push_back(in_domain);
    }
    return kept;
  }

  Tree& tree_;
  TreeNode* block_;
  const std::vector<IterVar>& tile_axes_;
  const VarMap& positions_;
  Nodes reduce_loops_, spatial_loops_, left_out_;
  std::vector<std::pair<VarRef, Expr>> nest_;  // variables and extents, outermost first
  VarMap vars_, placed_;                       // loops inside, and axes of the tile, in terms of the nest
};

// Divides the iterations of a block: `top` and the loops below it are a tile, the loops above go through the tiles.
class BlockOfTiles {
 public:
  BlockOfTiles(Step& step, TreeNode* top, TreeNode* inner, bool preserve_unit_iters)
      : step_(step),
        tree_(*top->tree),
        top_(top),
        inner_(inner),
        axes_(inner->axes()),
        preserve_unit_iters_(preserve_unit_iters) {
    find_loops();
    divide_axes();
    divide_conditions();
  }

  // Returns the block of the tiles, which stands around `top`.
  TreeNode* apply() {
    Block outer{.name = tree_.fresh_block_name(inner_->name() + "_o"),
                .predicate = conjunction(outer_conditions_),
                .body = no_op()};
    add_axes(outer);
    // The init moves to the outer block.
    if (inner_->block->init)
      outer.init = InitOfTile(inner_, inside_, inner_axes_, positions_)
                       .make_nest(inner_conditions_, axes_of(outer, IterKind::kReduce));
    if (!inner_->children.empty()) step_.refuse({inner_}, "the block holds blocks already");
    TreeNode* block = tree_.new_block(std::move(outer));
    static_cast<BlockFacts&>(*block) = *inner_;
    block->uses_outer_vars = false;
    reduce_to_tile();
    tree_.replace(top_, block);
    tree_.append(block, top_);
    refresh_regions(inner_);
    refresh_regions_around(block);
    return block;
  }

 private:
  void find_loops() {
    if (top_ != inner_) inside_ = loops_from(top_, inner_);
    step_.require_independent(inside_);
  }

  void divide_axes() {
    Nodes loops = loops_above(inner_);
    std::string why;
    std::optional<IterMap> map = find_iter_map(axis_values(inner_), ranges_of(loops), tree_.facts, &why);
    if (!map) step_.refuse({inner_}, "in block '{}' {}", inner_, why);
    if (inner_->block->init && !has_affine_bindings(inner_, inside_, &why)) step_.refuse({inner_}, why);
    for (size_t a = 0; a < axes_.size(); ++a) tiles_.push_back(divide(axes_[a], map->sums[a], loops));
  }

  // Returns whether the digit counts iterations inside of the tile.
  bool is_inside(const IterDigit& digit, const IterVar& axis, const Nodes& loops) {
    size_t first_inside = loops.size() - inside_.size();
    if (digit.source < loops.size()) return digit.source >= first_inside;
    // The parts of a fused sum must all be on one side.
    if (!mentions_any(digit.value, inside_)) return false;
    Nodes outside(loops.begin(), loops.begin() + static_cast<long>(first_inside));
    if (mentions_any(digit.value, outside))
      step_.refuse({inner_, top_}, "axis '{}' mixes loops in- and outside", axis.var);
    return true;
  }

  Divided divide(const IterVar& axis, const IterSum& sum, const Nodes& loops) {
    std::vector<IterDigit> low, high;
    for (const IterDigit& digit : sum.digits) (is_inside(digit, axis, loops) ? low : high).push_back(digit);
    DType dtype = dtype_of(axis.value);
    Expr zero = int_imm(0, dtype), one = int_imm(1, dtype), extent = one;
    for (const IterDigit& digit : low) extent = extent + (digit.extent - one) * digit.scale;
    extent = tree_.facts.simplify(extent);
    Expr outer_value = tree_.facts.simplify(sum_of(high, sum.base));
    Expr quotient = is_int(outer_value, 0) ? zero : tree_.facts.simplify(floor_div(outer_value, extent));
    if (!tree_.facts.can_prove_equal(quotient * extent, outer_value))
      step_.refuse({inner_, top_}, "axis '{}' does not divide into tiles of {}", axis.var, print_plain(extent));
    // Positions are counted in tiles, which must not be empty; dims are taken as not 0.
    Analyzer facts = tree_.facts;
    for (const VarRef& var : free_vars(extent))
      facts.assume(static_cast<const Expr&>(var) >= int_imm(1, dtype_of(var)));
    if (!facts.can_prove(extent >= one) && !facts.can_prove_equal(extent, axis.domain.extent))
      step_.refuse({inner_, top_}, "tiles of axis '{}' may be empty", axis.var);
    return {quotient, sum_of(low, zero), extent};
  }

  bool depends_on_outside(const Expr& condition) const {
    for (const TreeNode* at = top_->parent; at; at = at->parent) {
      if (at->is_loop() ? uses_var(condition, at->var()) : mentions_axes(condition, at)) return true;
    }
    return false;
  }

  // A condition on loops of one side goes to that side. The bound of an axis becomes a bound of the tile's position.
  void divide_conditions() {
    outer_vars_ = map_each(axes_, [](const IterVar& axis) { return make_var(axis.var->name + "o", axis.var.type()); });
    for (const Expr& condition : conjuncts(inner_->block->predicate)) {
      bool in = mentions_any(condition, inside_);
      if (in && depends_on_outside(condition)) {
        divide_bound(condition);
      } else {
        (in ? inner_conditions_ : outer_conditions_).push_back(condition);
      }
    }
    // After loop_partition a tile may stand at a place where it never begins.
    for (size_t a = 0; a < axes_.size(); ++a) {
      const Range& domain = axes_[a].domain;
      Expr begins = tiles_[a].outer * tiles_[a].extent < end_of(domain);
      if (as_int(tiles_[a].outer).value_or(0) > 0 && !tree_.facts.can_prove(begins))
        outer_conditions_.push_back(tree_.facts.simplify(begins));
    }
  }

  void divide_bound(const Expr& condition) {
    const Binary* compare = condition.as<Binary>();
    auto bounds = [&](const IterVar& axis) {
      return compare && compare->op == BinaryOp::kLT &&
             tree_.facts.can_prove_equal(end_of(axis.domain) - axis.value, compare->b - compare->a);
    };
    auto axis = std::ranges::find_if(axes_, bounds);
    if (axis == axes_.end())
      step_.refuse({inner_, top_}, "a condition of the block ties loops in- and outside together");
    auto a = static_cast<size_t>(axis - axes_.begin());
    Expr end = end_of(axis->domain), one = int_imm(1, dtype_of(end));
    inner_conditions_.push_back(outer_vars_[a] * tiles_[a].extent + tiles_[a].inner < end);
    // Tiles that begin behind the end do not run, but the first one of an empty sum is its init.
    bool sums = inner_->block->init && axis->kind == IterKind::kReduce && !tree_.facts.can_prove(end >= one);
    Expr begins = tiles_[a].outer * tiles_[a].extent < (sums ? max(end, one) : end);
    if (!tree_.facts.can_prove(begins)) outer_conditions_.push_back(tree_.facts.simplify(begins));
  }

  Expr number_of_tiles(size_t a) const {
    const IterVar& axis = axes_[a];
    const Divided& tile = tiles_[a];
    Expr one = int_imm(1, dtype_of(axis.var)), end = end_of(axis.domain);
    if (tree_.facts.can_prove_equal(tile.extent, end) || is_int(tile.outer, 0)) return one;
    // A quotient by a dim would be undefined where the dim is 0; the loops' ends say the same.
    auto bounds =
        as_int(tile.extent) ? std::nullopt : bounds_over(tile.outer, running(loops_above(inner_)), tree_.facts);
    return tree_.facts.simplify(bounds ? bounds->max + one : floor_div(end + tile.extent - one, tile.extent));
  }

  // Makes the axes of the outer block and of the tile, and writes the old axes in terms of them.
  void add_axes(Block& outer) {
    VarMap fixed;  // outer axes that are left out
    for (size_t a = 0; a < axes_.size(); ++a) {
      const IterVar& axis = axes_[a];
      const Divided& tile = tiles_[a];
      Expr zero = int_imm(0, dtype_of(axis.var)), tiles = number_of_tiles(a), outer_at = outer_vars_[a];
      if (is_int(tiles, 1) && !preserve_unit_iters_) {
        outer_at = zero;
        fixed.emplace(outer_vars_[a].get(), zero);
      } else {
        outer.iter_vars.push_back({outer_vars_[a], {zero, tiles}, axis.kind, tile.outer});
        tree_.facts.bind(outer_vars_[a], zero, tiles);
      }
      Expr at = outer_at * tile.extent;
      if (is_int(tile.extent, 1) && !preserve_unit_iters_) {
        positions_.emplace(axis.var.get(), tree_.facts.simplify(at));
        continue;
      }
      VarRef tile_var = make_var(axis.var->name + "i", axis.var.type());
      positions_.emplace(axis.var.get(), at + tile_var);
      inner_axes_.push_back({tile_var, {zero, tile.extent}, axis.kind, tile.inner});
    }
    for (Expr& condition : inner_conditions_) condition = substitute(condition, fixed);
  }

  void reduce_to_tile() {
    Block& content = *inner_->block;
    content.init.reset();
    substitute_content(content, positions_);
    content.iter_vars = inner_axes_;
    content.predicate = conjunction(inner_conditions_);
    inner_->affine.reset();
    for (const IterVar& axis : inner_axes_) tree_.facts.bind(axis.var, axis.domain.min, axis.domain.extent);
    // The conditions now restrict more than the tile's domain does.
    inner_->partial = inner_->partial || !inner_conditions_.empty();
  }

  Step& step_;
  Tree& tree_;
  TreeNode *top_, *inner_;
  const std::vector<IterVar> axes_;  // of the block before
  const bool preserve_unit_iters_;
  Nodes inside_;                // the loops of a tile
  std::vector<Divided> tiles_;  // for each axis
  std::vector<VarRef> outer_vars_;
  std::vector<Expr> outer_conditions_, inner_conditions_;
  std::vector<IterVar> inner_axes_;
  VarMap positions_;  // of the old axes in terms of the new
};

// Returns the loop or block that a single variable stands for.
TreeNode* node_of(Step& step, const Subtree& target) {
  if (const Blocks* blocks = std::get_if<Blocks>(&target)) return step.block(blocks->front());
  const BlockRV* block = std::get_if<BlockRV>(&target);
  return step.node(block ? block->var : std::get<LoopRV>(target).var);
}

}  // namespace

BlockRV Blockize::apply(Step& step) const {
  if (const Blocks* list = std::get_if<Blocks>(&target); list && list->size() != 1)
    return step.block_result(blockize_together(step, step.blocks(*list)));
  TreeNode* top = node_of(step, target);
  Nodes below = blocks_below(top);
  if (below.size() != 1) step.refuse({top}, "the subtree holds {} blocks, expected one", below.size());
  TreeNode* inner = below[0];
  if (!inner->parent) step.refuse({top}, "nothing can stand around the root block");
  if (top->is_loop()) step.require(has_other_statements(top), top);
  return step.block_result(BlockOfTiles(step, top, inner, preserve_unit_iters).apply());
}

}  // namespace relaxc
