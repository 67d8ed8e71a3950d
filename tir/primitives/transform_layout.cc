#include "tir/primitives/transform_layout.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/index_maps.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns a symbolic dim that no param would define any more once this one has the new shape.
std::optional<std::string> lost_dim(const Tree& tree, const Buffer& param, const std::vector<Expr>& shape) {
  for (const Expr& dim : buffer_type(param).shape) {
    if (!dim.is<Var>() || contains(shape, dim)) continue;
    bool found = std::ranges::any_of(tree.params(), [&](const VarRef& other) {
      const BufferType* type = other.type().as<BufferType>();
      return !same_node(other, param) && (same_node(other, dim) || (type && contains(type->shape, dim)));
    });
    if (!found) return dim.as<Var>()->name;
  }
  return std::nullopt;
}

// Returns whether the block stores each element of the whole buffer at its axes, in loops of its own. It can then run
// over the new positions instead, padding included.
bool fills_whole(TreeNode* block, const std::vector<Expr>& shape) {
  const BufferStore* store = single_store(block);
  if (!store || block->block->init || block->partial || block->block->predicate || not_complete(block)) return false;
  if (block->axes().size() != shape.size() || block->uses_outer_vars) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const IterVar& axis = block->axes()[d];
    if (!same_node(store->indices[d], axis.var) || !is_int(axis.domain.min, 0)) return false;
    if (!block->tree->facts.can_prove_equal(axis.domain.extent, shape[d])) return false;
  }
  Nodes loops = loops_above(block);
  bool plain = std::ranges::all_of(loops, [](const TreeNode* loop) {
    return loop->loop->kind == ForKind::kSerial && loop->loop->annotations.empty();
  });
  return plain && top_of_exclusive_loops(block)->parent->is_block();
}

// Returns the shape that holds all images of a map whose inverse is not known; refuses when they do not fill it.
std::vector<Expr> shape_without_gaps(Step& step, TreeNode* block, const Buffer& buffer, const Nodes& positions,
                                     const std::vector<Expr>& images) {
  const Analyzer& facts = block->tree->facts;
  std::vector<Expr> shape;
  Expr before = int_imm(1), after = int_imm(1);
  for (const Expr& dim : buffer_type(buffer).shape) before = before * cast_to(dim, kInt64);
  for (const Expr& e : images) {
    auto bounds = bounds_over(e, running(positions), facts);
    if (!bounds) step.refuse({block}, "the map's result {} has no known bounds", shape.size());
    shape.push_back(facts.simplify(bounds->max + 1));
    after = after * cast_to(shape.back(), kInt64);
  }
  if (!facts.can_prove_equal(before, after))
    step.refuse({block}, "the map leaves gaps in '{}', and its inverse is not known", buffer);
  return shape;
}

// Refuses buffers whose layout is given, and maps of another rank.
void require_transformable(Step& step, TreeNode* block, const Buffer& buffer, const IndexMap& index_map) {
  const Tree& tree = *block->tree;
  const BufferType& type = buffer_type(buffer);
  if (!allocating_block(tree, buffer) && !tree.is_param(buffer))
    step.refuse({block}, "'{}' is neither a param nor allocated by a block", buffer);
  if (!type.strides.empty() || type.elem_offset || type.data)
    step.refuse({block}, "'{}' is strided or a view, its layout is given", buffer);
  if (index_map.rank() != type.shape.size())
    step.refuse({block}, "the map takes {} positions, '{}' has {} dims", index_map.rank(), buffer, type.shape.size());
  step.require(other_uses(tree.root(), buffer), block);
}

// The value of the padding at a new position.
using PadValue = std::function<Expr(const std::vector<Expr>&)>;
PadValue find_pad_value(Step& step, TreeNode* block, const AttrValue& pad_value, DType dtype, size_t new_rank) {
  const Expr* given = pad_value.as<Expr>();
  const Lambda* lambda = given ? given->as<Lambda>() : nullptr;
  if (lambda && (lambda->params.size() != new_rank || lambda->results.size() != 1))
    step.refuse({block}, "pad_value does not take the new positions to one value");
  double number = 0;
  if (!given && !from_attr(pad_value, number))
    step.refuse({block}, "pad_value {} is not a number", to_string(pad_value));
  Expr constant = given ? *given : scalar_imm(number, dtype);
  if (!lambda) return [=](const std::vector<Expr>&) { return cast_to(constant, dtype); };
  return [=](const std::vector<Expr>& at) {
    VarMap positions;
    for (size_t d = 0; d < at.size(); ++d)
      positions.emplace(lambda->params[d].get(), cast_to(at[d], dtype_of(lambda->params[d])));
    return cast_to(substitute(lambda->results[0], positions), dtype);
  };
}

Nodes leaf_writers(const Tree& tree, const Buffer& buffer) {
  Nodes blocks = tree.blocks();
  std::erase_if(blocks, [&](const TreeNode* block) { return !block->is_leaf_block() || !write_of(block, buffer); });
  return blocks;
}

