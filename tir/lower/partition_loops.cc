// Loop partitioning, as in Halide and TVM: a loop is cut where conditions in its body begin and cease to hold. The
// interior for a condition with the slack c * var + rest(inner loops) >= 0 is where it holds for the smallest rest.
#include <algorithm>

#include "ir/arith.h"
#include "ir/op_names.h"
#include "ir/undefined.h"
#include "support/temporarily.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/bounds.h"
#include "tir/analysis/conditions.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"
#include "tir/program.h"

namespace relaxc {

namespace {

// Bounds the stores that cutting may add to a function. An unrolled register tile has a hundred.
constexpr int64_t kMostNewStores = 4096;
// A loop with fewer iterations, such as a kernel window, is not worth cutting at places that are not constants.
constexpr int64_t kFewIterations = 8;
constexpr int64_t kMostExactTails = 32;
// Limits the symbolic cuts and ends in a nest: they nest as min and max, which proofs must split into cases.
constexpr int kMostSymbolicCuts = 4, kMostSymbolicEnds = 2;

Attrs without_cut_annotations(const For& loop) {
  return loop.annotations.without(annotation<"exact_tails">()).without(annotation<"keep_whole">());
}

// Returns the expression or statement with a value in the place of a digit, such as i // 8.
template <class Family>
Family with_digit(const Family& node, const Expr& digit, const Expr& value) {
  return rewrite(node, [&](const Ref<Binary>& at) -> std::optional<Expr> {
    return structural_equal(at, digit) ? std::optional(value) : std::nullopt;
  });
}

// A conjunct of a condition in a loop's body that holds from some iteration on, or up to some iteration.
struct Cut {
  Expr condition;
  int64_t scale;  // coefficient of the loop's variable in the slack
  Expr slack;
  Expr best;                       // largest slack over the inner iterations, without the variable's part
  Expr written_best;               // the same as the condition has it, perhaps with undefined operands
  int64_t width;                   // range of the slack over inner iterations; -1 if not known
  int64_t unit;                    // the condition depends on var // unit, a digit of fused loops; 1 if on var itself
  std::optional<Expr> digit;       // the condition depends on this digit of a parallel loop, which `end` then bounds
  Expr first, end;                 // the interior, before clamping to the loop
  bool in_inner_loop = false;      // the condition is in a loop inside
  std::optional<VarRef> row = {};  // the only inner loop variable in the slack, if its coefficient is -1
  bool needs_run = false;          // whether its ends may be undefined where the loop does not run
  bool is_of_choice = false;       // of one of several choices between two values, as the parts of a concatenation are

  // Returns whether the condition is var * tile + inner < n with inner in [0, tile): only the last tile is partial.
  bool is_tail() const { return unit == 1 && scale < -1 && width == -scale - 1; }
};

class CutFinder {
 public:
  CutFinder(const For& loop, const Analyzer& facts) : loop_(loop), facts_(facts) {}

  std::vector<Cut> find() {
    visit(loop_.body);
    return std::move(cuts_);
  }

 private:
  void visit(const NodeRef& node) {
    if (const For* inner = node.as<For>()) {
      visit(inner->min);
      visit(inner->extent);
      running_.emplace(inner->var.get(), Range{inner->min, inner->extent});
      bool may_not_run = !is_positive(inner->extent, facts_);
      Temporarily guards(guards_, guards_ + may_not_run);
      Temporarily facts(facts_, facts_);
      facts_.bind(inner->var, inner->min, inner->extent);
      visit(inner->body);
      running_.erase(inner->var.get());
      return;
    }
    if (const Bind* bind = node.as<Bind>()) unknown_.insert(bind->var.get());
    if (const Let* let = node.as<Let>()) unknown_.insert(let->var.get());
    const std::optional<Expr> condition = condition_of(node);
    const Temporarily is_choice(is_choice_, is_choice_ || chooses_often(node));
    for (const Expr& conjunct : conjuncts(condition)) look(conjunct);
    bool in_condition = true;  // the first operand of a branch; that of a call is its callee
    visit_children(node, [&](const NodeRef& child, Slot) {
      if (is_type_kind(child.kind())) return;
      bool is_side = condition && !in_condition;
      if (!child.is<OpRef>()) in_condition = false;
      Temporarily guards(guards_, guards_ + is_side);
      visit(child);
    });
  }

