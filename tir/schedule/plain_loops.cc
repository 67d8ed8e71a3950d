// Loops around statements without blocks. Their iterations are compared by the elements that they load and store, as
// dependence tests of vectorizing compilers do (Allen and Kennedy, "Optimizing Compilers for Modern Architectures",
// chapter 3): dimension by dimension, where a step of the loop moves both accesses by the same distance.
#include <algorithm>

#include "ir/intrinsics.h"
#include "support/lists.h"
#include "tir/analysis/conditions.h"
#include "tir/analysis/nests.h"
#include "tir/schedule/freedom.h"

namespace relaxc {

namespace {

// A load or a store, with the loops around it. Bindings are written out in its indices.
struct PlainAccess {
  Buffer buffer;
  std::vector<Expr> indices;
  std::vector<Ref<For>> loops;
  bool is_store = false;
  size_t statement = 0;            // the number of the store that it belongs to
  std::optional<Expr> value = {};  // of a store

  bool is_in(const Ref<For>& loop) const { return contains(loops, loop); }
};

// What the loops of a statement do.
struct PlainAccesses {
  std::vector<Ref<For>> loops;
  std::vector<PlainAccess> all;
  std::unordered_map<const NodeHeader*, std::vector<Ref<For>>> allocated;  // by buffer, the loops around it
  std::vector<std::pair<std::vector<Ref<For>>, const char*>> opaque;       // why loops around it keep their order
};

class PlainCollector {
 public:
  PlainAccesses run(const Stmt& stmt) {
    look(stmt);
    return std::move(result_);
  }

 private:
  void look(const Stmt& stmt) {
    if (const Seq* list = stmt.as<Seq>()) {
      for (const Stmt& each : list->stmts) look(each);
    } else if (auto loop = try_cast<For>(stmt)) {
      look_at((*loop)->min), look_at((*loop)->extent);
      result_.loops.push_back(*loop);
      loops_.push_back(*loop);
      look((*loop)->body);
      loops_.pop_back();
    } else if (const IfThenElse* branch = stmt.as<IfThenElse>()) {
      look_at(branch->condition);
      look(branch->then_body);
      if (branch->else_body) look(*branch->else_body);
    } else if (const Bind* bind = stmt.as<Bind>()) {
      Expr value = substitute(bind->value, values_);
      look_at(value);
      values_.insert_or_assign(bind->var.get(), value);
    } else if (const AllocBuffer* made = stmt.as<AllocBuffer>()) {
      result_.allocated.insert_or_assign(made->buffer.get(), loops_);
    } else if (const BufferStore* store = stmt.as<BufferStore>()) {
      look_at(*store);
    } else if (const Evaluate* call = stmt.as<Evaluate>()) {
      look_at(call->value);
    } else if (const AttrStmt* fact = stmt.as<AttrStmt>()) {
      look(fact->body);
    } else if (!stmt.is<Assert>()) {
      result_.opaque.emplace_back(loops_, "it holds a statement of another kind than loops, branches and stores");
    }
  }

  void look_at(const BufferStore& store) {
    ++statement_;
    Expr value = substitute(store.value, values_);
    look_at(value);
    std::vector<Expr> indices = map_each(store.indices, [&](const Expr& e) { return substitute(e, values_); });
    for (const Expr& index : indices) look_at(index);
    result_.all.push_back({store.buffer, std::move(indices), loops_, true, statement_, value});
  }

  void look_at(const Expr& e) {
    Expr value = substitute(e, values_);
    walk(
        value,
        [&](const BufferLoad& load) {
          result_.all.push_back({load.buffer, load.indices, loops_, false, statement_, {}});
        },
        [&](const Call& call) {
          const OpRef* op = call.callee.as<OpRef>();
          const Builtin* builtin = op ? find_builtin(op->name) : nullptr;
          if (!op || (builtin && !builtin->pure))
            result_.opaque.emplace_back(loops_, "it calls a function that may have effects, or leaves the loop");
        });
  }

