#include "tir/analysis/dependence.h"

#include <algorithm>

#include "ir/visit.h"
#include "tir/analysis/bounds.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

namespace {

constexpr int64_t kNoMin = std::numeric_limits<int64_t>::min(), kNoMax = std::numeric_limits<int64_t>::max();

Expr zero_of(const Expr& e) { return int_imm(0, dtype_of(e)); }

// Returns the element of a box at the place of new variables, with new variables for the loops of the access, too:
// those of another iteration. `kept` keeps its variable, which then stands for another value; it may be null.
std::vector<Expr> element_of(const LoopAccess& access, const VarRef* kept, bool renames, Analyzer& facts) {
  VarMap others;
  // A range that depends on the kept loop is that of the iteration which its variable does not name.
  auto bind = [&](const VarRef& var, const Expr& min, const Expr& extent) {
    const Expr first = substitute(min, others), count = substitute(extent, others);
    if (!kept || !(uses_var(first, *kept) || uses_var(count, *kept))) return facts.bind(var, first, count);
    const Interval start = facts.bounds(first), last = facts.bounds(first + cast_to(count, dtype_of(first)) - 1);
    facts.bind(var, Interval{start.min, last.max});
  };
  for (const LoopRange& loop : access.loops) {
    if (!renames || (kept && same_node(loop.var, *kept))) continue;
    VarRef other = make_var(loop.var->name + "_", loop.var.type());
    bind(other, loop.range.min, loop.range.extent);
    others.emplace(loop.var.get(), other);
  }
  std::vector<Expr> result;
  for (const Range& range : access.box) {
    result.push_back(substitute(range.min, others));
    if (is_int(range.extent, 1)) continue;
    VarRef place = make_var("element", prim_type(dtype_of(range.min)));
    bind(place, zero_of(range.min), range.extent);
    result.back() = result.back() + place;
  }
  return result;
}

bool are_comparable(const Expr& a, const Expr& b) {
  auto is_number = [](const Expr& e) {
    return dtype_of(e).is_integral() && dtype_of(e).lanes == 1 && !holds<BufferLoad>(e);
  };
  return is_number(a) && is_number(b);
}

// Returns whether the elements are others in any two iterations, as the halves of a buffer are.
bool are_apart(const LoopAccess& store, const LoopAccess& other, Analyzer facts) {
  const std::vector<Expr> to = element_of(store, nullptr, false, facts), from = element_of(other, nullptr, true, facts);
  for (size_t d = 0; d < to.size(); ++d) {
    if (are_comparable(to[d], from[d]) && facts.can_prove(not_equal(to[d], cast_to(from[d], dtype_of(to[d])))))
      return true;
  }
  return false;
}

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Returns the whole numbers d for which step * d is in the interval.
Interval quotients(Interval apart, int64_t step) {
  if (step < 0) {
    auto negated = [](int64_t end) { return end == kNoMin ? kNoMax : end == kNoMax ? kNoMin : -end; };
    return quotients({negated(apart.max), negated(apart.min)}, -step);
  }
  return {apart.min == kNoMin ? kNoMin : -floor_quotient(-apart.min, step),
          apart.max == kNoMax ? kNoMax : floor_quotient(apart.max, step)};
}

// Returns whether less than a step of unknown size lies between the two.
bool is_less_than_a_step(const Expr& apart, const Expr& step, const Analyzer& facts) {
  const bool is_negative = facts.can_prove(step < zero_of(step));
  if (as_int(apart) == 0) return is_negative || is_positive(step, facts);
  const Expr size = is_negative ? facts.simplify(zero_of(step) - step) : step;
  return facts.can_prove(apart < size) && facts.can_prove(zero_of(step) - size < apart);
}

// Returns by how much a step of the loop moves both indices, if that is the same.
std::optional<Expr> common_step(const Expr& to, const Expr& from, const VarRef& loop, const Analyzer& facts) {
  const Expr step = facts.simplify(stepped(to, loop) - to), other = facts.simplify(stepped(from, loop) - from);
  if (!structural_equal(step, other) || uses_var(step, loop)) return std::nullopt;
  return step;
}

// Returns the distances at which two indices may be equal.
Interval compare(const Expr& to, const Expr& other, const VarRef& loop, const Analyzer& facts) {
  if (!are_comparable(to, other)) return {};
  const Expr from = cast_to(other, dtype_of(to)), apart = facts.simplify(to - from);
  const std::optional<Expr> step = common_step(to, from, loop, facts);
  if (!step || uses_var(apart, loop)) return {};
  const auto number = as_int(apart), by = as_int(*step);
  const Interval bounds = number ? Interval{*number, *number} : facts.bounds(apart);
  if (by == 0) return bounds.min > 0 || bounds.max < 0 ? Interval{1, 0} : Interval{};
  if (by) return quotients(bounds, *by);
  return is_less_than_a_step(apart, *step, facts) ? Interval{0, 0} : Interval{};
}

// Returns whether iterations at this distance use the same element where the loops inside are at the same iterations.
bool do_meet(const LoopAccess& store, const LoopAccess& other, const VarRef& loop, int64_t distance,
             const Analyzer& facts) {
  auto is_fixed = [&](const LoopRange& each) {
    return !uses_var(each.range.min, loop) && !uses_var(each.range.extent, loop);
  };
  if (!std::ranges::all_of(store.loops, is_fixed) || !std::ranges::all_of(other.loops, is_fixed)) return false;
  for (size_t d = 0; d < store.box.size(); ++d) {
    const Range &a = store.box[d], &b = other.box[d];
    if (!is_int(a.extent, 1) || !is_int(b.extent, 1) || !are_comparable(a.min, b.min)) return false;
    const Expr from = cast_to(b.min, dtype_of(a.min));
    const std::optional<Expr> step = common_step(a.min, from, loop, facts);
    if (!step || !facts.can_prove_equal(a.min - from, *step * int_imm(distance, dtype_of(*step)))) return false;
  }
  return true;
}

// Returns how far two values of the loop's variable are apart at most, where that is known. The range of the loop may
// depend on loops around it that run.
std::optional<int64_t> most_apart(const std::vector<LoopRange>& loops, const VarRef& loop, const Analyzer& facts) {
  auto own = std::ranges::find_if(loops, [&](const LoopRange& each) { return same_node(each.var, loop); });
  if (own == loops.end()) return std::nullopt;
  const Range& range = own->range;
  const Expr last = range.min + cast_to(range.extent, dtype_of(range.min)) - int_imm(1, dtype_of(range.min));
  auto moves_it = [&](const LoopRange& outer) {
    return uses_var(range.min, outer.var) || uses_var(range.extent, outer.var);
  };
  constexpr int64_t kMost = int64_t{1} << 60;
  if (std::none_of(loops.begin(), own, moves_it)) {
    const int64_t extent = facts.bounds(range.extent).max;
    return extent > 0 && extent < kMost ? std::optional(extent - 1) : std::nullopt;
  }
  const int64_t least = facts.bounds(range.min).min, most = facts.bounds(last).max;
  return least > -kMost && most < kMost && most >= least ? std::optional(most - least) : std::nullopt;
}

}  // namespace

std::optional<Distances> distances(const LoopAccess& store, const LoopAccess& other, const VarRef& loop,
                                   const Analyzer& around) {
  Distances result;
  if (store.box.size() != other.box.size()) return Distances{};
  if (are_apart(store, other, around)) return std::nullopt;
  Analyzer facts = around;
  const std::vector<Expr> to = element_of(store, nullptr, false, facts), from = element_of(other, &loop, true, facts);
  auto limit = [&](Interval range) {
    result.range = {std::max(result.range.min, range.min), std::min(result.range.max, range.max)};
  };
  for (size_t d = 0; d < to.size(); ++d) limit(compare(to[d], from[d], loop, facts));
  if (auto most = most_apart(store.loops, loop, around)) limit({-*most, *most});
  if (result.range.min > result.range.max) return std::nullopt;
  result.is_certain = result.range.min == result.range.max && do_meet(store, other, loop, result.range.min, around);
  return result;
}

}  // namespace relaxc
