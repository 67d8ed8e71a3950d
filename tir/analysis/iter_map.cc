#include "tir/analysis/iter_map.h"

#include <algorithm>
#include <span>

#include "ir/text/printer.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

struct NoIterMap {
  Expr at;
  std::string why = "no sum of digits of the loop variables (their quotients and remainders by numbers, times numbers)";
};

class IterMapFinder {
 public:
  IterMapFinder(const std::vector<LoopRange>& loops, const Analyzer& facts) : facts_(facts) {
    for (const auto& [var, range] : loops) {
      if (!is_int(range.min, 0)) throw NoIterMap{var, fmt::format("a loop from {}, not from 0", print_expr(range.min))};
      map_.sources.push_back({var, range.extent, {}});
    }
    num_loops_ = loops.size();
  }

  IterMap run(const std::vector<Expr>& values) {
    for (const Expr& value : values) {
      IterSum sum = parse(value);
      sum.extent = extent_of(sum);
      map_.sums.push_back(std::move(sum));
    }
    return std::move(map_);
  }

 private:
  bool same(const Expr& a, const Expr& b) const {
    auto x = as_int(a), y = as_int(b);
    if (x && y) return *x == *y;
    return structural_equal(a, b) || facts_.can_prove_equal(a, b);
  }
  bool at_least(const Expr& a, const Expr& b) const {
    auto x = as_int(a), y = as_int(b);
    if (x && y) return *x >= *y;
    return facts_.can_prove(a >= b);
  }
  std::optional<Expr> quotient(const Expr& a, const Expr& b) const {
    auto x = as_int(a), y = as_int(b);
    if (x && y) {
      auto exact = exact_div(*x, *y);
      return exact ? std::optional(int_imm(*exact, dtype_of(a))) : std::nullopt;
    }
    if (is_int(b, 1)) return a;
    Expr result = facts_.simplify(floor_div(a, b));
    if (same(result * b, a)) return result;
    return std::nullopt;
  }
  bool holds_loop(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Ref<Var>& var) {
      for (size_t i = 0; i < num_loops_; ++i) found = found || same_node(var, map_.sources[i].value);
    });
    return found;
  }
  static Expr zero_like(const Expr& e) { return int_imm(0, dtype_of(e)); }

  IterSum parse(const Expr& e) {
    if (!holds_loop(e)) return {{}, e, e};
    if (e.is<Var>()) {
      for (size_t i = 0; i < num_loops_; ++i) {
        if (!same_node(e, map_.sources[i].value)) continue;
        Expr one = int_imm(1, dtype_of(e));
        return {{{i, one, map_.sources[i].extent, one, e}}, zero_like(e), e};
      }
    }
    if (const Cast* cast = e.as<Cast>()) {
      if (dtype_of(e).is_integral() && dtype_of(cast->value).is_integral()) {
        IterSum sum = parse(cast->value);
        DType dtype = dtype_of(e);
        for (IterDigit& d : sum.digits)
          d = {d.source,
               cast_to(d.lower, dtype),
               cast_to(d.extent, dtype),
               cast_to(d.scale, dtype),
               cast_to(d.value, dtype),
               d.highest};
        sum.base = cast_to(sum.base, dtype);
        return sum;
      }
    }
    const Binary* node = e.as<Binary>();
    if (!node) throw NoIterMap{e};
    switch (node->op) {
      case BinaryOp::kAdd: {
        IterSum a = parse(node->a), b = parse(node->b);
        for (IterDigit& digit : b.digits) a.digits.push_back(std::move(digit));
        a.base = a.base + b.base;
        sort(a);
        return a;
      }
      case BinaryOp::kSub: {
        if (holds_loop(node->b)) throw NoIterMap{e};
        IterSum a = parse(node->a);
        a.base = a.base - node->b;
        return a;
      }
      case BinaryOp::kMul: {
        bool left = holds_loop(node->a);
        const Expr& factor = left ? node->b : node->a;
        if (holds_loop(factor)) throw NoIterMap{e};
        // A factor that may be 0 does no harm: is_injective needs digits that do not overlap, and no more.
        if (!facts_.can_prove(factor >= int_imm(0, dtype_of(factor))) && !factor.is<Var>()) throw NoIterMap{e};
        IterSum sum = parse(left ? node->a : node->b);
        for (IterDigit& digit : sum.digits) digit.scale = facts_.simplify(digit.scale * factor);
        sum.base = sum.base * factor;
        return sum;
      }
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
        if (holds_loop(node->b)) throw NoIterMap{e};
        return divide(e, node->op, parse(node->a), node->b);
      default:
        throw NoIterMap{e};
    }
  }

  void sort(IterSum& sum) const {
    std::stable_sort(sum.digits.begin(), sum.digits.end(), [&](const IterDigit& a, const IterDigit& b) {
      auto x = as_int(a.scale), y = as_int(b.scale);
      if (x && y) return *x > *y;
      if (x || y) return !x;  // a constant scale is a tile in a loop of symbolic extent
      return !same(a.scale, b.scale) && (at_least(a.scale, b.scale) || quotient(a.scale, b.scale));
    });
  }

  // The digits count through 0, 1, ... without a gap: each scale is the product of the extents below.
  bool is_dense(const IterSum& sum) const {
    Expr expected = int_imm(1, dtype_of(sum.base));
    for (size_t i = sum.digits.size(); i-- > 0;) {
      if (!same(sum.digits[i].scale, expected)) return false;
      expected = expected * sum.digits[i].extent;
    }
    return true;
  }

  IterSum divide(const Expr& e, BinaryOp op, IterSum sum, const Expr& by) {
    if (!is_int(facts_.simplify(sum.base), 0)) {
      // A base that the divisor divides goes through.
      std::optional<Expr> part = quotient(facts_.simplify(sum.base), by);
      if (!part) throw NoIterMap{e};
      Expr base = op == BinaryOp::kFloorDiv ? *part : zero_like(e);
      sum.base = zero_like(e);
      IterSum result = divide(e, op, std::move(sum), by);
      result.base = result.base + base;
      return result;
    }
    // Digits whose scale the divisor divides are the quotient's, those that stay below it the remainder's.
    IterSum high{{}, zero_like(e), e}, low{{}, zero_like(e), e};
    bool clean = true;
    for (IterDigit& digit : sum.digits) {
      if (auto scale = quotient(digit.scale, by)) {
        IterDigit moved = digit;
        moved.scale = *scale;
        high.digits.push_back(moved);
      } else {
        low.digits.push_back(digit);
      }
    }
    clean = low.digits.empty() || at_least(by, extent_of(low));
    if (clean) return op == BinaryOp::kFloorDiv ? high : low;
    if (sum.digits.size() == 1 && is_int(sum.digits[0].scale, 1)) return cut(e, op, sum.digits[0], by);
    if (!is_dense(sum)) throw NoIterMap{e};
    return cut(e, op, virtual_digit(sum), by);
  }

  // Divides a digit by a number and returns its upper or its lower part.
  IterSum cut(const Expr& e, BinaryOp op, const IterDigit& digit, const Expr& by) {
    IterDigit part = digit;
    if (op == BinaryOp::kFloorDiv) {
      part.lower = facts_.simplify(digit.lower * by);
      std::optional<Expr> exact = quotient(digit.extent, by);
      part.extent = exact ? *exact : facts_.simplify(floor_div(digit.extent + by - int_imm(1, dtype_of(by)), by));
    } else {
      part.extent = by;
      part.highest = false;
    }
    part.value = e;
    return {{part}, zero_like(e), e};
  }

  // Makes a source of a dense sum, so that later digits can refer to it.
  IterDigit virtual_digit(const IterSum& sum) {
    Expr value = zero_like(sum.base), extent = int_imm(1, dtype_of(sum.base));
    for (const IterDigit& digit : sum.digits) {
      value = value + digit.value * digit.scale;
      extent = extent * digit.extent;
    }
    extent = facts_.simplify(extent);
    Expr one = int_imm(1, dtype_of(sum.base));
    for (size_t i = num_loops_; i < map_.sources.size(); ++i) {
      if (structural_equal(map_.sources[i].value, value)) return {i, one, extent, one, value};
    }
    map_.sources.push_back({value, extent, sum.digits});
    return {map_.sources.size() - 1, one, extent, one, value};
  }

  Expr extent_of(const IterSum& sum) const {
    Expr last = int_imm(0, dtype_of(sum.base));
    for (const IterDigit& digit : sum.digits)
      last = last + (digit.extent - int_imm(1, dtype_of(digit.extent))) * digit.scale;
    return facts_.simplify(last + int_imm(1, dtype_of(last)));
  }

  const Analyzer& facts_;
  IterMap map_;
  size_t num_loops_ = 0;
};

}  // namespace

