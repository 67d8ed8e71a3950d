#include "tir/analysis/iter_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <span>

#include "ir/text/printer.h"
#include "support/checked_math.h"
#include "tir/analysis/conditions.h"

namespace relaxc {

namespace {

struct NoIterMap {
  Expr at;
  std::string why = "not a sum of digits of the loop variables (quotients and remainders by numbers, times numbers)";
};

// These compare extents; literals are compared without asking for a proof.
bool same_value(const Expr& a, const Expr& b, const Analyzer& facts) {
  auto x = as_int(a), y = as_int(b);
  return x && y ? *x == *y : structural_equal(a, b) || facts.can_prove_equal(a, b);
}
bool at_least(const Expr& a, const Expr& b, const Analyzer& facts) {
  auto x = as_int(a), y = as_int(b);
  return x && y ? *x >= *y : same_value(a, b, facts) || facts.can_prove(a >= b);
}

class IterMapFinder {
 public:
  IterMapFinder(const std::vector<LoopRange>& loops, const Analyzer& facts) : facts_(facts) {
    for (const auto& [var, range] : loops) {
      if (!is_int(range.min, 0))
        throw NoIterMap{var, fmt::format("a loop from {}, not from 0", print_plain(range.min))};
      loops_.emplace(var.get(), map_.sources.size());
      map_.sources.push_back({var, range.extent, {}});
    }
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
  std::optional<Expr> quotient(const Expr& a, const Expr& b) const {
    auto x = as_int(a), y = as_int(b);
    if (x && y) {
      auto exact = exact_div(*x, *y);
      return exact ? std::optional(int_imm(*exact, dtype_of(a))) : std::nullopt;
    }
    if (is_int(b, 1)) return a;
    Expr result = facts_.simplify(floor_div(a, b));
    return same_value(result * b, a, facts_) ? std::optional(result) : std::nullopt;
  }
  bool holds_loop(const Expr& e) const { return uses_var(e, loops_); }
  static Expr zero_like(const Expr& e) { return int_imm(0, dtype_of(e)); }

  IterSum parse(const Expr& e) {
    if (!holds_loop(e)) return {{}, e, e};
    if (e.is<Var>()) {
      size_t source = loops_.at(e.get());
      Expr one = int_imm(1, dtype_of(e));
      if (is_int(map_.sources[source].extent, 1)) return {{}, zero_like(e), e};  // it stays at 0
      return {{{source, one, map_.sources[source].extent, one, e}}, zero_like(e), e};
    }
    DType dtype = dtype_of(e);
    const Cast* cast = e.as<Cast>();
    if (cast && dtype.is_integral() && dtype_of(cast->value).is_integral()) {
      IterSum sum = parse(cast->value);
      for (IterDigit& d : sum.digits) {
        for (Expr* part : {&d.lower, &d.extent, &d.scale, &d.value}) *part = cast_to(*part, dtype);
      }
      sum.base = cast_to(sum.base, dtype);
      return sum;
    }
    const Binary* node = e.as<Binary>();
    if (!node) throw NoIterMap{e};
    switch (node->op) {
      case BinaryOp::kAdd:
        return sum_of(parse(node->a), parse(node->b));
      case BinaryOp::kSub:
        return sum_of(parse(node->a), negated(parse(node->b)));
      case BinaryOp::kMul: {
        bool left = holds_loop(node->a);
        const Expr& factor = left ? node->b : node->a;
        if (holds_loop(factor)) throw NoIterMap{e};
        IterSum sum = parse(left ? node->a : node->b);
        if (auto number = as_int(factor); number && *number < 0 && *number > INT64_MIN)
          return scaled(negated(std::move(sum)), int_imm(-*number, dtype));
        // A factor that may be 0 does no harm: injectivity needs only that digits do not overlap.
        if (!factor.is<Var>() && !is_non_negative(factor, facts_)) throw NoIterMap{e};
        return scaled(std::move(sum), factor);
      }
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
        if (holds_loop(node->b)) throw NoIterMap{e};
        return divide(e, node->op, parse(node->a), node->b);
      default:
        throw NoIterMap{e};
    }
  }

  IterSum scaled(IterSum sum, const Expr& factor) const {
    for (IterDigit& digit : sum.digits) digit.scale = facts_.simplify(digit.scale * factor);
    sum.base = sum.base * factor;
    return sum;
  }

  // A digit d in [0, extent) counts down as extent - 1 - d, so that its scale stays positive.
  IterSum negated(IterSum sum) const {
    sum.base = zero_like(sum.base) - sum.base;
    for (IterDigit& digit : sum.digits) {
      Expr last = facts_.simplify(digit.extent - 1);
      sum.base = facts_.simplify(sum.base - last * digit.scale);
      digit.value = last - digit.value;
      digit.reversed = !digit.reversed;
    }
    return sum;
  }

  IterSum sum_of(IterSum sum, const IterSum& other) const {
    sum.digits.insert(sum.digits.end(), other.digits.begin(), other.digits.end());
    sum.base = sum.base + other.base;
    std::ranges::stable_sort(sum.digits, [&](const IterDigit& a, const IterDigit& b) {
      auto x = as_int(a.scale), y = as_int(b.scale);
      if (x && y) return *x > *y;
      if (x || y) return !x;  // a constant scale is a tile in a loop of symbolic extent
      return !same_value(a.scale, b.scale, facts_) &&
             (facts_.can_prove(a.scale >= b.scale) || quotient(a.scale, b.scale));
    });
    return sum;
  }

  // Returns whether the digits count through 0, 1, ... without a gap: each scale is the product of the extents below.
  bool is_dense(const IterSum& sum) const {
    Expr expected = int_imm(1, dtype_of(sum.base));
    for (size_t i = sum.digits.size(); i-- > 0;) {
      if (!same_value(sum.digits[i].scale, expected, facts_)) return false;
      expected = expected * sum.digits[i].extent;
    }
    return true;
  }

  IterSum divide(const Expr& e, BinaryOp op, IterSum sum, const Expr& by) {
    if (!is_int(facts_.simplify(sum.base), 0)) {
      // A base that is a multiple of the divisor is divided separately.
      std::optional<Expr> part = quotient(facts_.simplify(sum.base), by);
      if (!part) throw NoIterMap{e};
      Expr base = op == BinaryOp::kFloorDiv ? *part : zero_like(e);
      sum.base = zero_like(e);
      IterSum result = divide(e, op, std::move(sum), by);
      result.base = result.base + base;
      return result;
    }
    // Digits whose scale is a multiple of the divisor form the quotient, the others the remainder (if less than it).
    IterSum high{{}, zero_like(e), e}, low = high;
    for (const IterDigit& digit : sum.digits) {
      auto scale = quotient(digit.scale, by);
      (scale ? high : low).digits.push_back(digit);
      if (scale) high.digits.back().scale = *scale;
    }
    bool is_clean = low.digits.empty() || at_least(by, extent_of(low), facts_);
    if (is_clean) return op == BinaryOp::kFloorDiv ? high : low;
    bool is_digit = sum.digits.size() == 1 && is_int(sum.digits[0].scale, 1) && !sum.digits[0].reversed;
    if (is_digit) return cut(e, op, sum.digits[0], by);
    if (!is_dense(sum)) throw NoIterMap{e};
    return cut(e, op, virtual_digit(sum), by);
  }

  // Divides a digit by a number and returns its upper or its lower part.
  IterSum cut(const Expr& e, BinaryOp op, const IterDigit& digit, const Expr& by) {
    IterDigit part = digit;
    if (op == BinaryOp::kFloorDiv) {
      part.lower = facts_.simplify(digit.lower * by);
      Expr rounded_up = floor_div(digit.extent + by - 1, by);
      part.extent = quotient(digit.extent, by).value_or(facts_.simplify(rounded_up));
    } else {
      part.extent = by;
      part.highest = false;
    }
    part.value = e;
    return {{part}, zero_like(e), e};
  }

  // Adds a dense sum as a source, so that later digits can refer to it.
  IterDigit virtual_digit(const IterSum& sum) {
    Expr value = zero_like(sum.base), one = int_imm(1, dtype_of(sum.base)), extent = one;
    for (const IterDigit& digit : sum.digits) {
      value = value + digit.value * digit.scale;
      extent = extent * digit.extent;
    }
    extent = facts_.simplify(extent);
    size_t source = loops_.size();
    while (source < map_.sources.size() && !structural_equal(map_.sources[source].value, value)) ++source;
    if (source == map_.sources.size()) map_.sources.push_back({value, extent, sum.digits});
    return {source, one, extent, one, value};
  }

  Expr extent_of(const IterSum& sum) const {
    Expr last = int_imm(0, dtype_of(sum.base));
    for (const IterDigit& digit : sum.digits) last = last + (digit.extent - 1) * digit.scale;
    return facts_.simplify(last + 1);
  }

  const Analyzer& facts_;
  IterMap map_;
  std::unordered_map<const NodeHeader*, size_t> loops_;  // maps loop variables to their sources, which come first
};

}  // namespace

bool counts_down(const IterMap& map, const std::vector<IterDigit>& digits) {
  return std::ranges::any_of(digits, [&](const IterDigit& digit) {
    return (digit.reversed && !is_int(digit.extent, 1)) || counts_down(map, map.sources[digit.source].parts);
  });
}

std::optional<IterMap> find_iter_map(const std::vector<Expr>& values, const std::vector<LoopRange>& loops,
                                     const Analyzer& facts, std::string* why) {
  try {
    return IterMapFinder(loops, facts).run(values);
  } catch (const NoIterMap& failure) {
    if (why) *why = fmt::format("{} is {}", print_plain(failure.at), failure.why);
    return std::nullopt;
  }
}

namespace {

// Returns whether a condition keeps the sum of these digits below the limit, as for a split's tail in a larger tile.
bool stays_below(std::span<const IterDigit> digits, const Expr& limit, const std::vector<Expr>& conditions,
                 const Analyzer& facts) {
  Expr sum = int_imm(0, dtype_of(limit));
  for (const IterDigit& digit : digits) sum = sum + digit.value * digit.scale;
  return std::ranges::any_of(conditions, [&](const Expr& condition) {
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

// Returns whether the digits together determine the source's value.
bool are_all_digits(const IterSource& source, std::vector<const IterDigit*> digits, const Analyzer& facts) {
  Expr expected = int_imm(1, dtype_of(source.value));
  while (!digits.empty()) {
    auto next = std::ranges::find_if(digits, [&](const IterDigit* d) { return same_value(d->lower, expected, facts); });
    if (next == digits.end()) return false;
    const IterDigit* digit = *next;
    expected = digit->highest ? source.extent : facts.simplify(digit->lower * digit->extent);
    // The same digit used twice does not hide a value.
    std::erase_if(digits, [&](const IterDigit* d) {
      return same_value(d->lower, digit->lower, facts) && same_value(d->extent, digit->extent, facts);
    });
  }
  return at_least(expected, source.extent, facts);
}

// Returns a source whose value the sums do not determine, or null.
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

// The values (number // lower) % extent of one number, which all loops count together; extent 0: all of the quotient.
struct NumberPart {
  int64_t lower, extent;
};

// Returns the part of the number that a digit is, given those of the sources.
std::optional<NumberPart> part_of(const IterDigit& digit, const std::vector<std::optional<NumberPart>>& sources) {
  const std::optional<NumberPart>& source = sources[digit.source];
  auto lower = as_int(digit.lower), extent = as_int(digit.extent);
  if (!source || !lower || *lower < 1 || digit.reversed) return std::nullopt;
  if (digit.highest) extent = source->extent % *lower == 0 ? std::optional(source->extent / *lower) : std::nullopt;
  auto product = extent ? checked_mul(*lower, *extent) : std::nullopt, from = checked_mul(source->lower, *lower);
  if (!product || !from || (*product == 0 ? source->extent != 0 : source->extent % *product != 0)) return std::nullopt;
  return NumberPart{*from, *extent};
}

// Writes all digits as those of one number, whose digits the loops are, outermost first. Simplification hides that
// (128 * a + b) // 49 is ((128 * a + b) * 16 + c) // 784, and that 64 * a + (16 * b + c) // 28 is a quotient, too.
std::optional<IterMap> in_one_number(IterMap map, size_t num_loops) {
  if (num_loops == 0) return std::nullopt;
  std::vector<std::optional<NumberPart>> parts(map.sources.size());
  DType dtype = dtype_of(map.sources[0].value);
  IterSource number{int_imm(0, dtype), int_imm(1, dtype), {}};
  for (int64_t lower = 1; size_t s : std::views::iota(size_t{0}, num_loops) | std::views::reverse) {
    const IterSource& loop = map.sources[s];
    auto extent = as_int(loop.extent);
    auto next = extent && *extent > 0 ? checked_mul(lower, *extent) : std::nullopt;
    if (dtype_of(loop.value) != dtype || (!next && s > 0)) return std::nullopt;
    parts[s] = NumberPart{lower, next && s > 0 ? *extent : 0};
    Expr scale = int_imm(lower, dtype), one = int_imm(1, dtype);
    number.value = loop.value * scale + number.value;
    number.extent = loop.extent * scale;
    number.parts.insert(number.parts.begin(), {s, one, loop.extent, scale, loop.value});
    lower = next.value_or(0);
  }
  for (size_t s = num_loops; s < map.sources.size(); ++s) {
    std::optional<NumberPart> whole;
    for (const IterDigit& digit : map.sources[s].parts | std::views::reverse) {
      if (is_int(digit.extent, 1)) continue;
      std::optional<NumberPart> part = part_of(digit, parts);
      auto end = whole ? checked_mul(whole->lower, whole->extent) : std::nullopt;
      if (!part || (whole && (whole->extent == 0 || end != part->lower))) return std::nullopt;
      auto extent = whole ? checked_mul(whole->extent, part->extent) : std::optional(part->extent);
      if (!extent) return std::nullopt;
      whole = NumberPart{whole ? whole->lower : part->lower, *extent};
    }
    parts[s] = whole;
  }
  size_t source = map.sources.size();
  for (IterSum& sum : map.sums) {
    for (IterDigit& digit : sum.digits) {
      if (is_int(digit.extent, 1)) continue;
      std::optional<NumberPart> part = part_of(digit, parts);
      if (!part) return std::nullopt;
      digit.source = source;
      digit.lower = int_imm(part->lower, dtype_of(digit.lower));
      digit.highest = part->extent == 0;
    }
  }
  map.sources.push_back(std::move(number));
  return map;
}

}  // namespace

std::optional<IterMap> find_injective_map(const std::vector<Expr>& values, const std::vector<LoopRange>& loops,
                                          const std::vector<Expr>& conditions, const Analyzer& facts,
                                          std::string* why) {
  std::optional<IterMap> map = find_iter_map(values, loops, facts, why);
  if (!map) return std::nullopt;
  for (const IterSum& sum : map->sums) {
    const IterDigit* digit = ambiguous_digit(sum, conditions, facts);
    if (!digit) continue;
    if (why) *why = fmt::format("different iterations of '{}' give the same value", print_plain(digit->value));
    return std::nullopt;
  }
  const IterSource* source = incomplete_source(*map, facts);
  if (!source) return map;
  std::optional<IterMap> joined = in_one_number(*map, loops.size());
  if (joined && !incomplete_source(*joined, facts)) return joined;
  if (why) *why = fmt::format("iterations of '{}' repeat the same axis values", print_plain(source->value));
  return std::nullopt;
}

}  // namespace relaxc
