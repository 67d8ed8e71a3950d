// A tile at the border of its results is computed whole, where only stores into other memory need to know the border:
//
//   for k: for i in unroll(6): for j in vectorized(8): if i < m and j < n: sums[i, j] += a[i, k] * b[k, j]
//
//   for k: ...: if 0 < m and 0 < n: sums[i, j] += a[min(i, m - 1), k] * b.vload([k, j], j < n)
//
// The conditions left out elements of `sums`, the tile's own memory, that nothing else reads: all accesses to it have
// the same conditions on the same elements. So the tile takes as long as one inside of the border, and its sums stay in
// registers without masks.
#include <algorithm>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/undefined.h"
#include "support/temporarily.h"
#include "tir/analysis/bounds.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

// A condition on a buffer's accesses in the terms of the buffer: the index in a dim is at most a number that is the
// same in all of the tile.
struct Limit {
  size_t dim;
  Expr last;
  bool operator==(const Limit& other) const { return dim == other.dim && structural_equal(last, other.last); }
};

class TileFiller {
 public:
  TileFiller(const Stmt& tile, const Analyzer& facts) : facts_(facts) {
    walk(tile, [&](const AllocBuffer& alloc) {
      if (!alloc.contents) own_.emplace(alloc.buffer.get(), std::nullopt);
    });
  }

  Stmt run(const Stmt& tile) {
    visit(tile);
    fills_ = true;
    return is_plain_ ? visit(tile) : tile;
  }

 private:
  Stmt visit(const Stmt& s) {
    if (const For* loop = s.as<For>()) {
      Temporarily facts(facts_, facts_);
      Temporarily running(running_, running_);
      Temporarily lanes(lanes_, lanes_);
      facts_.bind(loop->var, loop->min, loop->extent);
      running_.emplace(loop->var.get(), Range{loop->min, loop->extent});
      if (loop->kind == ForKind::kVectorized) lanes_.insert(loop->var.get());
      is_plain_ = is_plain_ && !holds<BufferLoad>(loop->min) && !holds<BufferLoad>(loop->extent);
      return map_stmts(s, [&](const Stmt& inner) { return visit(inner); });
    }
    if (const IfThenElse* branch = s.as<IfThenElse>()) {
      is_plain_ = is_plain_ && !holds<BufferLoad>(branch->condition);
      Temporarily outer(conditions_, conditions_);
      const BufferStore* store = branch->then_body.as<BufferStore>();
      if (fills_ && store && !branch->else_body) return filled(s, branch->condition, *store);
      if (branch->else_body) return map_stmts(s, [&](const Stmt& inner) { return visit(inner); });
      std::ranges::copy(conjuncts(branch->condition), std::back_inserter(conditions_));
      return map_stmts(s, [&](const Stmt& inner) { return visit(inner); });
    }
    if (const BufferStore* store = s.as<BufferStore>()) {
      is_plain_ = is_plain_ && !holds_effects(store->value);
      if (!fills_) note(store->buffer, store->indices, store->predicate.has_value());
      if (!fills_)
        walk(s, [&](const BufferLoad& load) { note(load.buffer, load.indices, load.predicate.has_value()); });
      return s;
    }
    if (s.is<Seq>()) return map_stmts(s, [&](const Stmt& inner) { return visit(inner); });
    const AllocBuffer* alloc = s.as<AllocBuffer>();
    is_plain_ = is_plain_ && alloc && !buffer_type(alloc->buffer).data;  // a view would be another name
    return s;
  }