std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const std::vector<LoopRange>& loops,
                                     const Analyzer& facts, std::string* why) {
  try {
    return IterMapFinder(loops, facts).run(values);
  } catch (const NoIterMap& failure) {
    if (why) *why = fmt::format("{} is {}", print_expr(failure.at), failure.why);
    return std::nullopt;
  }
}

namespace {

// These compare extents; literals are compared without asking for a proof.
bool same_value(const Expr& a, const Expr& b, const Analyzer& facts) {
  auto x = as_int(a), y = as_int(b);
  if (x && y) return *x == *y;
  return structural_equal(a, b) || facts.can_prove_equal(a, b);
}
bool at_least(const Expr& a, const Expr& b, const Analyzer& facts) {
  auto x = as_int(a), y = as_int(b);
  return x && y ? *x >= *y : same_value(a, b, facts) || facts.can_prove(a >= b);
}

// Returns whether a condition keeps the sum of these digits below the limit, as for the tail of a split inside of a
// larger tile.
bool stays_below(std::span<const IterDigit> digits, const Expr& limit, const std::vector<Expr>& conditions,
                 const Analyzer& facts) {
  Expr sum = int_imm(0, dtype_of(limit));
  for (const IterDigit& digit : digits) sum = sum + digit.value * digit.scale;
  return std::any_of(conditions.begin(), conditions.end(), [&](const Expr& condition) {
    const Binary* compare = condition.as<Binary>();
    return compare && compare->op == BinaryOp::kLT && dtype_of(compare->a) == dtype_of(sum) &&
           facts.can_prove_equal(compare->b - compare->a, limit - sum);
  });
}

// Returns a digit of the sum with which two combinations of digits may give the same value, or null.
const IterDigit* ambiguous_digit(const IterSum& sum, const std::vector<Expr>& conditions, const Analyzer& facts) {
  Expr reach = int_imm(1, dtype_of(sum.base));  // the digits so far span [0, reach)
  for (size_t i = sum.digits.size(); i-- > 0;) {
    const IterDigit& digit = sum.digits[i];
    if (is_int(digit.extent, 1)) continue;
    auto lower = std::span(sum.digits).subspan(i + 1);
    if (!at_least(digit.scale, reach, facts) && !stays_below(lower, digit.scale, conditions, facts)) return &digit;
    reach = facts.simplify(digit.scale * digit.extent);
  }
  return nullptr;
}

// Returns whether the digits are all of the source's.
bool are_all_digits(const IterSource& source, std::vector<const IterDigit*> digits, const Analyzer& facts) {
  Expr expected = int_imm(1, dtype_of(source.value));
  while (!digits.empty()) {
    auto next = std::find_if(digits.begin(), digits.end(),
                             [&](const IterDigit* d) { return same_value(d->lower, expected, facts); });
    if (next == digits.end()) return false;
    const IterDigit* digit = *next;
    digits.erase(next);
    expected = digit->highest ? source.extent : facts.simplify(digit->lower * digit->extent);
    // The same digit used twice does not hide a value.
    std::erase_if(digits, [&](const IterDigit* d) {
      return same_value(d->lower, digit->lower, facts) && same_value(d->extent, digit->extent, facts);
    });
  }
  return at_least(expected, source.extent, facts);
}

// Returns a source of which digits are missing, or null.
const IterSource* incomplete_source(const IterMap& map, const Analyzer& facts) {
  std::vector<std::vector<const IterDigit*>> used(map.sources.size());
  for (const IterSum& sum : map.sums) {
    for (const IterDigit& digit : sum.digits) used[digit.source].push_back(&digit);
  }
  for (size_t s = map.sources.size(); s-- > 0;) {
    const IterSource& source = map.sources[s];
    if (!source.parts.empty() && used[s].empty()) continue;
    for (const IterDigit& part : source.parts) used[part.source].push_back(&part);
    if (!are_all_digits(source, used[s], facts)) return &source;
  }
  return nullptr;
}

}  // namespace

bool is_injective(const IterMap& map, const std::vector<Expr>& conditions, const Analyzer& facts, std::string* why) {
  for (const IterSum& sum : map.sums) {
    const IterDigit* digit = ambiguous_digit(sum, conditions, facts);
    if (!digit) continue;
    if (why) *why = fmt::format("different iterations of '{}' give the same value", print_expr(digit->value));
    return false;
  }
  const IterSource* source = incomplete_source(map, facts);
  if (source && why)
    *why = fmt::format("iterations of '{}' repeat the same axis values",
                       source->value.is<Var>() ? source->value.as<Var>()->name : print_expr(source->value));
  return !source;
}

}  // namespace relaxc
