#include "tir/schedule/carried.h"

#include <algorithm>

#include "ir/intrinsics.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/edit/blocks.h"

namespace relaxc {

using scheduling::TreeNode;

namespace {

bool holds_loop(const std::vector<LoopRange>& loops, const VarRef& loop) {
  return std::ranges::any_of(loops, [&](const LoopRange& each) { return same_node(each.var, loop); });
}

bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return structural_equal(x, y); });
}

class AccessCollector {
 public:
  LoopedAccesses run(const Stmt& stmt) {
    look(stmt);
    return std::move(result_);
  }
  LoopedAccesses run(const TreeNode* root) {
    look(root);
    return std::move(result_);
  }

 private:
  void look(const TreeNode* node) {
    if (node->leaf) return look(*node->leaf);
    if (node->is_loop()) {
      look_at(node->loop->min), look_at(node->loop->extent);
      loops_.push_back({node->var(), node->range()});
    }
    if (node->is_block()) {
      for (const Buffer& buffer : node->block->alloc_buffers) result_.allocated.insert_or_assign(buffer.get(), loops_);
      for (const IterVar& axis : node->axes()) axes_.insert_or_assign(axis.var.get(), placed(axis.value));
    }
    if (node->is_leaf_block()) {
      block_ = node;
      if (node->block->match_buffers.empty()) look(node->block->body);
      if (!node->block->match_buffers.empty()) look_at_regions(*node->block);
      block_ = nullptr;
    }
    for (const TreeNode* child : node->children) look(child);
    if (node->is_loop()) loops_.pop_back();
  }

  // The declared regions stand for what windows see.
  void look_at_regions(const Block& block) {
    ++statement_;
    auto add = [&](const BufferRegion& region, bool is_store) {
      std::vector<Range> box =
          map_each(region.ranges, [&](const Range& range) { return scheduling::substitute(range, axes_); });
      std::vector<Expr> first = map_each(region.ranges, [](const Range& range) { return range.min; });
      result_.all.push_back({region.buffer, first, {std::move(box), loops_}, is_store, statement_, {}, block_});
    };
    for (const BufferRegion& read : block.reads) add(read, false);
    for (const BufferRegion& write : block.writes) add(write, true);
  }

  void look(const Stmt& stmt) {
    if (const Seq* list = stmt.as<Seq>()) {
      for (const Stmt& each : list->stmts) look(each);
    } else if (auto loop = try_cast<For>(stmt)) {
      look_at((*loop)->min), look_at((*loop)->extent);
      result_.loops.push_back(*loop);
      loops_.push_back({(*loop)->var, {placed((*loop)->min), placed((*loop)->extent)}});
      look((*loop)->body);
      loops_.pop_back();
    } else if (const IfThenElse* branch = stmt.as<IfThenElse>()) {
      look_at(branch->condition);
      look(branch->then_body);
      if (branch->else_body) look(*branch->else_body);
    } else if (const Bind* bind = stmt.as<Bind>()) {
      look_at(bind->value);
      bindings_.insert_or_assign(bind->var.get(), substitute(bind->value, bindings_));
    } else if (const AllocBuffer* made = stmt.as<AllocBuffer>()) {
      result_.allocated.insert_or_assign(made->buffer.get(), loops_);
    } else if (const BufferStore* store = stmt.as<BufferStore>()) {
      look_at(*store);
    } else if (const Evaluate* call = stmt.as<Evaluate>()) {
      look_at(call->value);
    } else if (const AttrStmt* fact = stmt.as<AttrStmt>()) {
      look(fact->body);
    } else if (!stmt.is<Assert>()) {
      add_opaque("it holds a statement of another kind than loops, branches and stores");
    }
  }

  void look_at(const BufferStore& store) {
    ++statement_;
    look_at(store.value);
    for (const Expr& index : store.indices) look_at(index);
    std::vector<Expr> indices = map_each(store.indices, [&](const Expr& e) { return substitute(e, bindings_); });
    LoopAccess at = access_at(store.buffer, indices);
    result_.all.push_back(
        {store.buffer, std::move(indices), std::move(at), true, statement_, placed(store.value), block_});
  }