  std::optional<Limit> limit(const std::vector<Expr>& indices, const Expr& condition) const {
    const std::optional<Expr> left = slack(condition);
    if (!left || !uses_var(*left, running_) || holds<BufferLoad, Call>(*left)) return std::nullopt;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr last = facts_.simplify(cast_to(indices[d], kInt64) + cast_to(*left, kInt64));
      if (!uses_var(last, running_)) return Limit{d, last};
    }
    return std::nullopt;
  }

  // Keeps the limits that all accesses to a buffer of the tile's own have.
  void note(const Buffer& buffer, const std::vector<Expr>& indices, bool has_mask) {
    auto own = own_.find(buffer.get());
    if (own == own_.end()) return;
    std::vector<Limit> limits;
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    bool is_inside = !has_mask;
    for (size_t d = 0; is_inside && d < shape.size(); ++d) {
      is_inside = dtype_of(indices[d]).lanes == 1 && is_non_negative(indices[d], facts_) &&
                  facts_.can_prove(indices[d] < cast_to(shape[d], dtype_of(indices[d])));
    }
    for (const Expr& condition : conditions_) {
      const std::optional<Limit> found = is_inside ? limit(indices, condition) : std::nullopt;
      if (found && (!own->second || std::ranges::count(*own->second, *found) > 0)) limits.push_back(*found);
    }
    own->second = std::move(limits);
  }

  bool is_limited(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& condition) const {
    auto own = own_.find(buffer.get());
    if (own == own_.end() || !own->second) return false;
    const std::optional<Limit> found = limit(indices, condition);
    return found && std::ranges::count(*own->second, *found) > 0;
  }

  // Returns the loads of a store without the condition, in elements that are there; nullopt where it has to stay.
  std::optional<Expr> without(const Expr& condition, const Expr& value) const {
    const Expr left = *slack(condition);
    std::vector<VarRef> vars;
    walk(left, [&](const Ref<Var>& var) {
      if (running_.contains(var.get()) && !contains(vars, var)) vars.push_back(var);
    });
    auto is_linear = [&](const VarRef& var) { return coefficient(left, var, facts_).has_value(); };
    const bool is_mask = uses_var(left, lanes_) && std::ranges::all_of(vars, is_linear);
    const bool is_row = vars.size() == 1 && dtype_of(left) == kInt64 && dtype_of(vars[0]) == kInt64 &&
                        coefficient(left, vars[0], facts_) == -1;
    if (!is_mask && !is_row) return std::nullopt;
    return rewrite(value, [&](const Ref<BufferLoad>& load) -> std::optional<Expr> {
      if (is_limited(load->buffer, load->indices, condition)) return Expr(load);
      const bool depends = std::ranges::any_of(vars, [&](const VarRef& var) { return uses_var(load->indices, var); });
      if (!depends) return std::nullopt;
      if (is_mask) return masked(load, condition);
      const Expr last = facts_.simplify(left + vars[0]);
      return substitute(Expr(load), {{vars[0].get(), min(vars[0], last)}});
    });
  }

  static Expr masked(const Ref<BufferLoad>& load, const Expr& condition) {
    BufferLoad copy = *load;
    copy.predicate = load->predicate ? *load->predicate && condition : condition;
    return make(std::move(copy), load.type(), load.span());
  }

  Stmt filled(const Stmt& s, const Expr& condition, const BufferStore& store) const {
    if (may_be_undefined(store.value, facts_)) return s;
    std::vector<Expr> kept;
    Expr value = store.value;
    for (const Expr& conjunct : conjuncts(condition)) {
      auto freed = is_limited(store.buffer, store.indices, conjunct) ? without(conjunct, value) : std::nullopt;
      auto bounds = freed ? bounds_over(*slack(conjunct), running_, facts_) : std::nullopt;
      if (bounds) value = *freed;
      kept.push_back(bounds ? facts_.simplify(bounds->max >= int_imm(0, dtype_of(bounds->max))) : conjunct);
    }
    if (same_node(value, store.value) && std::ranges::equal(kept, conjuncts(condition), same_node)) return s;
    BufferStore copy = store;
    copy.value = value;
    return make(IfThenElse{*conjunction(kept), make(std::move(copy), s.span()), std::nullopt}, s.span());
  }
  static bool holds_effects(const Expr& value) {
    return any_node(value, [](const NodeRef& node) {
      return node.is<Call>() && !as_call(cast<Call>(node), ops::kIfThenElse) &&
             !find_intrinsic(op_name(cast<Call>(node)));
    });
  }

  Analyzer facts_;
  RunningVars running_;  // of the loops in the tile
  std::unordered_set<const NodeHeader*> lanes_;
  std::vector<Expr> conditions_;
  std::unordered_map<const NodeHeader*, std::optional<std::vector<Limit>>> own_;  // buffers; those of all accesses
  bool is_plain_ = true, fills_ = false;
};

}  // namespace

Stmt fill_tile(const Stmt& tile, const Analyzer& facts) { return TileFiller(tile, facts).run(tile); }

}  // namespace relaxc
