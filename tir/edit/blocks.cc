#include "tir/edit/blocks.h"

#include <algorithm>
#include <unordered_set>

#include "ir/regions.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/combiner.h"
#include "tir/analysis/dependence.h"
#include "tir/analysis/nests.h"

namespace relaxc::scheduling {

const BufferRegion* find_region(const std::vector<BufferRegion>& regions, const Buffer& buffer) {
  auto found =
      std::ranges::find_if(regions, [&](const BufferRegion& region) { return same_node(region.buffer, buffer); });
  return found == regions.end() ? nullptr : &*found;
}

namespace {

bool share(const std::vector<BufferRegion>& a, const std::vector<BufferRegion>& b) {
  return std::ranges::any_of(a, [&](const BufferRegion& r) { return find_region(b, r.buffer); });
}

template <class F>
Nodes blocks_of_scope(const TreeNode* scope, const F& wanted) {
  Nodes result = scope ? blocks_inside(scope) : Nodes();  // none around the root
  std::erase_if(result, [&](const TreeNode* block) { return !wanted(block); });
  return result;
}

}  // namespace

Nodes writers(const TreeNode* scope, const Buffer& buffer) {
  return blocks_of_scope(scope, [&](const TreeNode* block) { return write_of(block, buffer); });
}
Nodes readers(const TreeNode* scope, const Buffer& buffer) {
  return blocks_of_scope(scope, [&](const TreeNode* block) { return read_of(block, buffer); });
}

Nodes producers_of(const TreeNode* block) {
  return blocks_of_scope(scope_of(block), [&](const TreeNode* other) {
    return other != block && share(other->block->writes, block->block->reads);
  });
}
Nodes consumers_of(const TreeNode* block) {
  return blocks_of_scope(scope_of(block), [&](const TreeNode* other) {
    return other != block && share(block->block->writes, other->block->reads);
  });
}

bool depend(const TreeNode* a, const TreeNode* b) {
  return share(a->block->writes, b->block->reads) || share(a->block->reads, b->block->writes) ||
         share(a->block->writes, b->block->writes);
}

TreeNode* allocating_block(const Tree& tree, const Buffer& buffer) {
  Nodes all = tree.blocks();
  all.push_back(tree.root());
  auto home = std::ranges::find_if(all, [&](TreeNode* block) { return contains(block->block->alloc_buffers, buffer); });
  return home == all.end() ? nullptr : *home;
}

bool is_private_to(const TreeNode* loop, const Buffer& buffer) {
  return allocating_block(*loop->tree, buffer) &&
         std::ranges::none_of(loop->tree->blocks(), [&](const TreeNode* block) {
           return accesses(block, buffer) && !is_ancestor(loop, block) && !is_ancestor(block, loop);
         });
}

bool is_output(const TreeNode* block) {
  return std::ranges::any_of(block->block->writes, [&](const BufferRegion& write) {
    return !contains(scope_of(block)->block->alloc_buffers, write.buffer);
  });
}

const IterVar* axis_named(const TreeNode* block, const Expr& e) {
  size_t position = position_of_axis(block->axes(), e);
  return position < block->axes().size() ? &block->axes()[position] : nullptr;
}

std::optional<AxisDims> dims_of_axes(const TreeNode* block, const Buffer& buffer, const std::vector<Expr>& indices,
                                     std::string* why) {
  const std::vector<IterVar>& axes = block->axes();
  AxisDims dims(axes.size());
  auto no = [&](std::string text) {
    if (why) *why = std::move(text);
    return std::nullopt;
  };
  for (size_t d = 0; d < indices.size(); ++d) {
    const IterVar* axis = axis_named(block, indices[d]);
    std::optional<size_t>* dim = axis ? &dims[static_cast<size_t>(axis - axes.data())] : nullptr;
    bool is_unused_axis = dim && !*dim;
    if (is_unused_axis) *dim = d;
    if (!is_unused_axis && !is_int(buffer_type(buffer).shape[d], 1))
      return no(message("index {} of '{}' is not an axis of its own", d, buffer));
  }
  for (size_t a = 0; a < dims.size(); ++a) {
    if (!dims[a] && !is_int(axes[a].domain.extent, 1))
      return no(message("axis '{}' is not an index of '{}'", axes[a].var, buffer));
  }
  return dims;
}

Drives drives(const TreeNode* loop, const std::vector<IterVar>& axes) {
  Drives result;
  for (const IterVar& axis : axes) {
    if (uses_var(axis.value, loop->var())) (axis.kind == IterKind::kSpatial ? result.spatial : result.reduce) = true;
  }
  return result;
}

std::optional<DrivenAxis> find_unfinished(const TreeNode* block, TreeNode* loop) {
  for (const IterVar& axis : block->axes()) {
    if (axis.kind == IterKind::kSpatial) continue;
    for (TreeNode* at = loop; at && at->is_loop(); at = at->parent) {
      if (uses_var(axis.value, at->var())) return DrivenAxis{at, &axis};
    }
  }
  return std::nullopt;
}

std::vector<LoopRange> ranges_of(const Nodes& loops) {
  return map_each(loops, [](const TreeNode* loop) { return LoopRange{loop->var(), loop->range()}; });
}

bool reduces_downwards(const IterMap& map, const std::vector<IterVar>& axes, std::string* why) {
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].kind == IterKind::kSpatial || !counts_down(map, map.sums[a].digits)) continue;
    if (why) *why = message("axis '{}', which is not spatial, counts down", axes[a].var);
    return true;
  }
  return false;
}