  PlainAccesses result_;
  std::vector<Ref<For>> loops_;
  VarMap values_;
  size_t statement_ = 0;
};

// Says when a store and an access touch one element: never, in iterations that are `distance` apart, in all iterations,
// or in iterations of which nothing is known.
struct Meeting {
  bool never = false;
  std::optional<int64_t> distance = {};
  bool always = false;
};

class PlainAnalysis {
 public:
  PlainAnalysis(PlainAccesses accesses, const Analyzer& facts) : accesses_(std::move(accesses)), facts_(facts) {
    for (const Ref<For>& loop : accesses_.loops) facts_.bind(loop->var, loop->min, loop->extent);
  }

  std::vector<PlainLoopFreedom> run() {
    std::vector<PlainLoopFreedom> result;
    for (const Ref<For>& loop : accesses_.loops) result.push_back(freedom_of(loop));
    exchange(result);
    return result;
  }

 private:
  PlainLoopFreedom freedom_of(const Ref<For>& loop) const {
    PlainLoopFreedom result{.loop = loop};
    constexpr size_t kMostAccesses = 256;  // of which each is compared with each
    if (accesses_.all.size() > kMostAccesses) {
      result.dependence = result.effect = fmt::format("not compared: there are {} accesses", accesses_.all.size());
      return result;
    }
    for (const auto& [loops, why] : accesses_.opaque) {
      if (contains(loops, loop)) result.dependence = result.effect = why;
    }
    for (const PlainAccess& access : accesses_.all) {
      if (access.is_in(loop)) add_stride(access, loop, result.strides);
    }
    for (const PlainAccess& store : accesses_.all) {
      if (!store.is_store || !store.is_in(loop) || is_own(store, loop)) continue;
      add_store(store, loop, result);
    }
    // An element that is combined, and otherwise used, depends on the order all the same.
    if (!result.carried.empty() && !result.dependence) result.dependence = "its iterations depend on each other";
    if (!result.reductions.empty() && !result.dependence) result.dependence = "its iterations combine into one element";
    return result;
  }

  // Compares a store with all accesses of its buffer.
  void add_store(const PlainAccess& store, const Ref<For>& loop, PlainLoopFreedom& result) const {
    std::optional<std::string> kind = kind_of_update(store);
    for (const PlainAccess& other : accesses_.all) {
      if (!other.is_in(loop) || !same_node(other.buffer, store.buffer)) continue;
      Meeting meeting = meeting_of(store, other, loop);
      if (meeting.never || meeting.distance == 0) continue;
      if (kind && other.statement == store.statement && same_indices(store.indices, other.indices)) {
        if (!std::ranges::count(result.reductions, *kind)) result.reductions.push_back(*kind);
        continue;
      }
      // Two stores are one finding, told of the later one.
      if (other.is_store && other.statement < store.statement && !meeting.always) continue;
      const Meets how = how_of(other, meeting, loop);
      auto is_known = [&](const CarriedAccess& known) {
        return same_node(known.buffer, other.buffer) && same_indices(known.indices, other.indices) &&
               (known.distance == meeting.distance || how == Meets::kShared) &&
               (known.how == how || how == Meets::kMayStore || how == Meets::kShared);
      };
      if (std::ranges::none_of(result.carried, is_known))
        result.carried.push_back({other.buffer, other.indices, meeting.distance, how});
    }
  }

  Meets how_of(const PlainAccess& access, const Meeting& meeting, const Ref<For>& loop) const {
    if (meeting.distance) return access.is_store ? Meets::kStored : Meets::kCarried;
    if (!meeting.always) return access.is_store ? Meets::kMayStore : Meets::kMayLoad;
    // A load before the first store of an iteration reads what an earlier iteration has stored.
    auto is_before = [&](const PlainAccess& each) {
      return each.is_store && each.is_in(loop) && same_node(each.buffer, access.buffer) &&
             each.statement < access.statement;
    };
    return access.is_store || std::ranges::any_of(accesses_.all, is_before) ? Meets::kShared : Meets::kCarried;
  }

