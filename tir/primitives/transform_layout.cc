#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/mapped_box.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// A symbolic dim that callers are asked for by no param once this one has the new shape.
std::optional<std::string> lost_dim(const Tree& tree, const Buffer& param, const std::vector<Expr>& shape) {
  auto stands_bare = [](const std::vector<Expr>& dims, const Expr& var) {
    return std::any_of(dims.begin(), dims.end(), [&](const Expr& dim) { return same_node(dim, var); });
  };
  for (const Expr& dim : buffer_type(param).shape) {
    if (!dim.is<Var>() || stands_bare(shape, dim)) continue;
    bool found = false;
    for (const VarRef& other : tree.params()) {
      if (same_node(other, param)) continue;
      const BufferType* type = other.type().as<BufferType>();
      found = found || same_node(other, dim) || (type && stands_bare(type->shape, dim));
    }
    if (!found) return dim.as<Var>()->name;
  }
  return std::nullopt;
}

// A block that stores each element of the whole buffer at its axes, in loops of its own: it can run over the new
// positions instead, padding included.
bool fills_whole(TreeNode* block, const std::vector<Expr>& shape) {
  const BufferStore* store = single_store(block);
  if (!store || block->block->init || block->partial || block->block->predicate || not_complete(block)) return false;
  if (block->block->iter_vars.size() != shape.size() || block->uses_outer_vars) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const IterVar& axis = block->block->iter_vars[d];
    if (!same_node(store->indices[d], axis.var) || !is_int(axis.domain.min, 0)) return false;
    if (!block->tree->facts.can_prove_equal(axis.domain.extent, shape[d])) return false;
  }
  std::vector<TreeNode*> loops = loops_above(block);
  bool plain = std::all_of(loops.begin(), loops.end(), [](const TreeNode* loop) {
    return loop->loop->kind == ForKind::kSerial && loop->loop->annotations.empty();
  });
  return plain && top_of_own_loops(block)->parent->is_block();
}

}  // namespace