bool has_affine_bindings(const TreeNode* block, const Nodes& loops, std::string* why) {
  auto map = find_injective_map(axis_values(block), ranges_of(loops), conjuncts(block->block->predicate),
                                block->tree->facts, why);
  return map && !reduces_downwards(*map, block->axes(), why);
}

bool has_affine_bindings(TreeNode* block, std::string* why) {
  if (!block->affine || (!*block->affine && why)) block->affine = has_affine_bindings(block, loops_above(block), why);
  return *block->affine;
}

// ---- Conditions

namespace {

Refusal has_other_writers(const TreeNode* block, const TreeNode* within = nullptr) {
  for (const BufferRegion& write : block->block->writes) {
    for (const TreeNode* other : writers(scope_of(block), write.buffer)) {
      if (other != block && (!within || is_ancestor(within, other)))
        return message("blocks '{}' and '{}' both write '{}'", block, other, write.buffer);
    }
  }
  return std::nullopt;
}

Refusal has_other_axes(const TreeNode* block) {
  for (const IterVar& axis : block->axes()) {
    if (axis.kind != IterKind::kSpatial && axis.kind != IterKind::kReduce)
      return message("axis '{}' of block '{}' is neither spatial nor reduce", axis.var, block);
  }
  return std::nullopt;
}

// Returns whether the boxes of any two iterations of the loops are known to have no element in common.
bool are_disjoint(const std::vector<Range>& box, const Nodes& loops) {
  std::vector<LoopRange> counters = ranges_of(loops);
  std::vector<Expr> elements;
  for (const Range& range : box) {
    if (!mentions_any(range.min, loops) && !mentions_any(range.extent, loops)) continue;
    if (mentions_any(range.extent, loops)) return false;
    elements.push_back(range.min);
    if (is_int(range.extent, 1)) continue;
    counters.push_back(
        {make_var("element", prim_type(dtype_of(range.min))), Range{int_imm(0, dtype_of(range.min)), range.extent}});
    elements.back() = elements.back() + counters.back().var;
  }
  return find_injective_map(elements, counters, {}, loops[0]->tree->facts).has_value();
}

// A store of one block and an access of another, or of the same one, to one buffer.
struct AccessPair {
  const TreeNode *block, *other;
  const BufferRegion *write, *access;