  void add_stride(const PlainAccess& access, const Ref<For>& loop, std::vector<AccessStride>& strides) const {
    std::optional<Expr> stride = access_stride(access.buffer, access.indices, loop->var, facts_);
    bool is_known = std::ranges::any_of(strides, [&](const AccessStride& other) {
      return same_node(other.buffer, access.buffer) && other.stride.has_value() == stride.has_value() &&
             (!stride || structural_equal(*other.stride, *stride));
    });
    if (!is_known) strides.push_back({access.buffer, stride});
  }

  // Returns whether each iteration has memory of its own for the buffer.
  bool is_own(const PlainAccess& access, const Ref<For>& loop) const {
    const std::vector<Ref<For>>* around = find_value(accesses_.allocated, access.buffer.get());
    return around && contains(*around, loop);
  }

  static bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return structural_equal(x, y); });
  }

  // Returns "sum into s" for `s[i] = s[i] + v` and the like, where v does not read s.
  static std::optional<std::string> kind_of_update(const PlainAccess& store) {
    const Binary* op = store.value->as<Binary>();
    if (!op) return std::nullopt;
    auto is_element = [&](const Expr& e) {
      const BufferLoad* load = e.as<BufferLoad>();
      return load && same_node(load->buffer, store.buffer) && same_indices(load->indices, store.indices);
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

  // Returns the access with other variables for the loops inside of `loop`: those of another iteration. With
  // `any_iteration` the loop has another variable, too.
  std::vector<Expr> in_other_iteration(const PlainAccess& access, const Ref<For>& loop, Analyzer& facts,
                                       bool any_iteration) const {
    VarMap others;
    bool is_inside = false;
    for (const Ref<For>& each : access.loops) {
      if (is_inside || (any_iteration && same_node(each, loop))) {
        VarRef other = make_var(each->var->name + "_", each->var.type());
        facts.bind(other, substitute(each->min, others), substitute(each->extent, others));
        others.emplace(each->var.get(), other);
      }
      is_inside = is_inside || same_node(each, loop);
    }
    return map_each(access.indices, [&](const Expr& e) { return substitute(e, others); });
  }

  // Returns whether the elements are others in any two iterations, as the halves of a buffer are.
  bool are_apart(const PlainAccess& store, const PlainAccess& access, const Ref<For>& loop) const {
    Analyzer facts = facts_;
    const std::vector<Expr> other = in_other_iteration(access, loop, facts, true);
    for (size_t d = 0; d < other.size(); ++d) {
      const Expr& to = store.indices[d];
      if (!dtype_of(to).is_integral() || !dtype_of(other[d]).is_integral()) return false;
      if (holds<BufferLoad>(to) || holds<BufferLoad>(other[d])) continue;
      if (facts.can_prove(not_equal(to, cast_to(other[d], dtype_of(to))))) return true;
    }
    return false;
  }

  // Returns whether both run through the same elements in each iteration.
  static bool use_the_same(const PlainAccess& store, const PlainAccess& access, const Ref<For>& loop) {
    auto is_fixed = [&](const Expr& index) { return !uses_var(index, loop->var) && !holds<BufferLoad>(index); };
    auto is_fixed_loop = [&](const Ref<For>& each) { return is_fixed(each->min) && is_fixed(each->extent); };
    return same_indices(store.indices, access.indices) && std::ranges::all_of(store.indices, is_fixed) &&
           std::ranges::all_of(store.loops, is_fixed_loop) && std::ranges::all_of(access.loops, is_fixed_loop);
  }

  Meeting meeting_of(const PlainAccess& store, const PlainAccess& access, const Ref<For>& loop) const {
    if (access.indices.size() != store.indices.size()) return {};
    if (are_apart(store, access, loop)) return {.never = true};
    Meeting result = step_by_step(store, access, loop);
    result.always = !result.never && use_the_same(store, access, loop);
    return result;
  }

  // Compares the accesses where a step of the loop moves both by the same distance.
  Meeting step_by_step(const PlainAccess& store, const PlainAccess& access, const Ref<For>& loop) const {
    Analyzer facts = facts_;
    const std::vector<Expr> other = in_other_iteration(access, loop, facts, false);
    Meeting result;
    bool is_certain = true;  // the distance holds in every dim
    for (size_t d = 0; d < other.size(); ++d) {
      const Expr& to = store.indices[d];
      if (!dtype_of(to).is_integral() || !dtype_of(other[d]).is_integral()) return {};
      const Expr from = cast_to(other[d], dtype_of(to)), apart = facts.simplify(to - from);
      const Expr step = facts.simplify(stepped(to, loop->var) - to);
      const Expr step_of_other = facts.simplify(stepped(from, loop->var) - from);
      const bool is_same = structural_equal(step, step_of_other) && !uses_var(step, loop->var);
      if (!is_same || holds<BufferLoad>(to) || holds<BufferLoad>(from)) {
        is_certain = false;
        continue;
      }
      const Interval bounds = facts.bounds(apart);
      if (is_int(step, 0)) {
        if (bounds.min > 0 || bounds.max < 0) return {.never = true};
        is_certain = is_certain && is_int(apart, 0);
        continue;
      }
      std::optional<int64_t> distance = distance_of(apart, step, facts);
      if (distance && result.distance.value_or(*distance) != *distance) return {.never = true};
      const auto number = as_int(apart), by = as_int(step);
      if (number && by && *number % *by != 0) return {.never = true};
      if (distance) result.distance = distance;
      is_certain = is_certain && distance.has_value();
    }
    auto extent = as_int(loop->extent);
    if (result.distance && extent && std::abs(*result.distance) >= *extent) return {.never = true};
    // Iterations that are no steps apart in one dim are the same, whatever the others are.
    if (!is_certain && result.distance != 0) result.distance.reset();
    return result;
  }

  // Returns by how many steps the one index is from the other, where that is the same for all inner iterations.
  static std::optional<int64_t> distance_of(const Expr& apart, const Expr& step, const Analyzer& facts) {
    auto number = as_int(apart), by = as_int(step);
    if (number && by) return *number % *by == 0 ? std::optional(*number / *by) : std::nullopt;
    bool is_negative = facts.can_prove(step < zero_of(step));
    if (number == 0) return is_negative || is_positive(step, facts) ? std::optional<int64_t>(0) : std::nullopt;
    const Expr size = is_negative ? facts.simplify(zero_of(step) - step) : step;
    bool is_less = facts.can_prove(apart < size) && facts.can_prove(zero_of(step) - size < apart);
    return is_less ? std::optional<int64_t>(0) : std::nullopt;
  }
  static Expr zero_of(const Expr& e) { return int_imm(0, dtype_of(e)); }

  // Two loops may be exchanged where one is all of the other's body and iterations of both may run in any order.
  static void exchange(std::vector<PlainLoopFreedom>& all) {
    auto is_free = [](const PlainLoopFreedom& freedom) {
      return freedom.carried.empty() && (!freedom.dependence || !freedom.reductions.empty());
    };
    for (size_t i = 0; i < all.size(); ++i) {
      Stmt body = all[i].loop->body;
      for (size_t j = i + 1; j < all.size() && is_free(all[i]); ++j) {
        const Ref<For>& inner = all[j].loop;
        auto next = try_cast<For>(body);
        if (!next || !same_node(*next, inner) || !is_free(all[j])) break;
        bool depends = uses_var(inner->min, all[i].loop->var) || uses_var(inner->extent, all[i].loop->var);
        if (depends) break;
        all[i].exchanged.push_back(inner);
        all[j].exchanged.push_back(all[i].loop);
        body = inner->body;
      }
    }
  }

  PlainAccesses accesses_;
  Analyzer facts_;
};

}  // namespace

std::vector<PlainLoopFreedom> find_plain_freedoms(const Stmt& stmt, const Analyzer& facts) {
  return PlainAnalysis(PlainCollector().run(stmt), facts).run();
}

}  // namespace relaxc