  void look_at(const Expr& e) {
    walk(
        substitute(e, bindings_),
        [&](const BufferLoad& load) {
          result_.all.push_back(
              {load.buffer, load.indices, access_at(load.buffer, load.indices), false, statement_, {}, block_});
        },
        [&](const Call& call) {
          const OpRef* op = call.callee.as<OpRef>();
          const Builtin* builtin = op ? find_builtin(op->name) : nullptr;
          if (!op || (builtin && !builtin->pure))
            add_opaque("it calls a function that may have effects, or leaves the loop");
        });
  }

  void add_opaque(const char* why) {
    if (!loops_.empty()) result_.opaque.emplace_back(loops_, why);
  }
  Expr placed(const Expr& e) const { return substitute(substitute(e, bindings_), axes_); }
  // Returns the elements of an index. A vector that is not a row of neighbours stays one, which nothing is known of.
  Range elements_at(const Expr& index) const {
    const Expr place = placed(index), one = int_imm(1);
    const Ramp* lanes = place.as<Ramp>();
    const auto stride = lanes ? as_int(lanes->stride) : std::nullopt;
    if (!stride || *stride == 0 || std::abs(*stride) > (1 << 20) || lanes->lanes < 1) return {place, one};
    const int64_t last = *stride * (lanes->lanes - 1);
    const Expr first = last < 0 ? lanes->base + int_imm(last, dtype_of(lanes->base)) : lanes->base;
    return {first, int_imm(std::abs(last) + 1, dtype_of(first))};
  }
  LoopAccess access_at(const Buffer& buffer, const std::vector<Expr>& indices) const {
    LoopAccess result{map_each(indices, [&](const Expr& index) { return elements_at(index); }), loops_};
    // A vector may cover several rows, which its indices do not show.
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    const bool has_rows = !indices.empty() && indices.size() == shape.size() && dtype_of(indices.back()).lanes != 1 &&
                          !result.box.empty() && as_int(shape.back()) &&
                          as_int(result.box.back().extent).value_or(0) > *as_int(shape.back());
    if (has_rows)
      result.box = map_each(indices, [&](const Expr&) { return Range{placed(indices.back()), int_imm(1)}; });
    return result;
  }

  LoopedAccesses result_;
  std::vector<LoopRange> loops_;
  VarMap axes_, bindings_;  // values of axes in terms of loops, and of bindings in terms of axes and loops
  size_t statement_ = 0;
  const TreeNode* block_ = nullptr;
};

// Says when a store and an access touch one element: never, in iterations that are `distance` apart, in all iterations,
// or in iterations of which nothing is known.
struct Meeting {
  bool never = false;
  std::optional<int64_t> distance = {};
  bool always = false;
};

class OrderFinder {
 public:
  OrderFinder(const LoopedAccesses& accesses, const VarRef& loop, const Analyzer& facts,
              const scheduling::Nodes& reductions)
      : accesses_(accesses), loop_(loop), facts_(facts), reductions_(reductions) {}

  IterationOrder run() {
    auto is_inside = [&](const LoopedAccess& access) { return access.is_in(loop_); };
    const auto count = std::ranges::count_if(accesses_.all, is_inside);
    constexpr ptrdiff_t kMostAccesses = 256;  // of which each is compared with each
    if (count > kMostAccesses) {
      result_.unknown = fmt::format("not compared: there are {} accesses", count);
      return result_;
    }
    result_.unknown = effect_in(accesses_, loop_);
    for (const LoopedAccess& store : accesses_.all) {
      if (store.is_store && store.is_in(loop_) && !is_own(store)) add_store(store);
    }
    return result_;
  }

