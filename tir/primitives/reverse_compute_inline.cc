#include "tir/primitives/reverse_compute_inline.h"

#include "support/joined.h"
#include "tir/analysis/annotations.h"
#include "tir/edit/index_maps.h"
#include "tir/edit/move.h"
#include "tir/edit/parts.h"

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

// Refuses a producer of the block, one of the parts of a buffer, whose stores cannot store the block's values.
Refusal not_inlinable_into(const TreeNode* block, TreeNode* producer, const Buffer& buffer) {
  const BufferStore* made = single_store(producer);
  if (!made || !same_node(made->buffer, buffer) || producer->block->init)
    return message("block '{}' is not a single store of an element", producer);
  if (Refusal refusal = not_spatial(producer)) return refusal;
  if (producer->partial)
    return message("block '{}' has a predicate, or does not cover the domains of its axes", producer);
  if (is_output(producer)) return message("block '{}' writes an output", producer);
  for (const TreeNode* reader : readers(scope_of(block), made->buffer)) {
    if (reader != block) return message("block '{}' reads '{}', too", reader, made->buffer);
  }
  return std::nullopt;
}

// Returns the producers whose result, one buffer in parts, the block alone reads; the last ones of several.
Nodes inlinable_producers(Step& step, TreeNode* block) {
  Nodes found;
  std::string why;
  for (const BufferRegion& read : block->block->reads) {
    Nodes parts = writers(scope_of(block), read.buffer);
    if (parts.empty() || (!found.empty() && precedes(parts.back(), found.back()))) continue;
    Refusal refusal = std::nullopt;
    for (TreeNode* part : parts) refusal = refusal ? refusal : not_inlinable_into(block, part, read.buffer);
    if (!refusal) refusal = not_apart(parts);
    if (!refusal && has_other_elements(block, read))
      refusal = message("block '{}' has elements for which it does not read '{}'", block, read.buffer);
    if (refusal && why.empty()) why = *refusal;
    if (!refusal) found = std::move(parts);
  }
  if (found.empty()) {
    step.refuse({block}, "block '{}' has no producer that is a single store, complete, and read by it alone{}", block,
                why.empty() ? why : ": " + why);
  }
  return found;
}

// Refuses unless the block's other inputs, and its result, are the same where the producers stand.
void require_same_values(Step& step, TreeNode* block, const Nodes& producers) {
  for (TreeNode* other : producers_of(block)) {
    if (!contains(producers, other) && !precedes(other, producers.front()))
      step.refuse({other, block}, "block '{}' also reads what '{}' makes after '{}'", block, other, producers.front());
  }
  for (const BufferRegion& write : block->block->writes) {
    for (TreeNode* reader : readers(scope_of(block), write.buffer)) {
      if (precedes(reader, block))
        step.refuse({reader, block}, "block '{}' reads '{}' before '{}' writes it", reader, write.buffer, block);
    }
  }
}

// Refuses a producer that shares a loop with one of the block's other inputs, where an iteration has not made all that
// the block's values need.
Refusal not_made_yet(const TreeNode* block, TreeNode* producer, const VarMap& axes) {
  for (const BufferRegion& read : block->block->reads) {
    Nodes makers = writers(scope_of(block), read.buffer);
    if (contains(makers, producer)) continue;
    for (TreeNode* maker : makers) {
      TreeNode* shared = common_ancestor({maker, producer});
      if (!shared->is_loop()) continue;
      Nodes inside = makers;
      std::erase_if(inside, [&](const TreeNode* each) { return !is_ancestor(shared, each); });
      BufferRegion needed{read.buffer,
                          map_each(read.ranges, [&](const Range& range) { return substitute(range, axes); })};
      if (maker->carried || find_unfinished(maker, shared) ||
          !writes_all(inside, read.buffer, shared, region_at(producer, needed, shared)))
        return message("an iteration of loop '{}' is not known to have made all of '{}' that block '{}' reads", shared,
                       read.buffer, block);
    }
  }
  return std::nullopt;
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
void store_inlined(TreeNode* producer, const BufferStore& store, const Span& consumer_place, const VarMap& axes) {
  const BufferStore inner = *single_store(producer);
  // The value stands where the buffer was loaded, in the producer's axes.
  Expr value = rewrite(substitute(store.value, axes), [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    return same_node(load->buffer, inner.buffer) ? std::optional(inner.value) : std::nullopt;
  });
  // The strides that it asks for were those of the buffer that goes.
  producer->block->annotations = producer->block->annotations.without(annotation<"buffer_dim_align">());
  const Span& place = producer->block->body.span();
  producer->block->body =
      relaxc::store(store.buffer, value, substitute(store.indices, axes), place ? place : consumer_place);
  refresh_regions(producer);
}

}  // namespace

void ReverseComputeInline::apply(Step& step) const {
  TreeNode* block = step.block(this->block);
  step.require_all(block, not_movable, not_spatial, not_apart_from_others);
  const BufferStore* store = single_store(block);
  if (!store || block->block->init) step.refuse({block}, "block '{}' is not a single store of an element", block);
  Nodes producers = inlinable_producers(step, block);
  require_same_values(step, block, producers);
  const Buffer buffer = single_store(producers[0])->buffer;
  std::optional<AxisDims> dims = dims_of_loads(block, store->value, buffer);
  std::optional<MappedBox> box;
  if (!dims) box = read_place(block, store->value, buffer);
  if (!dims && !box)
    step.refuse({block}, "block '{}' reads '{}' in another way than at one place, a one to one function of its axes",
                block, buffer);
  if (!writes_all(producers, buffer, nullptr, region_at(block, *read_of(block, buffer), nullptr))) {
    auto name = [](const TreeNode* producer) { return fmt::format("'{}'", producer->name()); };
    step.refuse({block, producers[0]}, "cannot prove that block '{}' reads only elements that {} write{} of '{}'",
                block, joined(producers, name), producers.size() == 1 ? "s" : "", buffer);
  }
  std::vector<InverseAxes> inverses;
  for (TreeNode* producer : producers) {
    inverses.push_back(axes_in_producer(block, producer, dims, box));
    step.require(not_made_yet(block, producer, inverses.back().axes), {block, producer});
  }
  for (size_t i = 0; i < producers.size(); ++i) {
    store_inlined(producers[i], *store, block->block->body.span(), inverses[i].axes);
    for (const Expr& condition : inverses[i].conditions) restrict_block(producers[i], condition);
    producers[i]->partial = !inverses[i].conditions.empty();
  }
  block->tree->remove_with_buffer(block, buffer);
  refresh_regions_above(producers[0]);
}

}  // namespace relaxc
