#include "tir/primitives/compute_inline.h"

#include <algorithm>

#include "tir/edit/accesses.h"
#include "tir/edit/move.h"
#include "tir/edit/parts.h"

namespace relaxc {

using namespace scheduling;

namespace {

constexpr size_t kMostPartsInlined = 128;  // of which each pair is compared

// One of the blocks that write the buffer in parts. In each dim it stores at an axis plus an offset, or at the offset.
struct StoredPart {
  TreeNode* block;
  const BufferStore* store;
  AxisDims dims;
  std::vector<Expr> offsets = {};
  std::vector<Range> box = {};  // the elements that it writes

  bool is_shifted = false;  // it may leave out elements of the buffer

  Expr value_at(const std::vector<Expr>& indices) const {
    VarMap axes;
    for (size_t a = 0; a < dims.size(); ++a) {
      const IterVar& axis = block->axes()[a];
      DType dtype = dtype_of(axis.var);
      Expr at = dims[a] ? cast_to(indices[*dims[a]], dtype) : axis.domain.min;
      if (dims[a] && !is_int(offsets[*dims[a]], 0)) at = simplify(at - cast_to(offsets[*dims[a]], dtype));
      axes.emplace(axis.var.get(), at);
    }
    return substitute(store->value, axes);
  }
};

// Splits the indices of a store into axes and offsets.
std::optional<AxisDims> dims_of_shifted(const StoredPart& part, std::vector<Expr>& offsets, std::string& why) {
  const TreeNode* block = part.block;
  AxisDims dims(block->axes().size());
  for (size_t d = 0; d < part.store->indices.size(); ++d) {
    const Expr& index = part.store->indices[d];
    offsets.push_back(index);
    for (size_t a = 0; a < dims.size(); ++a) {
      const VarRef& var = block->axes()[a].var;
      if (dims[a] || coefficient(index, var, block->tree->facts) != 1) continue;
      dims[a] = d;
      offsets[d] = block->tree->facts.simplify(substitute(index, {{var.get(), int_imm(0, dtype_of(var))}}));
      break;
    }
    if (!mentions_axes(offsets[d], block)) continue;
    why = message("index {} of '{}' is not an axis of its own, or one plus an offset", d, part.store->buffer);
    return std::nullopt;
  }
  for (size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] || is_int(block->axes()[a].domain.extent, 1)) continue;
    why = message("axis '{}' is not an index of '{}'", block->axes()[a].var, part.store->buffer);
    return std::nullopt;
  }
  return dims;
}

StoredPart stored_part(Step& step, TreeNode* block) {
  const BufferStore* store = single_store(block);
  if (!store || block->block->init) step.refuse({block}, "block '{}' is not a single store of an element", block);
  StoredPart part{block, store, {}};
  std::string why;
  std::optional<AxisDims> dims = dims_of_axes(block, store->buffer, store->indices);
  if (dims) {
    for (const Expr& index : store->indices) part.offsets.push_back(int_imm(0, dtype_of(index)));
  } else {
    dims = dims_of_shifted(part, part.offsets, why);
    part.is_shifted = true;
  }
  if (!dims) step.refuse({block}, "in the store {}", why);
  part.dims = std::move(*dims);
  const BufferRegion* region = write_of(block, store->buffer);
  if (!region) step.refuse({block}, "block '{}' does not declare that it writes '{}'", block, store->buffer);
  part.box = region_at(block, *region, nullptr);
  return part;
}

// A decision by one index after the other which part has an element: those in `low`, below the bound, or in `high`.
struct PartChoice {
  const StoredPart* part = nullptr;  // if it is the only one
  size_t dim = 0;
  Expr bound = int_imm(0);
  std::vector<PartChoice> sides = {};  // low, high

  Expr value_at(const std::vector<Expr>& indices, const Analyzer& facts) const {
    if (part) return part->value_at(indices);
    Expr condition = indices[dim] < cast_to(bound, dtype_of(indices[dim]));
    if (facts.can_prove(condition)) return sides[0].value_at(indices, facts);
    if (facts.can_prove(indices[dim] >= cast_to(bound, dtype_of(indices[dim]))))
      return sides[1].value_at(indices, facts);
    return if_then_else(condition, sides[0].value_at(indices, facts), sides[1].value_at(indices, facts));
  }
};

using PartRefs = std::vector<const StoredPart*>;
std::optional<PartChoice> choice_of(PartRefs parts, const Analyzer& facts);

// Returns the choice among parts in their order along the dim, whose first `low` are below all others.
std::optional<PartChoice> choice_at(const PartRefs& parts, size_t low, size_t dim, const Analyzer& facts) {
  auto first = parts.begin() + static_cast<long>(low);
  auto same = [&](const Expr& e) { return cast_to(e, dtype_of((*first)->box[dim].min)); };
  auto is_below = [&](const Expr& bound) {
    return std::all_of(parts.begin(), first,
                       [&](auto* part) { return facts.can_prove(same(end_of(part->box[dim])) <= bound); });
  };
  auto is_least = [&](const Expr& bound) {
    return std::all_of(first, parts.end(),
                       [&](auto* part) { return facts.can_prove(bound <= same(part->box[dim].min)); });
  };
  for (auto candidate = first; candidate != parts.end(); ++candidate) {
    Expr bound = same((*candidate)->box[dim].min);
    if (!is_least(bound)) continue;
    if (!is_below(bound)) return std::nullopt;
    auto below = choice_of(PartRefs(parts.begin(), first), facts),
         above = choice_of(PartRefs(first, parts.end()), facts);
    if (!below || !above) return std::nullopt;
    return PartChoice{nullptr, dim, bound, {std::move(*below), std::move(*above)}};
  }
  return std::nullopt;
}