  // Returns whether the node chooses between two values, one of which is such a choice again.
  static bool chooses_often(const NodeRef& node) {
    if (!node.is<Call>()) return false;
    const Call* choice = as_call(cast_handle<Expr>(node), ops::kIfThenElse);
    return choice && (as_call(choice->args[1], ops::kIfThenElse) || as_call(choice->args[2], ops::kIfThenElse));
  }

  void look(const Expr& condition) {
    if (std::ranges::any_of(cuts_, [&](const Cut& known) { return same_node(known.condition, condition); })) return;
    std::optional<Expr> value = slack(condition);
    if (!value || uses_var(condition, unknown_) || holds<BufferLoad>(condition)) return;
    // The condition may depend on the variable divided by a constant, a digit of fused loops.
    Expr var = loop_.var;
    auto quotient = first_operation(*value, [&](const Binary& node) {
      return node.op == BinaryOp::kFloorDiv && same_node(node.a, loop_.var) && as_int(node.b).value_or(0) > 1;
    });
    const Expr whole = *value;
    int64_t unit = quotient && replace_digit(*quotient, *value, var) ? *as_int(quotient->as<Binary>()->b) : 1;
    auto scale = coefficient(*value, var, facts_);
    std::optional<Expr> digit;
    if (!scale && loop_.kind == ForKind::kParallel) {
      value = whole, unit = 1;
      digit = first_operation(*value, [&](const Binary& node) {
        bool divides = node.op == BinaryOp::kFloorMod || node.op == BinaryOp::kFloorDiv;
        return divides && uses_var(node.a, loop_.var) && !uses_var(node.b, loop_.var);
      });
      if (!digit || uses_var(*digit, running_) || !replace_digit(*digit, *value, var)) return;
      scale = coefficient(*value, var, facts_);
    }
    auto bounds = scale && *scale != 0 ? bounds_over(*value, running_, facts_) : std::nullopt;
    if (!bounds || coefficient(bounds->min, var, facts_) != scale || coefficient(bounds->max, var, facts_) != scale)
      return;
    Expr var_part = var * *scale;
    Expr rest = facts_.simplify(cast_to(bounds->min, kInt64) - var_part);
    Expr best = facts_.simplify(cast_to(bounds->max, kInt64) - var_part);
    // Where the condition depends on a digit, extents of inner loops may still use the variable itself.
    std::unordered_set<const NodeHeader*> excluded{var.get(), loop_.var.get()};
    if (uses_var(rest, excluded) || uses_var(best, excluded)) return;
    int64_t width = as_int(facts_.simplify(best - rest)).value_or(-1);
    Cut cut{condition, *scale, *value, best, best, width, unit, digit, loop_.min, loop_.min + loop_.extent};
    cut.in_inner_loop = !running_.empty();
    cut.is_of_choice = is_choice_;
    cut.row = only_row(*value);
    if (*scale > 0) {
      cut.first = facts_.simplify(floor_div(int_imm(*scale - 1) - rest, *scale) * unit);
    } else {
      cut.end = facts_.simplify((floor_div(rest, -*scale) + 1) * unit);
    }
    // A loop that runs evaluates the condition and so defines the ends. Where a branch or an inner loop may skip the
    // condition, any ends are correct.
    cut.needs_run = may_be_undefined(cut.first, facts_) || may_be_undefined(cut.end, facts_);
    if (cut.needs_run && guards_ > 0) {
      for (Expr* part : {&cut.best, &cut.first, &cut.end}) *part = with_defined_operands(*part, facts_);
      cut.needs_run = false;
    }
    if (!digit || (cut.is_tail() && cut.in_inner_loop)) cuts_.push_back(std::move(cut));
  }

