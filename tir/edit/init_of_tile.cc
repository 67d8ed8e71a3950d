#include "tir/edit/init_of_tile.h"

#include <algorithm>

#include "tir/edit/move.h"

namespace relaxc::scheduling {

namespace {

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

  Stmt make_nest(const std::vector<Expr>& conditions, const std::vector<VarRef>& outer_reduce_axes) {
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
        // The only tile: how far fused loops reach, by a quotient of what may be 0, does not matter.
        if (by_itself && same_node(positions_.at(whole.var.get()), axis.var)) again.domain = whole.domain;
      }
      if (by_itself) again.value = again.domain.min + add_loop(axis.var, again.domain.extent);
      placed_.emplace(axis.var.get(), again.value);
      init.iter_vars.push_back(again);
    }
    init.body = substitute(init.body, axes);
  }

  std::vector<Expr> kept_conditions(const std::vector<Expr>& conditions, const std::vector<VarRef>& outer_reduce_axes) {
    VarMap known = vars_;
    for (TreeNode* loop : spatial_loops_) known.try_emplace(loop->var().get(), loop->loop->min);
    std::vector<Expr> kept;
    for (const Expr& condition : conditions) {
      bool reduces = mentions_any(condition, left_out_);
      for (const VarRef& axis : outer_reduce_axes) reduces = reduces || uses_var(condition, axis);
      // Unit loops that no axis uses any more are loop-invariant.
      if (!reduces) kept.push_back(substitute(condition, known));
    }
    if (kept.size() == conditions.size()) return kept;
    // A condition on fused loops, which has no place here, bounded the elements, too.
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

}  // namespace

Stmt init_of_tile(TreeNode* block, const Nodes& inside, const std::vector<IterVar>& tile_axes, const VarMap& positions,
                  const std::vector<Expr>& conditions, const std::vector<VarRef>& outer_reduce_axes) {
  return InitOfTile(block, inside, tile_axes, positions).make_nest(conditions, outer_reduce_axes);
}

}  // namespace relaxc::scheduling