// Returns a choice that is no deeper than the logarithm of the number of parts if one index decides.
std::optional<PartChoice> choice_of(PartRefs parts, const Analyzer& facts) {
  if (parts.size() == 1) return PartChoice{.part = parts[0]};
  for (size_t d = 0; d < parts[0]->box.size(); ++d) {
    std::vector<std::pair<size_t, const StoredPart*>> ranked;  // by the number of parts below
    for (const StoredPart* part : parts) {
      ranked.emplace_back(
          std::ranges::count_if(parts,
                                [&](const StoredPart* other) {
                                  return facts.can_prove(end_of(other->box[d]) <=
                                                         cast_to(part->box[d].min, dtype_of(other->box[d].min)));
                                }),
          part);
    }
    std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = ranked[i].second;
    // A part with `low` parts below it begins a new side. The middle is tried first.
    std::vector<size_t> sides;
    for (size_t i = 1; i < ranked.size(); ++i) {
      if (ranked[i].first == i) sides.push_back(i);
    }
    std::ranges::stable_sort(sides, {}, [&](size_t low) { return std::max(low, parts.size() - low); });
    for (size_t low : sides) {
      if (auto choice = choice_at(parts, low, d, facts)) return choice;
    }
  }
  return std::nullopt;
}

// Gives loads without a place, such as those of an operator's program, that of the load in whose place they stand:
// errors about an index name the line of the program that computes it.
Expr in_place_of(const Span& place, const Expr& value) {
  if (!place) return value;
  return rewrite(value, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
    if (load.span()) return std::nullopt;
    return make(BufferLoad(*load), load.type(), place);
  });
}

Nodes users_of_result(Step& step, const Nodes& parts, const Buffer& buffer) {
  Nodes users = parts[0]->tree->blocks();
  std::erase_if(users, [&](TreeNode* user) {
    return contains(parts, user) || !user->is_leaf_block() ||
           !(read_of(user, buffer) || uses_var(user->block->body, buffer));
  });
  for (TreeNode* user : users) {
    if (other_uses(user, buffer) || !places_of<BufferStore>(user, buffer).empty())
      step.refuse({user, parts[0]}, "block '{}' uses '{}' in another way than loading elements", user, buffer);
    if (parts.size() > 1 && !precedes(parts.back(), user))
      step.refuse({user, parts.back()}, "block '{}' reads '{}' before block '{}' writes its part", user, buffer,
                  parts.back());
  }
  if (users.empty()) step.refuse({parts[0]}, "nothing reads what block '{}' writes", parts[0]);
  return users;
}

}  // namespace

void ComputeInline::apply(Step& step) const {
  Nodes blocks = parts_with(step.block(this->block));
  std::vector<StoredPart> parts;
  for (TreeNode* block : blocks) {
    step.require_all(block, not_movable, not_spatial, inputs_change);
    if (blocks.size() == 1) step.require(not_complete(block), block);
    parts.push_back(stored_part(step, block));
    if (is_output(block)) step.refuse({block}, "block '{}' writes an output", block);
  }
  Tree& tree = *blocks[0]->tree;
  const Buffer buffer = parts[0].store->buffer;
  if (blocks.size() > kMostPartsInlined)
    step.refuse(blocks, "'{}' has {} parts, of which at most {} can be inlined", buffer, blocks.size(),
                kMostPartsInlined);
  step.require(not_apart(blocks), blocks);
  Nodes users = users_of_result(step, blocks, buffer);
  for (TreeNode* reader : readers(scope_of(blocks[0]), buffer)) {
    if (blocks.size() == 1 && !parts[0].is_shifted) break;  // elements that are not written may be read
    if (!writes_all(blocks, buffer, nullptr, region_at(reader, *read_of(reader, buffer), nullptr)))
      step.refuse({reader, blocks[0]},
                  "cannot prove that block '{}' reads only elements of '{}' that its producers write", reader, buffer);
  }
  std::optional<PartChoice> choice =
      choice_of(map_each(parts, [](const StoredPart& part) { return &part; }), tree.facts);
  if (!choice) step.refuse(blocks, "indices of '{}' do not tell which block writes an element", buffer);
  auto inlined = [&](const Stmt& stmt) {
    return rewrite(stmt, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (!same_node(load->buffer, buffer)) return std::nullopt;
      return in_place_of(load.span(), choice->value_at(load->indices, tree.facts));
    });
  };
  for (TreeNode* user : users) {
    user->block->body = inlined(user->block->body);
    if (user->block->init) user->block->init = inlined(*user->block->init);
    refresh_regions_around(user);
  }
  for (TreeNode* block : blocks) tree.remove_with_buffer(block, buffer);
}

}  // namespace relaxc