 private:
  // Compares a store with all accesses of its buffer.
  void add_store(const LoopedAccess& store) {
    const std::optional<std::string> kind = kind_of_update(store);
    for (const LoopedAccess& other : accesses_.all) {
      if (!other.is_in(loop_) || !same_node(other.buffer, store.buffer) || is_combined(store, other)) continue;
      const Meeting meeting = meeting_of(store, other);
      if (meeting.never || meeting.distance == 0) continue;
      if (kind && other.statement == store.statement && same_box(store, other)) {
        if (!std::ranges::count(result_.updates, *kind)) result_.updates.push_back(*kind);
        continue;
      }
      // Two stores are one finding, told of the later one.
      if (other.is_store && other.statement < store.statement && !meeting.always) continue;
      const Meets how = how_of(other, meeting);
      auto is_known = [&](const CarriedAccess& known) {
        const bool is_weak = how == Meets::kShared || (how == Meets::kStored && meeting.always);
        return same_node(known.buffer, other.buffer) && same_indices(known.indices, other.indices) &&
               (known.distance == meeting.distance || is_weak) &&
               (known.how == how || how == Meets::kMayStore || is_weak);
      };
      if (std::ranges::none_of(result_.carried, is_known))
        result_.carried.push_back({other.buffer, other.indices, meeting.distance, how});
    }
  }

  Meets how_of(const LoopedAccess& access, const Meeting& meeting) const {
    if (meeting.distance) return access.is_store ? Meets::kStored : Meets::kCarried;
    if (!meeting.always) return access.is_store ? Meets::kMayStore : Meets::kMayLoad;
    if (!access.is_store) return is_stored_before(access) ? Meets::kShared : Meets::kCarried;
    const bool is_scratch = std::ranges::all_of(accesses_.all, [&](const LoopedAccess& each) {
      bool is_load = !each.is_store && each.is_in(loop_) && same_node(each.buffer, access.buffer);
      return !is_load || (same_box(each, access) && is_stored_before(each));
    });
    return is_scratch ? Meets::kShared : Meets::kStored;
  }
  // A load before the first store of an iteration reads what an earlier iteration has stored.
  bool is_stored_before(const LoopedAccess& load) const {
    return std::ranges::any_of(accesses_.all, [&](const LoopedAccess& each) {
      return each.is_store && each.is_in(loop_) && same_node(each.buffer, load.buffer) &&
             each.statement < load.statement;
    });
  }

  // Returns whether each iteration has memory of its own for the buffer.
  bool is_own(const LoopedAccess& access) const {
    const std::vector<LoopRange>* around = find_value(accesses_.allocated, access.buffer.get());
    return around && holds_loop(*around, loop_);
  }

  // Returns whether a reduction combines the element, which is said elsewhere.
  bool is_combined(const LoopedAccess& store, const LoopedAccess& other) const {
    return store.block && store.block == other.block && contains(reductions_, store.block) && same_box(store, other);
  }

  static bool same_box(const LoopedAccess& a, const LoopedAccess& b) {
    return std::ranges::equal(a.at.box, b.at.box, [](const Range& x, const Range& y) {
      return structural_equal(x.min, y.min) && structural_equal(x.extent, y.extent);
    });
  }

  // Returns "sum into s" for `s[i] = s[i] + v` and the like, where v does not read s.
  static std::optional<std::string> kind_of_update(const LoopedAccess& store) {
    const Binary* op = store.value ? store.value->as<Binary>() : nullptr;
    if (!op) return std::nullopt;
    auto is_element = [&](const Expr& e) {
      const BufferLoad* load = e.as<BufferLoad>();
      return load && same_node(load->buffer, store.buffer) && load->indices.size() == store.at.box.size() &&
             std::ranges::equal(load->indices, store.at.box, [](const Expr& index, const Range& range) {
               return structural_equal(index, range.min);
             });
    };
    auto reads = [&](const Expr& e) {
      return std::ranges::any_of(loads_of(e), [&](const auto& load) { return same_node(load->buffer, store.buffer); });
    };
    bool is_first = is_element(op->a) && !reads(op->b), is_second = is_element(op->b) && !reads(op->a);
    const char* kind = op->op == BinaryOp::kAdd || (op->op == BinaryOp::kSub && is_first) ? "sum"
                       : op->op == BinaryOp::kMul                                         ? "product"
                       : op->op == BinaryOp::kMax                                         ? "max"
                       : op->op == BinaryOp::kMin                                         ? "min"
                                                                                          : nullptr;
    if (!kind || !(is_first || is_second)) return std::nullopt;
    return fmt::format("{} into {}", kind, store.buffer->name);
  }

