// A tile of unrolled loops, at the border of something whose size only the run knows, gets a copy without conditions:
//
//   for c: for i in unroll(14): if t * 14 + i >= 1 and t * 14 + i < n: sums[i] += ...
//
//   if t * 14 >= 1 and t * 14 + 13 < n: for c: for i in unroll(14): sums[i] += ...
//   elif t * 14 + 13 >= 1 and t * 14 < n: for c: for i in unroll(14): if (i >= 1 or t * 14 + i >= 1) and ...: ...
//
// The conditions that stay are only tested where no bound of the loops around decides them: i >= 1, once the loop is
// unrolled. A tile in which few places are left to test, such as those of a narrow window, needs no copy. Tiles with
// masks on lanes stay as they are.
#include <algorithm>

#include "ir/op_names.h"
#include "ir/undefined.h"
#include "support/temporarily.h"
#include "tir/analysis/bounds.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/program.h"

namespace relaxc {

namespace {

// Bounds the stores that copies of tiles may add to a function.
constexpr int64_t kMostGuardedStores = 2048;
// A tile is copied where more than one in so many of its places is left to test.
constexpr int64_t kPlacesPerTest = 16;

// A conjunct of conditions in a tile that a number decides, its slack: the conjunct holds where that is not negative.
struct Border {
  std::vector<Expr> conditions;  // all that are equal to it
  Expr least, most;              // the slack over the tile
  Expr beyond;                   // the slack without `least`, which only depends on the place in the tile
  std::optional<int64_t> floor;  // `least` is never below it
  int64_t tested, places;        // those that `floor` does not decide; all of the tile
};

// Finds the borders of a tile, the unrolled loops in a loop.
class BorderFinder {
 public:
  BorderFinder(const Stmt& tile, const Analyzer& facts) : facts_(facts) { visit(tile); }

  std::vector<Border> borders;
  bool is_inside = false;  // whether there are borders that depend on a loop in the tile
  bool has_masks = false;  // whether conditions depend on lanes: masks, beside which other conditions cost little

 private:
  void visit(const NodeRef& node) {
    if (const For* loop = node.as<For>()) {
      const bool is_known = as_int(loop->min) && as_int(loop->extent).value_or(0) > 0;
      const bool is_unrolled = loop->kind == ForKind::kUnrolled && is_known;
      if (is_unrolled) unrolled_.push_back(*loop), places_.emplace(loop->var.get(), Range{loop->min, loop->extent});
      if (!is_unrolled) (loop->kind == ForKind::kVectorized ? lanes_ : loops_).insert(loop->var.get());
    }
    if (const Bind* bind = node.as<Bind>()) unknown_.insert(bind->var.get());
    if (const Let* let = node.as<Let>()) unknown_.insert(let->var.get());
    for (const Expr& conjunct : conjuncts(condition_of(node))) look(conjunct);
    visit_children(node, [&](const NodeRef& child, Slot) {
      if (!is_type_kind(child.kind())) visit(child);
    });
  }

  void look(const Expr& condition) {
    for (Border& known : borders) {
      if (structural_equal(known.conditions[0], condition)) return known.conditions.push_back(condition);
    }
    const std::optional<Expr> value = slack(condition);
    has_masks = has_masks || (value && uses_var(*value, lanes_));
    if (!value || !uses_var(*value, places_) || uses_var(*value, unknown_) || holds<BufferLoad, Call>(*value)) return;
    if (uses_var(*value, loops_)) {
      is_inside = true;
      return;
    }
    const std::optional<Bounds> bounds = bounds_over(*value, places_, facts_);
    if (!bounds) return;
    const Expr least = facts_.simplify(bounds->min), most = facts_.simplify(bounds->max);
    if (as_int(least) || may_be_undefined(least, facts_) || may_be_undefined(most, facts_)) return;
    Border border{{condition}, least, most, facts_.simplify(*value - least), std::nullopt, 0, 0};
    if (count_places(border)) borders.push_back(std::move(border));
  }

  // Returns the largest number below 0 that `value` is proven not to be below; nullopt where it may be -most - 1.
  std::optional<int64_t> floor_of(const Expr& value, int64_t most) const {
    auto is_above = [&](int64_t floor) { return facts_.can_prove(value >= int_imm(floor, dtype_of(value))); };
    if (!is_above(-most)) return std::nullopt;
    int64_t low = -most, high = -1;
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      const bool holds = is_above(middle);
      (holds ? low : high) = holds ? middle : middle - 1;
    }
    return low;
  }