  // Returns whether different iterations of the loops, a chain around both, are known to use different elements.
  bool is_apart(const Nodes& chain) const {
    const Analyzer& facts = block->tree->facts;
    std::vector<Range> box = region_at(block, *write, chain.back());
    widen(box, region_at(other, *access, chain.back()), write->buffer, facts);
    return are_disjoint(box, chain);
  }
  // Returns the distances over one loop of the chain, from the store to the access.
  std::optional<Distances> distances_over(const TreeNode* loop, const Nodes& chain) const {
    auto access_of = [&](const TreeNode* at, const BufferRegion& region) {
      const VarMap axes = values_of_axes(at);
      return LoopAccess{map_each(region.ranges, [&](const Range& range) { return substitute(range, axes); }),
                        ranges_of(loops_from(chain.front(), at))};
    };
    return distances(access_of(block, *write), access_of(other, *access), loop->var(), block->tree->facts);
  }
  bool may_meet_over(TreeNode* loop) const {
    if (is_apart({loop})) return false;
    auto found = distances_over(loop, {loop});
    return found && !found->is_only_zero();
  }
  std::string text() const {
    if (block == other)
      return message("block '{}' may use an element of '{}' that it stores in another iteration", block, write->buffer);
    return message("block '{}' may use an element of '{}' that block '{}' stores in another iteration", other,
                   write->buffer, block);
  }
};

// Returns the pairs of the block's stores and of accesses in the loop that may meet in different iterations. What a
// block reads of another is computed in the same iteration unless both are marked as carried; memory that is used in
// the loop alone may be written by several.
std::vector<AccessPair> pairs_in(const TreeNode* loop, const TreeNode* block) {
  std::vector<AccessPair> result;
  for (const TreeNode* other : blocks_below(loop)) {
    const bool is_same = other == block;
    if (is_same && !block->meets_itself) continue;
    for (const BufferRegion& write : block->block->writes) {
      const BufferRegion *read = read_of(other, write.buffer), *again = write_of(other, write.buffer);
      if (read && (is_same || (block->carried && other->carried))) result.push_back({block, other, &write, read});
      if (again && (is_same || !is_private_to(loop, write.buffer))) result.push_back({block, other, &write, again});
    }
  }
  return result;
}

// Refuses where an iteration of the loop may read or store to an element to which the block stores in another one.
Refusal carries(TreeNode* loop, const TreeNode* block) {
  for (const AccessPair& pair : pairs_in(loop, block)) {
    if (pair.may_meet_over(loop)) return pair.text();
  }
  return std::nullopt;
}

// Refuses unless the axes' values are one to one with the iterations of the block's loops, or of those from `outermost`
// inwards. The loops outside of it may repeat elements, as those around a copy of a part do.
Refusal not_one_to_one(TreeNode* block, const TreeNode* outermost) {
  std::string why;
  if (has_affine_bindings(block) || has_affine_bindings(block, loops_from(outermost, block), &why)) return std::nullopt;
  return message("in block '{}' {}", block, why);
}

}  // namespace

Refusal not_spatial(const TreeNode* block) {
  for (const IterVar& axis : block->axes()) {
    if (axis.kind != IterKind::kSpatial) return message("axis '{}' of block '{}' is not spatial", axis.var, block);
  }
  for (const BufferRegion& write : block->block->writes) {
    if (read_of(block, write.buffer)) return message("block '{}' reads '{}', which it writes", block, write.buffer);
  }
  return std::nullopt;
}

Refusal not_complete(const TreeNode* block) {
  if (Refusal refusal = not_spatial(block)) return refusal;
  return has_other_writers(block);
}

namespace {

Refusal not_reduction_by_itself(const TreeNode* block) {
  if (!block->block->init) return message("block '{}' has no init", block);
  if (Refusal refusal = has_other_axes(block)) return refusal;
  for (const IterVar& axis : block->axes()) {
    if (axis.kind != IterKind::kReduce) continue;
    for (const BufferRegion& write : block->block->writes) {
      if (std::ranges::any_of(write.ranges, [&](const Range& range) { return uses_var(range.min, axis.var); }))
        return message("block '{}' writes '{}' at a place that depends on the reduce axis '{}'", block, write.buffer,
                       axis.var);
    }
  }
  return std::nullopt;
}

}  // namespace

Refusal not_reduction_within(const TreeNode* loop, const TreeNode* block) {
  if (Refusal refusal = not_reduction_by_itself(block)) return refusal;
  return has_other_writers(block, loop);
}

Refusal not_spatial_or_reduction(const TreeNode* block) {
  auto is_reduce = [](const IterVar& axis) { return axis.kind == IterKind::kReduce; };
  bool reduces = block->block->init || std::ranges::any_of(block->axes(), is_reduce);
  return reduces ? not_reduction_by_itself(block) : not_spatial(block);
}

Refusal not_complete_or_reduction(const TreeNode* block) {
  if (Refusal refusal = not_spatial_or_reduction(block)) return refusal;
  return has_other_writers(block);
}