  std::optional<VarRef> only_row(const Expr& value) const {
    std::optional<VarRef> row;
    bool several = false;
    walk(value, [&](const Ref<Var>& var) {
      if (!running_.contains(var.get()) || (row && same_node(*row, var))) return;
      several = several || row;
      row = var;
    });
    return row && !several && coefficient(value, *row, facts_) == -1 ? row : std::nullopt;
  }

  // Replaces the digit in the value by a new variable, which becomes `var`. Returns false and changes nothing if the
  // value does not depend on the loop's variable through the digit only.
  bool replace_digit(const Expr& digit, Expr& value, Expr& var) {
    VarRef each = make_dim("digit");
    Expr by_digit = with_digit(value, digit, each);
    if (uses_var(by_digit, loop_.var)) return false;
    facts_.bind(each, Interval{0});
    value = by_digit;
    var = each;
    return true;
  }

  const For& loop_;
  Analyzer facts_;
  int guards_ = 0;          // branches, and loops that may not run, between the loop and the visited node
  bool is_choice_ = false;  // the visited node is in one of several choices
  RunningVars running_;
  std::unordered_set<const NodeHeader*> unknown_;
  std::vector<Cut> cuts_;
};

class Partitioner {
 public:
  explicit Partitioner(Analyzer facts) : facts_(std::move(facts)) {}

  Stmt visit(const Stmt& s) {
    if (s.is<For>()) {
      if (depth_ == 0) symbolic_left_ = kMostSymbolicCuts;
      Temporarily depth(depth_, depth_ + 1);
      return cut(s);
    }
    const IfThenElse* branch = s.as<IfThenElse>();
    bool is_else = false;
    return map_stmts(s, [&](const Stmt& inner) {
      if (!branch) return visit(inner);
      Expr condition = std::exchange(is_else, true) ? !branch->condition : branch->condition;
      return with_facts([&] { facts_.assume(condition); }, [&] { return visit(inner); });
    });
  }

 private:
  // Returns fn's result under additional facts.
  template <class AddFacts, class F>
  Stmt with_facts(AddFacts add_facts, F fn) {
    Temporarily facts(facts_, facts_);
    add_facts();
    return fn();
  }
  template <class F>
  Stmt inside(const For& loop, F fn) {
    return with_facts([&] { facts_.bind(loop.var, loop.min, loop.extent); }, fn);
  }

  // Returns the loop without cuts, with its body visited.
  Stmt whole(const Stmt& s) {
    const For& loop = *s.as<For>();
    Stmt body = inside(loop, [&] { return visit(loop.body); });
    if (same_node(body, loop.body) && !loop.annotations.has(annotation<"exact_tails">()) &&
        !loop.annotations.has(annotation<"keep_whole">()))
      return s;
    For copy = loop;
    copy.annotations = without_cut_annotations(loop);
    copy.body = body;
    return make(std::move(copy), s.span());
  }
  // Simplifies the statement under the current facts and cuts it further.
  Stmt recut(const Stmt& s) { return visit(simplify(s, facts_)); }