void Schedule::transform_layout(BlockRV block_rv, BufferArg buffer_arg, IndexMap index_map, AttrValue pad_value,
                                bool assume_injective_transform) {
  Step step(*this, PrimitiveId::k_transform_layout, block_rv, buffer_arg, index_map, pad_value,
            assume_injective_transform);
  TreeNode* block = step.block(block_rv);
  Tree& tree = *block->tree;
  Buffer buffer = step.buffer(block, buffer_arg, AccessKind::kRead);
  const BufferType& old = buffer_type(buffer);
  const std::string& name = buffer->name;
  TreeNode* home = allocating_block(tree, buffer);
  if (!home && !tree.is_param(buffer))
    step.refuse({block}, fmt::format("'{}' is neither a param nor allocated by a block", name));
  if (!old.strides.empty() || old.elem_offset || old.data)
    step.refuse({block}, fmt::format("'{}' is strided or a view, its layout is given", name));
  if (index_map.rank() != old.shape.size())
    step.refuse({block},
                fmt::format("the map takes {} positions, '{}' has {} dims", index_map.rank(), name, old.shape.size()));
  step.require(other_uses(tree.root(), buffer), block);
  if (const Expr* pad = pad_value.as<Expr>(); pad && !pad->is<Lambda>()) step.number(*pad);

  std::string why;
  std::optional<MappedBox> box = map_box(tree, index_map, old.shape, &why);
  if (!box && !assume_injective_transform)
    step.refuse({block}, fmt::format("the map is not known to be one to one on '{}': {}", name, why));
  BufferType type = old;
  type.axis_separators.clear();
  type.shape.clear();
  if (box) {
    type.shape = box->extents;
  } else {
    RunningVars vars;
    std::vector<Expr> positions;
    Expr before = int_imm(1), after = int_imm(1);
    for (const Expr& dim : old.shape) {
      VarRef var = make_var("i", prim_type(dtype_of(dim)));
      positions.push_back(var);
      vars.emplace(var.get(), Range{int_imm(0, dtype_of(dim)), dim});
      before = before * cast_to(dim, kInt64);
    }
    for (const Expr& e : index_map(positions)) {
      auto bounds = bounds_over(e, vars, tree.facts);
      if (!bounds) step.refuse({block}, fmt::format("the map's result {} has no known bounds", type.shape.size()));
      type.shape.push_back(tree.facts.simplify(bounds->max + int_imm(1, dtype_of(e))));
      after = after * cast_to(type.shape.back(), kInt64);
    }
    if (!tree.facts.can_prove_equal(before, after))
      step.refuse({block}, fmt::format("the map leaves gaps in '{}', and its inverse is not known", name));
  }
  if (std::optional<std::string> dim = home ? std::nullopt : lost_dim(tree, buffer, type.shape))
    step.refuse({block}, fmt::format("param '{}' would no longer say what '{}' is", name, *dim));
  bool padded = box && !box->conditions.empty();
  if (padded && !home && pad_value.is_none())
    step.refuse({block},
                fmt::format("param '{}' would get padding, which callers see; say by pad_value what it holds", name));
  std::function<Expr(const std::vector<Expr>&)> pad;
  if (padded && !pad_value.is_none()) {
    const Expr* given = pad_value.as<Expr>();
    const Lambda* lambda = given ? given->as<Lambda>() : nullptr;
    if (lambda && (lambda->params.size() != type.shape.size() || lambda->results.size() != 1))
      step.refuse({block}, "pad_value does not take the new positions to one value");
    double number = 0;
    if (!given && !from_attr(pad_value, number))
      step.refuse({block}, fmt::format("pad_value {} is no number", to_string(pad_value)));
    pad = [=, dtype = old.dtype](const std::vector<Expr>& at) {
      if (lambda) {
        VarMap positions;
        for (size_t d = 0; d < at.size(); ++d)
          positions.emplace(lambda->params[d].get(), cast_to(at[d], dtype_of(lambda->params[d])));
        return cast_to(substitute(lambda->results[0], positions), dtype);
      }
      return given ? cast_to(*given, dtype) : scalar_imm(number, dtype);
    };
  }
  std::vector<TreeNode*> makers;
  for (TreeNode* other : tree.blocks()) {
    if (other->is_leaf_block() && write_of(other, buffer)) makers.push_back(other);
  }
  bool at_once = pad && makers.size() == 1 && fills_whole(makers[0], old.shape);

  // Where padding is written on its own: before all that use the buffer.
  TreeNode* place = home ? home : tree.root();
  size_t position = 0;
  auto uses = [&](const TreeNode* node) {
    std::vector<TreeNode*> below = blocks_below(node);
    return node->kind == TreeKind::kLeaf || std::any_of(below.begin(), below.end(), [&](const TreeNode* b) {
             return read_of(b, buffer) || write_of(b, buffer);
           });
  };
  while (position < place->children.size() && !uses(place->children[position])) ++position;

  Buffer to = with_buffer_type(buffer, type);
  auto moved = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> result;
    for (const Expr& index : index_map(indices)) result.push_back(tree.facts.simplify(index));
    return result;
  };
  if (at_once) {
    TreeNode* maker = makers[0];
    VarMap origins;
    for (size_t d = 0; d < box->origins.size(); ++d)
      origins.emplace(maker->block->iter_vars[d].var.get(), box->origins[d]);
    std::vector<Expr> at(box->vars.begin(), box->vars.end());
    Expr value = substitute(single_store(maker)->value, origins);
    std::vector<TreeNode*> loops;
    std::vector<IterVar> axes;
    for (size_t d = 0; d < at.size(); ++d) {
      loops.push_back(tree.new_loop(fmt::format("ax{}", d), type.shape[d]));
      axes.push_back(
          {box->vars[d], {int_imm(0, dtype_of(at[d])), type.shape[d]}, IterKind::kSpatial, loops.back()->loop->var});
    }
    TreeNode* top = top_of_own_loops(maker);
    maker->block->iter_vars = axes;
    maker->block->body = store(to, if_then_else(*conjunction(box->conditions), value, pad(at)), at);
    maker->affine.reset();
    TreeNode* parent = top->parent;
    size_t child = top->position();
    tree.detach(maker);
    if (top != maker) tree.detach(top);
    tree.insert(parent, child, tree.wrap(maker, loops));
    refresh_regions(maker);
  }
  rewrite_accesses(tree.root(), buffer,
                   {[&](const BufferLoad& e) { return load(to, moved(e.indices)); },
                    [&](const BufferStore& s) { return store(to, s.value, moved(s.indices)); }});
  replace_definition(tree, buffer, to);
  if (at_once) refresh_regions_above(makers[0]);
  if (pad && !at_once && !makers.empty()) {
    TreeNode* nest = compute_nest(tree, name + "_pad", type.shape,
                                  [&](const std::vector<Expr>& at) { return store(to, pad(at), at); });
    TreeNode* filler = blocks_below(nest)[0];
    VarMap values;
    for (size_t d = 0; d < box->vars.size(); ++d) values.emplace(box->vars[d].get(), filler->block->iter_vars[d].value);
    filler->block->predicate = not_(substitute(*conjunction(box->conditions), values));
    filler->partial = true;
    tree.insert(place, position, nest);
    refresh_regions_above(filler);
  }
  step.done();
}

}  // namespace relaxc
