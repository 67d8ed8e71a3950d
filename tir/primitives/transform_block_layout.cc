#include <algorithm>

#include "ir/text/printer.h"
#include "tir/edit/mapped_box.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

void Schedule::transform_block_layout(BlockRV block_rv, IndexMap index_map) {
  Step step(*this, PrimitiveId::k_transform_block_layout, block_rv, index_map);
  TreeNode* block = step.block(block_rv);
  Tree& tree = *block->tree;
  Block& content = *block->block;
  step.require(not_movable(block), block);
  step.require(not_reorderable(block), block);
  if (block->in_order)
    step.refuse({block},
                fmt::format("the result of block '{}' depends on the order of its reduce loops", content.name));
  if (!block->is_leaf_block()) step.refuse({block}, fmt::format("block '{}' holds blocks", content.name));
  if (index_map.rank() != content.iter_vars.size())
    step.refuse({block}, fmt::format("the map takes {} axes, block '{}' has {}", index_map.rank(), content.name,
                                     content.iter_vars.size()));
  TreeNode* top = top_of_own_loops(block);
  for (TreeNode* loop : loops_above(block)) {
    if (!is_ancestor(top, loop))
      step.refuse({loop, block},
                  fmt::format("loop '{}' holds more than block '{}'", loop->loop->var->name, content.name));
    if (loop->loop->kind != ForKind::kSerial || !loop->loop->annotations.empty())
      step.refuse({loop}, fmt::format("loop '{}' is not serial or annotated; it is made anew", loop->loop->var->name));
  }
  std::vector<Expr> vars, extents;
  for (const IterVar& axis : content.iter_vars) {
    if (!is_int(axis.domain.min, 0)) step.refuse({block}, fmt::format("axis '{}' does not start at 0", axis.var->name));
    vars.push_back(axis.var);
    extents.push_back(axis.domain.extent);
  }
  std::string why;
  std::optional<MappedBox> box = map_box(tree, index_map, extents, &why);
  if (box && !box->conditions.empty()) {
    why = fmt::format("it reaches only results with {}; choose numbers that divide the axes' extents",
                      print_expr(box->conditions[0]));
    box.reset();
  }
  if (!box) step.refuse({block}, fmt::format("the map is not known to be one to one and onto: {}", why));
  std::vector<Expr> images = index_map(vars);
  std::vector<IterVar> axes;
  std::vector<TreeNode*> loops;
  for (size_t d = 0; d < images.size(); ++d) {
    std::optional<IterKind> kind;
    for (const IterVar& axis : content.iter_vars) {
      if (!mentions(images[d], axis.var)) continue;
      if (kind.value_or(axis.kind) != axis.kind)
        step.refuse({block}, fmt::format("result {} of the map mixes spatial and reduce axes", d));
      kind = axis.kind;
    }
    loops.push_back(tree.new_loop(fmt::format("ax{}", d), box->extents[d]));
    axes.push_back({box->vars[d],
                    {int_imm(0, dtype_of(box->vars[d])), box->extents[d]},
                    kind.value_or(IterKind::kSpatial),
                    loops.back()->loop->var});
  }
  VarMap origins;
  for (size_t a = 0; a < vars.size(); ++a) origins.emplace(vars[a].get(), box->origins[a]);
  substitute_content(content, origins);
  content.iter_vars = axes;
  content.predicate.reset();
  block->affine.reset();
  refresh_regions(block);
  TreeNode* parent = top->parent;
  size_t position = top->position();
  tree.detach(block);
  if (top != block) tree.detach(top);
  tree.insert(parent, position, tree.wrap(block, loops));
  refresh_regions_above(block);
  step.done();
}

}  // namespace relaxc