  struct Part {
    Expr first, end;
  };
  // Returns a copy of the loop over part of its range.
  Stmt part(const Stmt& s, const Part& range, const Stmt& body) {
    const For& loop = *s.as<For>();
    For copy = loop;
    copy.var = make_var(loop.var->name, loop.var.type(), loop.var.span());
    copy.min = range.first;
    copy.extent = facts_.simplify(range.end - range.first);
    // A single iteration needs no loop, so annotations of loops do not apply to it.
    copy.annotations = as_int(copy.extent) == 1 ? Attrs() : without_cut_annotations(loop);
    copy.body = instantiate(body, {{loop.var.get(), copy.var}});
    return make(std::move(copy), s.span());
  }
  // Returns the statement with the conditions of all cuts replaced by the value.
  static Stmt with(bool value, const std::vector<Cut>& cuts, const Stmt& s) {
    Replacements known;
    for (const Cut& cut : cuts) known.emplace(cut.condition.get(), bool_imm(value));
    return replace_exprs(s, known);
  }
  // Returns whether the statement does nothing where none of the conditions holds.
  bool is_idle_without(const std::vector<Cut>& cuts, const Stmt& s) const {
    return does_nothing(simplify(with(false, cuts, s), facts_));
  }
  // Returns the loop with a branch in its body between iterations in which all conditions hold, and the rest.
  Stmt branched(const Stmt& s, const Expr& condition, const Stmt& then, const Stmt& rest) {
    const For& loop = *s.as<For>();
    Stmt body = make(IfThenElse{condition, then, rest}, s.span());
    return edited<For>(s, [&](For& copy) { copy.body = inside(loop, [&] { return recut(body); }); });
  }

  Stmt cut(const Stmt& s) {
    const For& loop = *s.as<For>();
    if (dtype_of(loop.var) != kInt64 || binds_thread(loop.kind)) return whole(s);
    const bool keeps = loop.annotations.get_bool(annotation<"keep_whole">(), false);
    if (keeps && !loop.annotations.get_bool(annotation<"exact_tails">(), false)) return whole(s);
    Analyzer inside = facts_;
    inside.bind(loop.var, loop.min, loop.extent);
    std::vector<Cut> cuts = CutFinder(loop, inside).find();
    if (cuts.empty()) return whole(s);
    Expr runs = loop.extent > int_imm(0, dtype_of(loop.extent));
    if (std::ranges::none_of(cuts, &Cut::needs_run) || facts_.can_prove(runs)) return cut_at(s, std::move(cuts));
    Stmt result = with_facts([&] { facts_.assume(runs); }, [&] { return cut_at(s, std::move(cuts)); });
    return make(IfThenElse{runs, result, std::nullopt}, s.span());
  }
  Stmt cut_at(const Stmt& s, std::vector<Cut> cuts) {
    const For& loop = *s.as<For>();
    if (loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized) return trim(s, cuts);
    if (loop.annotations.get_bool(annotation<"exact_tails">(), false)) {
      if (auto result = exact_tails(s, cuts)) return *result;
    }
    if (loop.annotations.get_bool(annotation<"keep_whole">(), false)) return whole(s);
    if (auto result = branch_on_digits(s, cuts)) return *result;
    std::erase_if(cuts, [](const Cut& cut) { return cut.digit.has_value(); });
    Part interior = choose(loop, cuts);
    if (cuts.empty() || !take_budget(loop)) return whole(s);
    bool symbolic = !as_int(interior.first) || !as_int(interior.end);
    symbolic_left_ -= symbolic && symbolic_left_ > 0;
    Part all{loop.min, facts_.simplify(loop.min + loop.extent)};
    if (loop.kind == ForKind::kParallel) return branch(s, all, interior, cuts);
    Part head{all.first, interior.first}, tail{interior.end, live_end(loop, interior, all.end, cuts)};
    // The interior comes first: what is left for cuts inside of it is best spent there.
    Stmt most = recut(part(s, interior, with(true, cuts, loop.body)));
    Stmt before = recut(part(s, head, loop.body));
    // The tail begins behind the first iteration of the interior, so conditions that begin to hold still do. Proofs
    // would not find that of symbolic ends, and the tail would be cut at the same iterations again.
    std::vector<Cut> begun;
    std::ranges::copy_if(cuts, std::back_inserter(begun), [](const Cut& cut) { return cut.scale > 0; });
    return seq({before, most, recut(part(s, tail, with(true, begun, loop.body)))}, s.span());
  }
  // Accounts for two more copies of the body. Returns false where the function would grow too much.
  bool take_budget(const For& loop) {
    int64_t size = 2 * code_size(loop.body);
    bool fits = size <= budget_;
    if (fits) budget_ -= size;
    return fits;
  }

