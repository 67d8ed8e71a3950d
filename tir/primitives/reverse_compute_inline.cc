#include "tir/primitives/reverse_compute_inline.h"

#include "tir/edit/index_maps.h"
#include "tir/edit/move.h"

namespace relaxc {

using namespace scheduling;

namespace {

// Returns the inverse of the place at which the block reads the buffer, if it is one, and one to one with the axes.
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
  return fits && place ? map_box(*block->tree, block->axes(), *place, nullptr) : std::nullopt;
}

// Returns the last producer whose result the block alone reads, or null.
TreeNode* inlinable_producer(const TreeNode* block) {
  TreeNode* producer = nullptr;
  for (TreeNode* candidate : producers_of(block)) {
    const BufferStore* made = single_store(candidate);
    if (!made || not_complete(candidate) || candidate->block->init || candidate->partial || is_output(candidate))
      continue;
    if (readers(scope_of(block), made->buffer).size() != 1) continue;
    if (!producer || precedes(producer, candidate)) producer = candidate;
  }
  return producer;
}

// Returns for each axis the dim of the buffer whose index it is, the same one in all loads.
std::optional<AxisDims> dims_of_loads(const TreeNode* block, const Expr& value, const Buffer& buffer) {
  std::optional<AxisDims> dims;
  bool plain = true;
  walk(value, [&](const BufferLoad& load) {
    if (!same_node(load.buffer, buffer)) return;
    std::optional<AxisDims> before = std::exchange(dims, dims_of_axes(block, buffer, load.indices));
    plain = plain && !load.predicate && dims && (!before || before == dims);
  });
  return plain ? dims : std::nullopt;
}

// The block's axes in terms of the producer's, and the conditions under which the block has that iteration.
struct InverseAxes {
  VarMap axes;
  std::vector<Expr> conditions;  // over the producer's loops
};

// Without `dims` the element that the producer makes is an image in the box.
InverseAxes axes_in_producer(const TreeNode* block, const TreeNode* producer, const std::optional<AxisDims>& dims,
                             const std::optional<MappedBox>& box) {
  const Analyzer& facts = block->tree->facts;
  const std::vector<Expr>& made_at = single_store(producer)->indices;
  InverseAxes result;
  VarMap values = values_of_axes(producer), coordinates;
  auto require = [&](const Expr& condition) {
    if (!facts.can_prove(condition)) result.conditions.push_back(facts.simplify(substitute(condition, values)));
  };
  for (size_t d = 0; box && d < made_at.size(); ++d) {
    Expr at = cast_to(made_at[d], dtype_of(box->vars[d]));
    coordinates.emplace(box->vars[d].get(), at);
    require(at < box->extents[d]);
  }
  for (const Expr& condition : box ? box->conditions : std::vector<Expr>()) require(substitute(condition, coordinates));
  for (size_t a = 0; a < block->axes().size(); ++a) {
    const IterVar& axis = block->axes()[a];
    Expr at = axis.domain.min;
    if (box) at = substitute(box->origins[a], coordinates);
    if (!box && (*dims)[a]) at = made_at[*(*dims)[a]];
    at = facts.simplify(cast_to(at, dtype_of(axis.var)));
    result.axes.emplace(axis.var.get(), at);
    require(at >= axis.domain.min);
    require(at < end_of(axis.domain));
  }
  return result;
}

// Lets the producer store the values that the block would have stored.
void store_inlined(TreeNode* producer, const BufferStore& store, const VarMap& axes) {
  const BufferStore inner = *single_store(producer);
  // The value stands where the buffer was loaded, in the producer's axes.
  Expr value = rewrite(substitute(store.value, axes), [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    return same_node(load->buffer, inner.buffer) ? std::optional(inner.value) : std::nullopt;
  });
  producer->block->body = relaxc::store(store.buffer, value, substitute(store.indices, axes));
  refresh_regions(producer);
}

}  // namespace

void ReverseComputeInline::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  step.require_all(block, not_movable, not_complete);
  const BufferStore* store = single_store(block);
  if (!store || block->block->init) step.refuse({block}, "block '{}' is not a single store of an element", block);
  TreeNode* producer = inlinable_producer(block);
  if (!producer)
    step.refuse({block}, "block '{}' has no producer that is a single store, complete, and read by it alone", block);
  for (TreeNode* other : producers_of(block)) {
    if (other != producer && !precedes(other, producer))
      step.refuse({other, block}, "block '{}' also reads what '{}' makes after '{}'", block, other, producer);
  }
  const Buffer buffer = single_store(producer)->buffer;
  std::optional<AxisDims> dims = dims_of_loads(block, store->value, buffer);
  std::optional<MappedBox> box;
  if (!dims) box = read_place(block, store->value, buffer);
  if (!dims && !box)
    step.refuse({block}, "block '{}' reads '{}' in another way than at one place, a one to one function of its axes",
                block, buffer);
  if (!writes_all({producer}, buffer, nullptr, region_at(block, *read_of(block, buffer), nullptr)))
    step.refuse({block, producer}, "cannot prove that block '{}' reads only elements that '{}' writes of '{}'", block,
                producer, buffer);
  InverseAxes inverse = axes_in_producer(block, producer, dims, box);
  store_inlined(producer, *store, inverse.axes);
  for (const Expr& condition : inverse.conditions) restrict_block(producer, condition);
  producer->partial = !inverse.conditions.empty();
  block->tree->remove_with_buffer(block, buffer);
  refresh_regions_above(producer);
}

}  // namespace relaxc