Refusal not_parallel(TreeNode* loop, bool may_reduce) {
  if (is_int(loop->loop->extent, 1)) return std::nullopt;
  for (TreeNode* block : blocks_below(loop)) {
    auto is_driven = [&](const IterVar& axis) {
      return axis.kind != IterKind::kSpatial && uses_var(axis.value, loop->var());
    };
    bool reduces = false;
    for (const IterVar& axis : block->axes()) {
      if (!is_driven(axis)) continue;
      reduces = may_reduce && axis.kind == IterKind::kReduce;
      if (!reduces) return message("it drives axis '{}' of block '{}', which is not spatial", axis.var, block);
    }
    if (reduces) {
      if (Refusal refusal = not_reduction_by_itself(block)) return refusal;
      continue;
    }
    if (Refusal refusal = carries(loop, block)) return refusal;
    // Each iteration writes its own elements or its own memory: buffers that are used in the loop alone are allocated
    // inside of it when the program is lowered.
    bool is_private = std::ranges::all_of(block->block->writes,
                                          [&](const BufferRegion& write) { return is_private_to(loop, write.buffer); });
    if (is_private) continue;
    if (Refusal refusal = not_one_to_one(block, loop)) return refusal;
  }
  return has_other_statements(loop);
}

Refusal not_reorderable_from(const TreeNode* outermost, TreeNode* block) {
  if (Refusal refusal = has_other_axes(block)) return refusal;
  if (!outermost && block->carried) return message("block '{}' takes what an earlier iteration made", block);
  if (Refusal refusal = not_one_to_one(block, outermost)) return refusal;
  // In a new order a loop that drives both could reach later reduce iterations of an element before the init.
  for (const TreeNode* loop : block->block->init ? loops_above(block) : Nodes()) {
    Drives driven = drives(loop, block->axes());
    if (driven.spatial && driven.reduce)
      return message("loop '{}' drives spatial and reduce axes of block '{}'", loop, block);
  }
  return std::nullopt;
}

Refusal reverses_dependence(const TreeNode* block, const Nodes& before, const Nodes& after) {
  for (const AccessPair& pair : pairs_in(before.front(), block)) {
    if (pair.is_apart(before)) continue;
    Nodes moving;
    bool may_go_up = false, may_go_down = false, never_meet = false;
    for (TreeNode* loop : before) {
      std::optional<Distances> found = pair.distances_over(loop, before);
      never_meet = never_meet || !found;
      if (!found || found->is_only_zero()) continue;
      moving.push_back(loop);
      may_go_up = may_go_up || found->range.max > 0;
      may_go_down = may_go_down || found->range.min < 0;
    }
    Nodes moved = after;
    std::erase_if(moved, [&](const TreeNode* loop) { return !contains(moving, loop); });
    const bool keeps_order = never_meet || moved == moving || !(may_go_up && may_go_down);
    if (!keeps_order) return pair.text();
  }
  return std::nullopt;
}

Refusal not_replaceable(const TreeNode* loop) {
  const For& content = *loop->loop;
  if (!is_int(content.min, 0)) return message("loop '{}' does not start at 0", content.var);
  if (binds_thread(content.kind) || !content.annotations.empty())
    return message("loop '{}' is bound to threads or annotated", content.var);
  return std::nullopt;
}

Refusal has_other_statements(const TreeNode* scope) {
  auto found = [](auto& self, const TreeNode* node) -> bool {
    return std::ranges::any_of(node->children, [&](const TreeNode* child) {
      return child->kind == TreeKind::kLeaf || (child->is_loop() && self(self, child));
    });
  };
  if (!found(found, scope)) return std::nullopt;
  return scope->is_loop() ? message("loop '{}' holds statements outside of blocks", scope)
                          : message("block '{}' holds statements outside of its blocks", scope);
}

const BufferStore* single_store(const TreeNode* block) {
  bool is_plain = block->is_leaf_block() && block->block->match_buffers.empty();
  return is_plain ? relaxc::single_store(*block->block) : nullptr;
}

// ---- Regions