  // Returns the end of the tail. Iterations in which none of the conditions holds are left out if they do nothing.
  Expr live_end(const For& loop, const Part& interior, const Expr& end, const std::vector<Cut>& cuts) const {
    Expr live = interior.end;
    std::vector<Cut> ending;
    for (const Cut& cut : cuts) {
      if (cut.scale > 0) continue;
      ending.push_back(cut);
      live = larger(live, facts_.simplify((floor_div(cut.best, -cut.scale) + 1) * cut.unit));
    }
    return !ending.empty() && is_idle_without(ending, loop.body) ? smaller(live, end) : end;
  }

  // Returns whether a bound is a constant, or as before: it does not nest further.
  static bool is_constant_or(const Expr& before, const Expr& e) {
    return as_int(e).has_value() || structural_equal(before, e);
  }
  // Returns the one of many choices that cuts the loop most evenly, so that the parts are cut in turn: their number is
  // the logarithm of that of the choices. Null without a constant one.
  static const Cut* middle_choice(const For& loop, const std::vector<Cut>& cuts) {
    const int64_t twice_middle = 2 * as_int(loop.min).value_or(0) + as_int(loop.extent).value_or(0);
    const Cut* best = nullptr;
    auto distance = [&](const Cut& cut) {
      return std::abs(2 * as_int(cut.scale > 0 ? cut.first : cut.end).value_or(INT32_MAX) - twice_middle);
    };
    for (const Cut& cut : cuts) {
      if (cut.is_of_choice && (!best || distance(cut) < distance(*best))) best = &cut;
    }
    return best;
  }
  // Returns the range in which the conditions of all cuts hold. Cuts that would leave less than half of a constant
  // range, or nothing of a short one, are dropped.
  Part choose(const For& loop, std::vector<Cut>& cuts) const {
    Expr end = facts_.simplify(loop.min + loop.extent);
    Part interior{loop.min, end};
    auto first = as_int(loop.min), count = as_int(loop.extent);
    std::vector<Cut> kept;
    int symbolic = 0;
    const Cut* middle = middle_choice(loop, cuts);
    for (Cut& cut : cuts) {
      bool known = as_int(cut.scale > 0 ? cut.first : cut.end).has_value();
      if (loop.kind == ForKind::kParallel && !cut.in_inner_loop) continue;
      if (count && *count < kFewIterations && !known) continue;
      if (facts_.can_prove(cut.end <= loop.min) || facts_.can_prove(cut.first >= end)) continue;
      Part narrower{larger(interior.first, cut.first), smaller(interior.end, cut.end)};
      auto from = as_int(narrower.first), to = as_int(narrower.end);
      bool moves = !structural_equal(narrower.first, interior.first) || !structural_equal(narrower.end, interior.end);
      const bool nests = moves && !(is_constant_or(interior.first, narrower.first) &&
                                    is_constant_or(interior.end, narrower.end) && known);
      if (nests && (symbolic_left_ == 0 || symbolic == kMostSymbolicEnds)) continue;
      if (cut.is_of_choice && moves && &cut != middle) continue;
      // Iterations after the last one in which the condition holds anywhere do not count.
      auto last = as_int(cut.best);
      int64_t live = last && cut.scale < 0 ? (*last / -cut.scale + 1) * cut.unit : INT64_MAX;
      if (first && count && from && to) {
        int64_t all = std::min(*count, live - *first), least = all < kFewIterations ? 1 : (all + 1) / 2;
        if (*to - *from < least) continue;
      }
      interior = narrower;
      symbolic += nests;
      kept.push_back(std::move(cut));
    }
    cuts = std::move(kept);
    // first <= interior.first <= interior.end <= end for all values.
    interior.first = smaller(interior.first, end);
    interior.end = larger(interior.end, interior.first);
    return interior;
  }
  Expr larger(const Expr& a, const Expr& b) const { return facts_.simplify(max(a, b)); }
  Expr smaller(const Expr& a, const Expr& b) const { return facts_.simplify(min(a, b)); }