  // Counts the places of the tile that a condition depends on. Returns false where it depends on something else.
  bool count_places(Border& border) const {
    std::vector<int64_t> values = {0};
    Expr rest = border.beyond;
    for (const For& loop : unrolled_) {
      const auto factor = coefficient(border.beyond, loop.var, facts_);
      if (!factor) return false;
      if (*factor == 0) continue;
      rest = substitute(rest, {{loop.var.get(), int_imm(0)}});
      std::vector<int64_t> more;
      for (int64_t value : values) {
        for (int64_t i = 0; i < *as_int(loop.extent); ++i) more.push_back(value + *factor * (*as_int(loop.min) + i));
      }
      values = std::move(more);
    }
    const auto constant = as_int(facts_.simplify(rest));
    if (!constant) return false;
    for (int64_t& value : values) value += *constant;
    border.places = std::ssize(values);
    border.floor = floor_of(border.least, std::ranges::max(values));
    border.tested = border.places;
    if (border.floor) border.tested = std::ranges::count_if(values, [&](int64_t v) { return v + *border.floor < 0; });
    return true;
  }

  const Analyzer& facts_;
  std::vector<For> unrolled_;  // loops in the tile
  RunningVars places_;         // their ranges
  std::unordered_set<const NodeHeader*> loops_, lanes_, unknown_;
};

class TileGuard {
 public:
  explicit TileGuard(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt visit(const Stmt& s) {
    if (const For* loop = s.as<For>()) {
      const bool may_be_tile = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
      if (may_be_tile) {
        if (auto guarded = guard(s)) return *guarded;
      }
      Temporarily facts(facts_, facts_);
      assume_runs(facts_, *loop);
      return map_stmts(s, [&](const Stmt& inner) { return visit(inner); });
    }
    const IfThenElse* branch = s.as<IfThenElse>();
    bool is_else = false;
    return map_stmts(s, [&](const Stmt& inner) {
      if (!branch) return visit(inner);
      Temporarily facts(facts_, facts_);
      facts_.assume(std::exchange(is_else, true) ? !branch->condition : branch->condition);
      return visit(inner);
    });
  }

 private:
  // Returns the tile with its borders, or nullopt where it has none.
  std::optional<Stmt> guard(const Stmt& tile) {
    const BorderFinder found(tile, facts_);
    if (found.borders.empty() || found.is_inside || found.has_masks) return std::nullopt;
    const Stmt rest = with_few_tests(tile, found.borders);
    const bool has_many_tests = std::ranges::any_of(
        found.borders, [](const Border& border) { return border.tested * kPlacesPerTest > border.places; });
    const int64_t size = code_size(tile);
    if (!has_many_tests || size > budget_) return rest;
    budget_ -= size;
    std::vector<Expr> all, some;
    for (const Border& border : found.borders) {
      add_condition(all, border.least);
      if (is_idle_without(border, tile)) add_condition(some, border.most);
    }
    const Stmt whole = simplify(with(found.borders, bool_imm(true), tile), facts_);
    const std::optional<Expr> holds = conjunction(all), may_hold = conjunction(some);
    if (!holds) return whole;
    // The second tile needs its own variables and memory.
    Stmt otherwise = instantiate(rest, {});
    if (may_hold) otherwise = make(IfThenElse{*may_hold, otherwise, std::nullopt}, tile.span());
    return make(IfThenElse{*holds, whole, otherwise}, tile.span());
  }
  void add_condition(std::vector<Expr>& list, const Expr& number) const {
    const Expr condition = facts_.simplify(number >= int_imm(0, dtype_of(number)));
    const bool is_known = is_int(condition, 1) || std::ranges::any_of(list, [&](const Expr& each) {
                            return structural_equal(each, condition);
                          });
    if (!is_known) list.push_back(condition);
  }
  bool is_idle_without(const Border& border, const Stmt& tile) const {
    return does_nothing(simplify(with({border}, bool_imm(false), tile), facts_));
  }

  static Stmt with(const std::vector<Border>& borders, const Expr& value, const Stmt& tile) {
    Replacements known;
    for (const Border& border : borders) {
      for (const Expr& condition : border.conditions) known.emplace(condition.get(), value);
    }
    return replace_exprs(tile, known);
  }
  // Returns the tile with conditions that are decided by the place alone where this is possible.
  static Stmt with_few_tests(const Stmt& tile, const std::vector<Border>& borders) {
    Replacements by;
    for (const Border& border : borders) {
      if (!border.floor) continue;
      const Expr& beyond = border.beyond;
      const Expr decided = simplify(beyond + *border.floor >= int_imm(0, dtype_of(beyond)));
      for (const Expr& condition : border.conditions)
        by.emplace(condition.get(), border.tested == 0 ? Expr(bool_imm(true)) : decided || condition);
    }
    return by.empty() ? tile : replace_exprs(tile, by);
  }

  Analyzer facts_;
  int64_t budget_ = kMostGuardedStores;
};

}  // namespace

// Loop versioning for tiles: where the conditions in unrolled loops depend on numbers that are not constants, a branch
// chooses between a copy of the tile without them, none of it, and one that tests them.
PrimFuncRef guard_tiles(const PrimFuncRef& function) {
  return with_body(function, TileGuard(facts_of_params(function)).visit(function->body));
}

}  // namespace relaxc
