#include "tir/edit/mapped_box.h"
#include "tir/edit/move.h"
#include "tir/edit/written.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Of a block that reads the buffer at one place, which is a one to one function of its axes: the way back.
std::optional<MappedBox> read_place(const TreeNode* block, const Expr& value, const Buffer& buffer) {
  std::optional<std::vector<Expr>> place;
  bool fits = true;
  walk(value, [&](const BufferLoad& load) {
    if (!same_node(load.buffer, buffer)) return;
    for (size_t d = 0; place && d < load.indices.size(); ++d)
      fits = fits && structural_equal((*place)[d], load.indices[d]);
    fits = fits && !load.predicate;
    place = load.indices;
  });
  const std::vector<IterVar>& axes = block->block->iter_vars;
  std::vector<Expr> extents;
  for (const IterVar& axis : axes) {
    fits = fits && is_int(axis.domain.min, 0);
    extents.push_back(axis.domain.extent);
  }
  if (!fits || !place) return std::nullopt;
  IndexMap map(axes.size(), [&](const Exprs& positions) {
    VarMap at;
    for (size_t a = 0; a < axes.size(); ++a)
      at.emplace(axes[a].var.get(), cast_to(positions[a], dtype_of(axes[a].var)));
    Exprs result;
    for (const Expr& index : *place) result.push_back(substitute(index, at));
    return result;
  });
  return map_box(*block->tree, map, extents, nullptr);
}

}  // namespace

void Schedule::reverse_compute_inline(BlockRV block_rv) {
  Step step(*this, PrimitiveId::k_reverse_compute_inline, block_rv);
  TreeNode* block = step.block(block_rv);
  Tree& tree = *block->tree;
  const std::string& name = block->block->name;
  step.require(not_movable(block), block);
  step.require(not_complete(block), block);
  const BufferStore* store = single_store(block);
  if (!store || block->block->init)
    step.refuse({block}, fmt::format("block '{}' is not a single store of an element", name));

  // The producer: the only one whose result the block alone reads.
  TreeNode* producer = nullptr;
  Buffer buffer = store->buffer;
  for (TreeNode* candidate : producers_of(block)) {
    const BufferStore* made = single_store(candidate);
    if (!made || not_complete(candidate) || candidate->block->init || candidate->partial || is_output(candidate))
      continue;
    if (readers(scope_of(block), made->buffer).size() != 1) continue;
    bool later = producer && precedes(producer, candidate);
    if (producer && !later) continue;
    producer = candidate;
    buffer = made->buffer;
  }
  if (!producer)
    step.refuse({block},
                fmt::format("block '{}' has no producer that is a single store, complete, and read by it alone", name));
  for (TreeNode* other : producers_of(block)) {
    if (other != producer && !precedes(other, producer))
      step.refuse({other, block}, fmt::format("block '{}' also reads what '{}' makes after '{}'", name,
                                              other->block->name, producer->block->name));
  }
  // Each axis is an index of the buffer.
  std::vector<std::optional<size_t>> dims(block->block->iter_vars.size());
  bool plain = true;
  walk(store->value, [&](const BufferLoad& load) {
    if (!same_node(load.buffer, buffer)) return;
    plain = plain && !load.predicate;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      bool found = false;
      for (size_t a = 0; a < dims.size(); ++a) {
        if (!same_node(load.indices[d], block->block->iter_vars[a].var)) continue;
        found = true;
        plain = plain && (!dims[a] || *dims[a] == d);
        dims[a] = d;
      }
      plain = plain && (found || is_int(buffer_type(buffer).shape[d], 1));
    }
  });
  for (size_t a = 0; a < dims.size(); ++a)
    plain = plain && (dims[a] || is_int(block->block->iter_vars[a].domain.extent, 1));
  std::optional<MappedBox> box;
  if (!plain) box = read_place(block, store->value, buffer);
  if (!plain && !box)
    step.refuse({block}, fmt::format("block '{}' reads '{}' in another way than at one place, a one to one function "
                                     "of its axes",
                                     name, buffer->name));
  if (!writes_all({producer}, buffer, nullptr, region_at(block, *read_of(block, buffer), nullptr)))
    step.refuse({block, producer}, fmt::format("block '{}' is not known to read only what '{}' writes of '{}'", name,
                                               producer->block->name, buffer->name));

  const BufferStore inner = *single_store(producer);
  VarMap axes, values;
  for (const IterVar& axis : producer->block->iter_vars) values.emplace(axis.var.get(), axis.value);
  std::vector<Expr> conditions;
  auto require = [&](const Expr& condition) {
    if (!tree.facts.can_prove(condition)) conditions.push_back(tree.facts.simplify(substitute(condition, values)));
  };
  VarMap coordinates;
  for (size_t d = 0; box && d < inner.indices.size(); ++d) {
    Expr at = cast_to(inner.indices[d], dtype_of(box->vars[d]));
    coordinates.emplace(box->vars[d].get(), at);
    require(at < box->extents[d]);
  }
  if (box) {
    for (const Expr& condition : box->conditions) require(substitute(condition, coordinates));
  }
  for (size_t a = 0; a < dims.size(); ++a) {
    const IterVar& axis = block->block->iter_vars[a];
    Expr at = box ? substitute(box->origins[a], coordinates) : dims[a] ? inner.indices[*dims[a]] : axis.domain.min;
    at = tree.facts.simplify(cast_to(at, dtype_of(axis.var)));
    axes.emplace(axis.var.get(), at);
    require(at >= axis.domain.min);
    require(at < axis.domain.min + axis.domain.extent);
  }
  // The value stands where the buffer was loaded, in the producer's axes.
  Expr value = rewrite(substitute(store->value, axes), [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    return same_node(load->buffer, buffer) ? std::optional(inner.value) : std::nullopt;
  });
  std::vector<Expr> indices;
  for (const Expr& index : store->indices) indices.push_back(substitute(index, axes));
  Buffer target = store->buffer;
  producer->block->body = relaxc::store(target, value, indices);
  refresh_regions(producer);
  for (const Expr& condition : conditions) restrict_block(producer, condition);
  producer->partial = !conditions.empty();
  TreeNode* scope = scope_of(block);
  tree.remove(block);
  std::erase_if(scope->block->alloc_buffers, [&](const Buffer& own) { return same_node(own, buffer); });
  refresh_regions_above(producer);
  step.done();
}

}  // namespace relaxc