  // Turns the parts of a parallel loop into a branch inside it, so that it stays one loop.
  Stmt branch(const Stmt& s, const Part& all, const Part& interior, const std::vector<Cut>& cuts) {
    const For& loop = *s.as<For>();
    Expr inside = loop.var >= interior.first && loop.var < interior.end;
    // The index of a single iteration at the end is known, and so is a single value of the digit in the conditions.
    auto from = as_int(interior.end), left = as_int(facts_.simplify(all.end - interior.end));
    int64_t unit = cuts[0].unit;
    bool one_left = structural_equal(all.first, interior.first) && left == unit;
    VarMap last;
    if (one_left && unit == 1) last.emplace(loop.var.get(), interior.end);
    Stmt rest = instantiate(loop.body, last);
    if (one_left && unit > 1 && from && *from % unit == 0)
      rest = with_digit(rest, floor_div(loop.var, unit), int_imm(*from / unit));
    return branched(s, inside, with(true, cuts, loop.body), rest);
  }

  // Does the same for a parallel loop over fused loops: one branch for full tiles, one for the last along some digit.
  std::optional<Stmt> branch_on_digits(const Stmt& s, const std::vector<Cut>& all) {
    const For& loop = *s.as<For>();
    std::vector<Cut> cuts;
    std::vector<Expr> inside;
    for (const Cut& cut : all) {
      if (!cut.digit) continue;
      Expr fits = *cut.digit < cut.end;
      cuts.push_back(cut);
      bool is_known = std::ranges::any_of(inside, [&](const Expr& e) { return structural_equal(e, fits); });
      if (!is_known) inside.push_back(fits);
    }
    if (cuts.empty() || !take_budget(loop)) return std::nullopt;
    Stmt rest = instantiate(rest_of_tiles(loop, cuts), {});
    // The index of a single tile at the end is known.
    const Expr& digit = *cuts[0].digit;
    auto end = as_int(cuts[0].end), count = as_int(digit.as<Binary>()->b);
    bool is_remainder = digit.as<Binary>()->op == BinaryOp::kFloorMod;
    if (inside.size() == 1 && is_remainder && end && count && *end + 1 == *count)
      rest = with_digit(rest, digit, int_imm(*end));
    return branched(s, *conjunction(inside), branch_inside(loop, with(true, cuts, loop.body), all), rest);
  }

  // Of a body whose conditions on digits hold, the same for what depends on the outermost of the fused loops.
  Stmt branch_inside(const For& loop, const Stmt& body, std::vector<Cut> cuts) {
    std::erase_if(cuts, [](const Cut& cut) { return cut.digit.has_value(); });
    const Part interior = choose(loop, cuts);
    if (cuts.empty() || !take_budget(loop)) return body;
    const Expr inside = loop.var >= interior.first && loop.var < interior.end;
    return make(IfThenElse{inside, with(true, cuts, body), instantiate(body, {})}, body.span());
  }

  // Returns the last tiles along the digits: whole ones where their columns are partial, or any number of rows is left.
  Stmt rest_of_tiles(const For& loop, const std::vector<Cut>& cuts) {
    const bool is_few_rows =
        std::ranges::all_of(cuts, [](const Cut& cut) { return cut.row.has_value() && as_int(cut.end); });
    if (is_few_rows) return tail_rows(loop.body, cuts);
    return with_facts([&] { assume_runs(facts_, loop); },
                      [&] {
                        const Stmt filled = fill_tile(loop.body, facts_);
                        return same_node(filled, loop.body) ? tail_rows(loop.body, cuts)
                                                            : beside_first_vectors(filled, loop, cuts);
                      });
  }