// Lets the block run over the new positions, including those of the padding.
void fill_with_padding(TreeNode* maker, const Buffer& to, const MappedBox& box, const PadValue& pad) {
  VarMap origins = axes_as(maker->axes(), box.origins);
  std::vector<Expr> at(box.vars.begin(), box.vars.end());
  Expr value = substitute(single_store(maker)->value, origins);
  Nodes loops;
  std::vector<IterVar> axes;
  for (size_t d = 0; d < at.size(); ++d)
    axes.push_back(add_loop_with_axis(*maker->tree, loops, box.vars[d], box.extents[d]));
  maker->axes() = axes;
  maker->block->body = store(to, if_then_else(*conjunction(box.conditions), value, pad(at)), at);
  replace_exclusive_loops(maker, loops);
  refresh_regions(maker);
}

// Returns the position of the first child of the place that may use the buffer.
size_t position_of_first_use(const TreeNode* place, const Buffer& buffer) {
  auto uses = [&](const TreeNode* node) {
    return node->kind == TreeKind::kLeaf ||
           std::ranges::any_of(blocks_below(node), [&](const TreeNode* b) { return accesses(b, buffer); });
  };
  auto first = std::ranges::find_if(place->children, uses);
  return static_cast<size_t>(first - place->children.begin());
}

// Makes a separate nest that writes the padding.
TreeNode* padding_nest(Tree& tree, const Buffer& to, const MappedBox& box, const PadValue& pad) {
  TreeNode* nest = compute_nest(tree, to->name + "_pad", box.extents,
                                [&](const std::vector<Expr>& at) { return store(to, pad(at), at); });
  TreeNode* filler = blocks_below(nest)[0];
  VarMap values;
  for (size_t d = 0; d < box.vars.size(); ++d) values.emplace(box.vars[d].get(), filler->axes()[d].value);
  filler->block->predicate = not_(substitute(*conjunction(box.conditions), values));
  filler->partial = true;
  return nest;
}

void map_accesses(Tree& tree, const Buffer& from, const Buffer& to, const IndexMap& index_map) {
  auto moved = [&](const std::vector<Expr>& indices) {
    return map_each(index_map(indices), [&](const Expr& index) { return tree.facts.simplify(index); });
  };
  rewrite_accesses(tree.root(), from,
                   {[&](const BufferLoad& e) { return load(to, moved(e.indices)); },
                    [&](const BufferStore& s) { return store(to, s.value, moved(s.indices)); }});
  replace_definition(tree, from, to);
}

}  // namespace

void TransformLayout::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  Tree& tree = *block->tree;
  const Buffer buffer = step.buffer(block, this->buffer, AccessKind::kRead);
  const IndexMap index_map = step.with_numbers(this->index_map);
  require_transformable(step, block, buffer, index_map);
  if (const Expr* pad = pad_value.as<Expr>(); pad && !pad->is<Lambda>()) step.number(*pad);

  std::string why;
  BufferType type = buffer_type(buffer);
  type.axis_separators.clear();
  Nodes positions = map_each(type.shape, [&](const Expr& dim) { return tree.new_loop("i", dim); });
  const Exprs images = index_map(map_each(positions, [](const TreeNode* loop) -> Expr { return loop->var(); }));
  std::optional<MappedBox> box = map_box(tree, ranges_of(positions), images, &why);
  if (!box && !assume_injective_transform)
    step.refuse({block}, "the map is not known to be one to one on '{}': {}", buffer, why);
  type.shape = box ? box->extents : shape_without_gaps(step, block, buffer, positions, images);
  TreeNode* home = allocating_block(tree, buffer);
  if (std::optional<std::string> dim = home ? std::nullopt : lost_dim(tree, buffer, type.shape))
    step.refuse({block}, "param '{}' would no longer say what '{}' is", buffer, *dim);
  bool padded = box && !box->conditions.empty();
  if (padded && !home && pad_value.is_none())
    step.refuse({block}, "param '{}' would get padding, which callers see; say by pad_value what it holds", buffer);
  PadValue pad;
  if (padded && !pad_value.is_none()) pad = find_pad_value(step, block, pad_value, type.dtype, type.shape.size());
  // The only block that writes the buffer may write the padding, too.
  Nodes makers = pad ? leaf_writers(tree, buffer) : Nodes();
  bool makes_all = makers.size() == 1 && fills_whole(makers[0], buffer_type(buffer).shape);
  TreeNode* maker = makes_all ? makers[0] : nullptr;
  bool fill_before = !maker && !makers.empty();
  // A separate nest for the padding stands before all uses of the buffer.
  TreeNode* place = home ? home : tree.root();
  size_t position = position_of_first_use(place, buffer);

  Buffer to = with_buffer_type(buffer, type);
  if (maker) fill_with_padding(maker, to, *box, pad);
  map_accesses(tree, buffer, to, index_map);
  if (maker) refresh_regions_above(maker);
  if (fill_before) {
    TreeNode* nest = padding_nest(tree, to, *box, pad);
    tree.insert(place, position, nest);
    refresh_regions_above(blocks_below(nest)[0]);
  }
}

size_t TransformLayout::map_rank(Step& step) const {
  return buffer_type(step.buffer(step.block(block), buffer, AccessKind::kRead)).shape.size();
}

}  // namespace relaxc