namespace {

// Keeps the regions that annotate_buffer_access has set, as the annotation lists them.
void keep_said(Block& block, const char* key, const std::vector<BufferRegion>& before, std::vector<BufferRegion>& now) {
  const AttrValue* note = block.annotations.find(key);
  if (!note || !note->as<AttrList>()) return;
  AttrList kept;
  for (const AttrValue& item : *note->as<AttrList>()) {
    const int64_t* number = item.as<int64_t>();
    if (!number || *number < 0 || *number >= static_cast<int64_t>(before.size())) continue;
    const BufferRegion& said = before[static_cast<size_t>(*number)];
    for (size_t i = 0; i < now.size(); ++i) {
      if (!same_node(now[i].buffer, said.buffer)) continue;
      now[i] = said;
      kept.emplace_back(i);
    }
  }
  block.annotations = kept.empty() ? block.annotations.without(key) : block.annotations.with(key, kept);
}

Accesses accesses_of_body(const Block& block) {
  Accesses found = find_accesses(block.body, block.init);
  // Accesses to windows are not found in the body: the declared regions of their sources stand for them.
  auto take_windows = [&](const std::vector<BufferRegion>& before, std::vector<BufferRegion>& now) {
    for (const MatchBuffer& window : block.match_buffers) {
      const BufferRegion* declared = find_region(before, window.source.buffer);
      std::erase_if(now, [&](const BufferRegion& region) {
        return same_node(region.buffer, window.buffer) || (declared && same_node(region.buffer, declared->buffer));
      });
      if (declared) now.push_back(*declared);
    }
  };
  take_windows(block.reads, found.reads);
  take_windows(block.writes, found.writes);
  return found;
}

Accesses accesses_of_blocks(const TreeNode* block) {
  Accesses found;
  const Nodes inside = blocks_inside(block);
  auto add = [&](std::vector<BufferRegion>& into, const Buffer& buffer, AccessKind kind) {
    if (!contains(block->block->alloc_buffers, buffer) && !find_region(into, buffer))
      into.push_back({buffer, *region_at(inside, buffer, kind, nullptr)});
  };
  for (const TreeNode* inner : inside) {
    for (const BufferRegion& read : inner->block->reads) add(found.reads, read.buffer, AccessKind::kRead);
    for (const BufferRegion& write : inner->block->writes) add(found.writes, write.buffer, AccessKind::kWrite);
  }
  // A buffer that the block reads only to update it, as a sum does, is not an input.
  if (block->block->init)
    std::erase_if(found.reads, [&](const BufferRegion& read) { return find_region(found.writes, read.buffer); });
  return found;
}

}  // namespace

void refresh_regions(TreeNode* block) {
  if (block == block->tree->root()) return;
  Block& content = *block->block;
  Accesses found = block->is_leaf_block() ? accesses_of_body(content) : accesses_of_blocks(block);
  if (block->is_leaf_block()) {
    keep_said(content, annotation<"explicit_read_region">(), content.reads, found.reads);
    keep_said(content, annotation<"explicit_write_region">(), content.writes, found.writes);
  }
  content.reads = std::move(found.reads);
  content.writes = std::move(found.writes);
}

void refresh_regions_around(TreeNode* block) {
  refresh_regions(block);
  refresh_regions_above(block);
}

void refresh_regions_above(TreeNode* node) {
  for (TreeNode* scope = scope_of(node); scope && scope != node->tree->root(); scope = scope_of(scope))
    refresh_regions(scope);
}

void replace_buffer(TreeNode* below, const Buffer& from, const Buffer& to) {
  auto in_stmt = [&](const Stmt& stmt) { return substitute(stmt, {{from.get(), to}}); };
  if (below->kind == TreeKind::kLeaf) below->leaf = in_stmt(*below->leaf);
  if (below->is_block() && (accesses(below, from) || below == below->tree->root())) {
    Block& block = *below->block;
    if (below->is_leaf_block()) block.body = in_stmt(block.body);
    if (block.init) block.init = in_stmt(*block.init);
    auto redirect = [&](BufferRegion& region) {
      if (same_node(region.buffer, from)) region.buffer = to;
    };
    std::ranges::for_each(block.reads, redirect);
    std::ranges::for_each(block.writes, redirect);
    for (MatchBuffer& window : block.match_buffers) redirect(window.source);
  }
  for (TreeNode* child : below->children) replace_buffer(child, from, to);
}

namespace {

class Body {
 public:
  explicit Body(const Block& block) : written_(map_each(block.writes, &BufferRegion::buffer)) {}