  // Returns whether both run through the same elements in each iteration.
  bool use_the_same(const LoopedAccess& store, const LoopedAccess& access) const {
    auto is_fixed = [&](const Expr& index) { return !uses_var(index, loop_) && !holds<BufferLoad>(index); };
    auto is_fixed_range = [&](const Range& range) { return is_fixed(range.min) && is_fixed(range.extent); };
    auto is_fixed_loop = [&](const LoopRange& each) {
      return same_node(each.var, loop_) || is_fixed_range(each.range);
    };
    return same_box(store, access) && std::ranges::all_of(store.at.box, is_fixed_range) &&
           std::ranges::all_of(store.at.loops, is_fixed_loop) && std::ranges::all_of(access.at.loops, is_fixed_loop);
  }

  Meeting meeting_of(const LoopedAccess& store, const LoopedAccess& access) const {
    std::optional<Distances> found = distances(from_loop(store), from_loop(access), loop_, facts_);
    if (!found) return {.never = true};
    if (found->is_only_zero()) return {.distance = 0};
    Meeting result{.always = use_the_same(store, access)};
    if (found->is_certain) result.distance = found->range.min;
    return result;
  }
  // Loops around the one that is looked at stand still.
  LoopAccess from_loop(const LoopedAccess& access) const {
    LoopAccess result = access.at;
    auto first = std::ranges::find_if(result.loops, [&](const LoopRange& each) { return same_node(each.var, loop_); });
    result.loops.erase(result.loops.begin(), first);
    return result;
  }

  const LoopedAccesses& accesses_;
  const VarRef& loop_;
  const Analyzer& facts_;
  const scheduling::Nodes& reductions_;
  IterationOrder result_;
};

}  // namespace

bool LoopedAccess::is_in(const VarRef& loop) const { return holds_loop(at.loops, loop); }

LoopedAccesses accesses_of(const Stmt& stmt) { return AccessCollector().run(stmt); }
LoopedAccesses accesses_of(const TreeNode* root) { return AccessCollector().run(root); }

std::vector<AccessStride> strides_in(const LoopedAccesses& accesses, const VarRef& loop, const Analyzer& facts) {
  std::vector<AccessStride> result;
  for (const LoopedAccess& access : accesses.all) {
    if (!access.is_in(loop)) continue;
    const std::vector<Expr> indices = map_each(access.at.box, [](const Range& range) { return range.min; });
    std::optional<Expr> stride = access_stride(access.buffer, indices, loop, facts);
    bool is_known = std::ranges::any_of(result, [&](const AccessStride& other) {
      return same_node(other.buffer, access.buffer) && other.stride.has_value() == stride.has_value() &&
             (!stride || structural_equal(*other.stride, *stride));
    });
    if (!is_known) result.push_back({access.buffer, stride});
  }
  return result;
}

std::optional<std::string> effect_in(const LoopedAccesses& accesses, const VarRef& loop) {
  for (const auto& [loops, why] : accesses.opaque) {
    if (loops.empty() || holds_loop(loops, loop)) return why;
  }
  return std::nullopt;
}

IterationOrder find_order(const LoopedAccesses& accesses, const VarRef& loop, const Analyzer& facts,
                          const scheduling::Nodes& reductions) {
  return OrderFinder(accesses, loop, facts, reductions).run();
}

}  // namespace relaxc
