#include "tir/primitives/transform_block_layout.h"

#include "ir/text/printer.h"
#include "tir/edit/index_maps.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

Refusal not_transformable(const TreeNode* block) {
  if (block->in_order) return message("the result of block '{}' depends on the order of its reduce loops", block);
  if (!block->is_leaf_block()) return message("block '{}' holds blocks", block);
  return std::nullopt;
}

// Refuses loops around the block that cannot be made anew for other axes.
void require_exclusive_plain_loops(Step& step, TreeNode* block) {
  TreeNode* top = top_of_exclusive_loops(block);
  for (TreeNode* loop : loops_above(block)) {
    const For& content = *loop->loop;
    if (!is_ancestor(top, loop)) step.refuse({loop, block}, "loop '{}' holds more than block '{}'", content.var, block);
    if (content.kind != ForKind::kSerial || !content.annotations.empty())
      step.refuse({loop}, "loop '{}' is not serial or annotated; it is made anew", content.var);
  }
}

// Returns the box of the axes' images; refuses a map that does not reach each position of it once.
MappedBox map_axes(Step& step, TreeNode* block, const std::vector<Expr>& images) {
  std::string why;
  std::optional<MappedBox> box = map_box(*block->tree, block->axes(), images, &why);
  if (box && box->conditions.empty()) return *box;
  if (box)
    why = message("it reaches only results with {}; choose numbers that divide the axes' extents",
                  print_plain(box->conditions[0]));
  step.refuse({block}, "the map is not known to be one to one and onto: {}", why);
}

// Returns the kind of the axes that the map's result depends on; spatial when there are none.
IterKind kind_of_image(Step& step, TreeNode* block, const Expr& image, size_t position) {
  std::optional<IterKind> kind;
  for (const IterVar& axis : block->axes()) {
    if (!uses_var(image, axis.var)) continue;
    if (kind.value_or(axis.kind) != axis.kind)
      step.refuse({block}, "result {} of the map mixes spatial and reduce axes", position);
    kind = axis.kind;
  }
  return kind.value_or(IterKind::kSpatial);
}

// Simplifies what the origins of images make of indices: (tile * 64 + column) // 64 is tile.
void simplify_indices(Block& content, const Analyzer& facts) {
  auto simplified = [&](const std::vector<Expr>& indices) {
    return map_each(indices, [&](const Expr& index) { return facts.simplify(index); });
  };
  content.body = rewrite(
      content.body,
      [&](const Ref<BufferLoad>& access) -> std::optional<Expr> {
        return load(access->buffer, simplified(access->indices), access.span());
      },
      [&](const Ref<BufferStore>& access) -> std::optional<Stmt> {
        return store(access->buffer, access->value, simplified(access->indices), access.span());
      });
}

}  // namespace

void TransformBlockLayout::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Block& content = *block->block;
  const IndexMap index_map = step.with_numbers(this->index_map);
  step.require_all(block, not_movable, not_reorderable, not_transformable);
  step.require_rank(index_map, block);
  require_exclusive_plain_loops(step, block);
  std::vector<Expr> images = index_map(axis_vars(block));
  MappedBox box = map_axes(step, block, images);
  VarMap origins = axes_as(content.iter_vars, box.origins);
  std::vector<IterVar> axes;
  Nodes loops;
  for (size_t d = 0; d < images.size(); ++d) {
    IterKind kind = kind_of_image(step, block, images[d], d);
    axes.push_back(add_loop_with_axis(*block->tree, loops, box.vars[d], box.extents[d], kind));
  }
  substitute_content(content, origins);
  simplify_indices(content, block->tree->facts);
  content.iter_vars = axes;
  content.predicate.reset();
  refresh_regions(block);
  replace_exclusive_loops(block, loops);
  refresh_regions_above(block);
}

}  // namespace relaxc