  // Returns the tile with a copy that has only the first of its vectors, for where the others are beyond the border.
  Stmt beside_first_vectors(const Stmt& filled, const For& loop, const std::vector<Cut>& cuts) {
    std::vector<Cut> masks;
    std::ranges::copy_if(cuts, std::back_inserter(masks), [](const Cut& cut) { return !cut.row; });
    std::unordered_set<const NodeHeader*> vectors;
    std::optional<Expr> second;  // the slack of the second vector's first lane
    bool fits = !masks.empty() && is_idle_without(masks, loop.body);
    walk(loop.body, [&](const For& inner) {
      if (inner.kind != ForKind::kUnrolled || !is_int(inner.min, 0)) return;
      for (const Cut& cut : masks) {
        const auto step = coefficient(cut.slack, inner.var, facts_);
        if (step == 0) continue;
        const Expr left = facts_.simplify(cut.best + *cut.digit * cut.scale + step.value_or(0));
        fits = fits && step && *step < 0 && (!second || structural_equal(*second, left));
        second = left;
        vectors.insert(inner.var.get());
      }
    });
    if (!fits || !second || !take_budget(loop)) return filled;
    const Stmt first = rewrite(loop.body, [&](const Ref<For>& inner) -> std::optional<Stmt> {
      if (!vectors.contains(inner->var.get())) return std::nullopt;
      return substitute(inner->body, {{inner->var.get(), int_imm(0)}});
    });
    return make(IfThenElse{*second < int_imm(0), fill_tile(instantiate(first, {}), facts_), filled}, filled.span());
  }

  // Runs the remaining rows of a tile one by one, which takes less code than the tile with a condition for each row.
  Stmt tail_rows(const Stmt& tile, const std::vector<Cut>& cuts) const {
    auto first = std::find_if(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.row.has_value(); });
    if (first == cuts.end()) return tile;
    std::vector<Cut> same;
    std::unordered_set<const NodeHeader*> rows;
    for (const Cut& cut : cuts) {
      bool is_same = cut.row && cut.scale == first->scale && structural_equal(*cut.digit, *first->digit) &&
                     structural_equal(cut.best, first->best);
      if (!is_same) continue;
      same.push_back(cut);
      rows.insert(cut.row->get());
    }
    if (!is_idle_without(same, tile)) return tile;
    Expr left = min(int_imm(-first->scale), first->best + 1 + *first->digit * first->scale);
    return row_by_row(with(true, same, tile), rows, facts_.simplify(left), facts_).value_or(tile);
  }

  // Removes iterations at both ends that do nothing.
  Stmt trim(const Stmt& s, const std::vector<Cut>& cuts) {
    const For& loop = *s.as<For>();
    auto first = as_int(loop.min), count = as_int(loop.extent);
    if (!first || !count) return whole(s);
    int64_t from = *first, to = *first + *count;
    for (const Cut& cut : cuts) {
      auto cut_first = as_int(cut.first), cut_end = as_int(cut.end);
      if (!cut_first || !cut_end) continue;
      from = std::max(from, *cut_first);
      to = std::min(to, *cut_end);
    }
    from = std::min(from, *first + *count);
    to = std::max(from, to);
    Expr low = int_imm(from), high = int_imm(to), end = int_imm(*first + *count);
    auto between = [&](const Expr& from, const Expr& to) { return simplify(part(s, {from, to}, loop.body), facts_); };
    if (from > *first && !does_nothing(between(loop.min, low))) low = loop.min;
    if (to < *first + *count && !does_nothing(between(high, end))) high = end;
    if (same_node(low, loop.min) && same_node(high, end)) return whole(s);
    Stmt trimmed = between(low, high);
    return trimmed.is<For>() ? whole(trimmed) : visit(trimmed);
  }