  bool any_order(const Stmt& s) {
    if (const Seq* list = s.as<Seq>()) {
      return std::ranges::all_of(list->stmts, [&](const Stmt& each) { return any_order(each); });
    }
    if (const For* loop = s.as<For>()) return !uses(loop->min) && !uses(loop->extent) && any_order(loop->body);
    if (const IfThenElse* branch = s.as<IfThenElse>())
      return !uses(branch->condition) && !branch->else_body && any_order(branch->then_body);
    const BufferStore* store = s.as<BufferStore>();
    if (!store || store->predicate || !stored_.insert(store->buffer.get()).second) return false;
    if (std::ranges::any_of(store->indices, [&](const Expr& e) { return uses(e); })) return false;
    op_.reset();
    return combines(store->value, *store);
  }

 private:
  bool uses(const Expr& e) const {
    return std::ranges::any_of(written_, [&](const Buffer& buffer) { return uses_var(e, buffer); });
  }
  // Returns whether the value is op(old value, something else) with one operator everywhere: (c + a) + b, but neither
  // max(c + a, b) nor c + a for some iterations and max(c, a) for others.
  bool combines(const Expr& value, const BufferStore& store) {
    if (is_element(value, store)) return true;
    if (const Cast* cast = value.as<Cast>()) return combines(cast->value, store) && keeps_order(*cast, dtype_of(value));
    if (auto either = branches_of(value))
      return !uses(either->condition) && combines(either->a, store) && combines(either->b, store);
    const Binary* node = value.as<Binary>();
    if (!node) return false;
    bool subtracts = node->op == BinaryOp::kSub;
    BinaryOp op = subtracts ? BinaryOp::kAdd : node->op;
    constexpr BinaryOp kInAnyOrder[] = {BinaryOp::kAdd, BinaryOp::kMul, BinaryOp::kMin,
                                        BinaryOp::kMax, BinaryOp::kAnd, BinaryOp::kOr};
    bool known = std::find(std::begin(kInAnyOrder), std::end(kInAnyOrder), op) != std::end(kInAnyOrder);
    if (!known || op_.value_or(op) != op) return false;
    op_ = op;
    return (combines(node->a, store) && !uses(node->b)) || (!subtracts && combines(node->b, store) && !uses(node->a));
  }
  // Returns whether casting back after each step keeps the result the same in every order. Rounding does (float
  // sums count as exact), and so does the truncation of sums and products of integers.
  bool keeps_order(const Cast& cast, DType to) const {
    DType from = dtype_of(cast.value);
    if (to.is_float()) return true;
    bool sums = !op_ || op_ == BinaryOp::kAdd || op_ == BinaryOp::kMul;
    if (to.is_bool() != from.is_bool()) return false;  // what is not 0 is true
    return !from.is_float() && (sums || to.bits >= from.bits);
  }

  std::vector<Buffer> written_;
  std::unordered_set<const NodeHeader*> stored_;
  std::optional<BinaryOp> op_;  // of the store looked at
};

}  // namespace

bool needs_order(const Block& block) {
  bool reduces =
      std::ranges::any_of(block.iter_vars, [](const IterVar& axis) { return axis.kind != IterKind::kSpatial; });
  if (!reduces || Body(block).any_order(block.body)) return false;
  std::optional<Combiner> combiner = find_combiner(block);
  return !combiner || !combiner->commutes || !combiner->regroups;
}

bool comes_in_order(const TreeNode* block) { return comes_in_order(block, axis_values(block), loops_above(block)); }

bool comes_in_order(const TreeNode* block, const std::vector<Expr>& axis_values, const Nodes& loops) {
  std::vector<Expr> values;
  for (size_t a = 0; a < axis_values.size(); ++a) {
    if (block->axes()[a].kind != IterKind::kSpatial) values.push_back(axis_values[a]);
  }
  auto map = find_iter_map(values, ranges_of(loops), block->tree->facts);
  if (!map) return false;
  std::vector<size_t> order;
  for (const IterSum& sum : map->sums) {
    if (counts_down(*map, sum.digits)) return false;
    for (const IterDigit& digit : sum.digits) {
      if (!is_int(digit.extent, 1)) order.push_back(digit.source);
    }
  }
  // Loops are the first sources; the order of the loops in a sum that is a source is not known.
  return std::ranges::all_of(order, [&](size_t source) { return source < loops.size(); }) &&
         std::ranges::is_sorted(order);
}

}  // namespace relaxc::scheduling