  // Emits the last tile, in which only some of the first `scale` inner iterations do anything, once for each number of
  // them:
  //   for t in full tiles: ...;   if there is a rest: if rest == 1: ... else: if rest == 2: ...
  std::optional<Stmt> exact_tails(const Stmt& s, const std::vector<Cut>& all) {
    const For& loop = *s.as<For>();
    std::vector<Cut> cuts;
    for (const Cut& cut : all) {
      if (!cut.is_tail() || cut.digit || -cut.scale > kMostExactTails || as_int(cut.end)) continue;
      if (cuts.empty() || (cut.scale == cuts[0].scale && structural_equal(cut.written_best, cuts[0].written_best)))
        cuts.push_back(cut);
    }
    if (cuts.empty() || !is_idle_without(cuts, loop.body)) return std::nullopt;
    int64_t tile = -cuts[0].scale;
    Expr rows = cuts[0].best + 1;  // rows of the whole loop; cuts[0].end is the number of full tiles
    bool parallel = loop.kind == ForKind::kParallel;
    Expr at = parallel ? Expr(loop.var) : cuts[0].end;
    Expr rest = parallel ? facts_.simplify(rows - at * tile) : facts_.simplify(floor_mod(rows, tile));
    Stmt tails = no_op();
    for (int64_t r = tile - 1; r >= 1; --r) {
      Replacements replaced;
      for (const Cut& cut : cuts) {
        // The part of the slack that inner loops contribute is at most 0.
        Expr inner = facts_.simplify(cut.slack - (cut.written_best - loop.var * tile));
        replaced.emplace(cut.condition.get(), inner + (r - 1) >= int_imm(0));
      }
      for (const Cut& cut : all) {
        // Other conditions that cease to hold depend on the rows left: var * tile is rows - r.
        if (cut.digit || cut.unit != 1 || cut.scale >= 0 || cut.scale % tile != 0) continue;
        Expr left = cut.slack - loop.var * cut.scale + (rows - r) * (cut.scale / tile);
        replaced.emplace(cut.condition.get(), facts_.simplify(left) >= int_imm(0));
      }
      Stmt body = instantiate(replace_exprs(loop.body, replaced), {{loop.var.get(), at}});
      std::optional<Stmt> others;
      if (!does_nothing(tails)) others = tails;
      tails = make(IfThenElse{equal(rest, int_imm(r)), body, others}, s.span());
    }
    Expr end = facts_.simplify(loop.min + loop.extent);
    if (parallel) {
      For copy = loop;
      copy.annotations = without_cut_annotations(loop);
      copy.body = make(IfThenElse{loop.var < cuts[0].end, with(true, cuts, loop.body), tails}, s.span());
      return whole(simplify(make(std::move(copy), s.span()), facts_));
    }
    Expr full = larger(loop.min, smaller(cuts[0].end, end));
    Stmt interior = part(s, {loop.min, full}, with(true, cuts, loop.body));
    if (loop.annotations.get_bool(annotation<"keep_whole">(), false))
      interior = edited<For>(interior, [&](For& copy) { copy.annotations.set(annotation<"keep_whole">(), true); });
    Stmt tail = make(IfThenElse{at >= loop.min && at < end, tails, std::nullopt}, s.span());
    return seq({recut(interior), recut(tail)}, s.span());
  }

  Analyzer facts_;
  int64_t budget_ = kMostNewStores;
  int symbolic_left_ = kMostSymbolicCuts;
  int depth_ = 0;  // the number of enclosing loops of the nest
};

}  // namespace

// Cuts a loop whose variable occurs in conditions that are linear in it into head, interior and tail, so that the
// largest part has none of these conditions. A parallel loop gets a branch between the interior and the rest; a loop
// over fused loops gets one between full tiles and tiles that are the last along any of them, and inside of it one for
// the outermost. Unrolled and vectorized loops are only trimmed. A loop annotated {"exact_tails": True} gets one copy
// of its last tile for each number of rows that the tile may have, if that tile is symbolic, is the only partial one,
// and is the last that does anything. {"keep_whole": True} keeps a loop of much work and cheap conditions as it is. The
// growth of the code is bounded.
PrimFuncRef partition_loops(const PrimFuncRef& function) {
  return with_body(function, Partitioner(facts_of_params(function)).visit(function->body));
}

}  // namespace relaxc
