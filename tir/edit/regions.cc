#include "tir/edit/regions.h"

#include <algorithm>

#include "ir/op_names.h"
#include "tir/edit/blocks.h"

namespace relaxc::scheduling {

RunningVars running(const Nodes& loops) {
  RunningVars result;
  for (const TreeNode* loop : loops) result.emplace(loop->var().get(), loop->range());
  return result;
}

void widen(std::vector<Range>& region, const std::vector<Range>& more, const Buffer& buffer, const Analyzer& facts) {
  for (size_t d = 0; d < region.size(); ++d) region[d] = hull(region[d], more[d], buffer_type(buffer).shape[d], facts);
}

std::vector<Range> region_at(const TreeNode* block, const BufferRegion& region, const TreeNode* below) {
  VarMap axes = values_of_axes(block);
  RunningVars vars = running(loops_above(block, below));
  const Analyzer& facts = block->tree->facts;
  std::vector<Range> result;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Expr& dim = buffer_type(region.buffer).shape[d];
    Range range = substitute(region.ranges[d], axes);
    result.push_back(range_over(range, dim, vars, facts));
    // Under a predicate the loops go beyond the axes' domains. Where the block runs, a single element is inside.
    if (!block->block->predicate || is_int(result.back().extent, 1)) continue;
    result.back() = below_conditions(result.back(), range, conjuncts(block->block->predicate), vars, facts);
    RunningVars domains = vars;  // which a block may name beside its axes
    for (const IterVar& axis : block->axes()) domains.emplace(axis.var.get(), axis.domain);
    Range most = range_over(region.ranges[d], dim, domains, facts);
    if (!covers(most, result.back(), facts)) result.back() = intersection(most, result.back(), facts);
  }
  return result;
}

std::optional<std::vector<Range>> region_at(const Nodes& blocks, const Buffer& buffer, AccessKind kind,
                                            const TreeNode* below) {
  std::optional<std::vector<Range>> result;
  for (const TreeNode* block : blocks) {
    for (const BufferRegion& region : kind == AccessKind::kRead ? block->block->reads : block->block->writes) {
      if (!same_node(region.buffer, buffer)) continue;
      std::vector<Range> ranges = region_at(block, region, below);
      if (result) widen(*result, ranges, buffer, block->tree->facts);
      if (!result) result = std::move(ranges);
    }
  }
  return result;
}

namespace {

using Box = std::vector<Range>;
using Counter = LoopRange;

bool mentions_counter(const Expr& e, const std::vector<Counter>& counters) {
  return std::ranges::any_of(counters, [&](const Counter& counter) { return uses_var(e, counter.var); });
}

// Returns whether the digits that values have of a source run through all combinations.
bool run_freely(const IterSource& source, std::vector<const IterDigit*> digits, const Analyzer& facts) {
  auto end = [](const IterDigit* digit) { return digit->lower * digit->extent; };
  if (digits.empty()) return true;
  if (digits.size() == 1) {
    const IterDigit& digit = *digits[0];
    Expr one = int_imm(1, dtype_of(source.extent));
    Expr steps = floor_div(source.extent + digit.lower - one, digit.lower);
    return facts.can_prove_equal(digit.extent, steps) || facts.can_prove(source.extent >= end(&digit));
  }
  std::ranges::sort(
      digits, [&](const IterDigit* a, const IterDigit* b) { return a != b && facts.can_prove(a->lower < b->lower); });
  for (size_t i = 0; i + 1 < digits.size(); ++i) {
    if (!facts.can_prove(end(digits[i]) <= digits[i + 1]->lower)) return false;
  }
  return is_int(facts.simplify(floor_mod(source.extent, end(digits.back()))), 0);
}

// Returns the part of the range before an end.
Range cut(const Range& range, const Expr& end, const Analyzer& facts) {
  DType dtype = dtype_of(range.min);
  Expr stop = range.min + cast_to(range.extent, dtype), limit = cast_to(end, dtype);
  if (facts.can_prove(stop <= limit)) return range;
  return {range.min, facts.simplify((facts.can_prove(limit <= stop) ? limit : min(stop, limit)) - range.min)};
}

// Returns whether the counters that move the place, and the place's extents, depend on no counter.
bool ranges_stand_still(const Box& at, const std::vector<Counter>& counters) {
  for (const Counter& counter : counters) {
    bool used = std::ranges::any_of(at, [&](const Range& range) { return uses_var(range.min, counter.var); });
    if (used && (mentions_counter(counter.range.min, counters) || mentions_counter(counter.range.extent, counters)))
      return false;
  }
  return std::ranges::none_of(at, [&](const Range& range) { return mentions_counter(range.extent, counters); });
}

// Returns what the position adds to the counter, if that is the same for all counters.
std::optional<Expr> offset_from(const Counter& counter, const Expr& position, const std::vector<Counter>& counters,
                                const Analyzer& facts) {
  if (same_node(position, counter.var)) return int_imm(0, dtype_of(position));
  if (!uses_var(position, counter.var)) return std::nullopt;
  Expr offset = facts.simplify(position - cast_to(counter.var, dtype_of(position)));
  return mentions_counter(offset, counters) ? std::nullopt : std::optional(offset);
}

// Returns the box when each position is a separate counter, perhaps moved, or is loop-invariant.
std::optional<Box> filled_by_counters(const Box& at, const std::vector<Counter>& counters, const Analyzer& facts) {
  Box result;
  std::unordered_set<const NodeHeader*> seen;
  for (const Range& range : at) {
    if (!mentions_counter(range.min, counters)) {
      result.push_back(range);
      continue;
    }
    std::optional<Expr> offset;
    auto counter = std::ranges::find_if(counters, [&](const Counter& each) {
      offset = offset_from(each, range.min, counters, facts);
      return offset.has_value();
    });
    if (counter == counters.end() || !seen.insert(counter->var.get()).second) return std::nullopt;
    DType dtype = dtype_of(range.min);
    Expr count = cast_to(counter->range.extent, dtype) + cast_to(range.extent, dtype) - 1;
    Expr begin = cast_to(counter->range.min, dtype);
    result.push_back({is_int(*offset, 0) ? begin : begin + *offset, facts.simplify(count)});
  }
  return result;
}

// Positions as digits of new variables that count from 0, one for each counter; `back` maps these to the counters.
struct Digits {
  IterMap map;
  Analyzer facts;
  VarMap back;
};
std::optional<Digits> digits_of(const Box& at, const std::vector<Counter>& counters, const Analyzer& known) {
  Analyzer facts = known;
  VarMap from_zero, back;
  std::vector<LoopRange> loops;
  for (const Counter& counter : counters) {
    DType dtype = dtype_of(counter.var);
    VarRef var = make_var(counter.var->name, counter.var.type());
    Expr zero = int_imm(0, dtype), extent = cast_to(counter.range.extent, dtype);
    facts.bind(var, zero, extent);
    from_zero.emplace(counter.var.get(), var + cast_to(counter.range.min, dtype));
    back.emplace(var.get(), counter.var - cast_to(counter.range.min, dtype));
    loops.push_back({var, {zero, extent}});
  }
  auto values = map_each(at, [&](const Range& range) { return facts.simplify(substitute(range.min, from_zero)); });
  std::optional<IterMap> map = find_iter_map(values, loops, facts);
  if (!map) return std::nullopt;
  return Digits{std::move(*map), std::move(facts), std::move(back)};
}

bool all_run_freely(const IterMap& map, const Analyzer& facts) {
  std::vector<std::vector<const IterDigit*>> used(map.sources.size());
  for (const IterSum& sum : map.sums) {
    for (const IterDigit& digit : sum.digits) {
      if (!is_int(digit.extent, 1)) used[digit.source].push_back(&digit);
    }
  }
  for (size_t s = map.sources.size(); s-- > 0;) {
    if (!run_freely(map.sources[s], used[s], facts)) return false;
    if (used[s].empty()) continue;
    for (const IterDigit& part : map.sources[s].parts) used[part.source].push_back(&part);
  }
  return true;
}

// Returns the range that [position, position + extent) fills while the digits of the position run.
std::optional<Range> filled_by_digits(const IterSum& sum, const Expr& extent, const Digits& digits,
                                      const std::vector<Counter>& counters, std::vector<Expr>& conditions) {
  const Analyzer& facts = digits.facts;
  DType dtype = dtype_of(sum.base);
  Expr base = facts.simplify(sum.base), reach = cast_to(extent, dtype), lower = int_imm(0, dtype);
  for (size_t i = sum.digits.size(); i-- > 0;) {
    const IterDigit& digit = sum.digits[i];
    if (is_int(digit.extent, 1)) continue;
    if (!facts.can_prove(cast_to(digit.scale, dtype) <= reach)) return std::nullopt;
    Expr scale = cast_to(digit.scale, dtype);
    reach = facts.simplify((cast_to(digit.extent, dtype) - 1) * scale + reach);
    lower = lower + cast_to(substitute(digit.value, digits.back), dtype) * scale;
    if (!is_int(extent, 1)) continue;
    std::erase_if(conditions, [&](const Expr& condition) {
      const Binary* compare = condition.as<Binary>();
      if (!compare || compare->op != BinaryOp::kLT || dtype_of(compare->a) != dtype) return false;
      Expr limit = facts.simplify(compare->b - compare->a + lower);
      if (mentions_counter(limit, counters)) return false;
      // The end is written as base + limit, the form in which users of regions look for it.
      reach = cast_to(cut({base, reach}, base + limit, facts).extent, dtype);
      return true;
    });
  }
  return Range{base, reach};
}

// Returns the box that [position, position + extent) in each dim fills while the counters run. Conditions that only
// keep the lower digits of a position below a limit are taken into account, and removed.
std::optional<Box> filled(const Box& at, const std::vector<Counter>& counters, const Analyzer& known,
                          std::vector<Expr>& conditions) {
  if (!ranges_stand_still(at, counters)) return std::nullopt;
  if (conditions.empty()) {
    if (auto box = filled_by_counters(at, counters, known)) return box;
  }
  std::optional<Digits> digits = digits_of(at, counters, known);
  if (!digits || !all_run_freely(digits->map, digits->facts)) return std::nullopt;
  Box result;
  for (size_t d = 0; d < at.size(); ++d) {
    auto range = filled_by_digits(digits->map.sums[d], at[d].extent, *digits, counters, conditions);
    if (!range) return std::nullopt;
    result.push_back(*range);
  }
  return result;
}

// Returns the box of the values, in all combinations, of the axes on which the place depends. Conditions may leave out
// values outside of the domains, or from some value on; with any other condition the box is unknown.
std::optional<Box> axis_values(const TreeNode* block, const std::vector<Counter>& loops, const Box& place) {
  const Analyzer& facts = block->tree->facts;
  const std::vector<IterVar>& axes = block->axes();
  Box points;
  for (const IterVar& axis : axes) {
    bool matters = !block->is_leaf_block() || std::ranges::any_of(place, [&](const Range& range) {
      return uses_var(range.min, axis.var) || uses_var(range.extent, axis.var);
    });
    points.push_back(matters ? Range{axis.value, int_imm(1, dtype_of(axis.var))} : axis.domain);
  }
  std::vector<Expr> conditions = conjuncts(block->block->predicate);
  std::optional<Box> box = filled(points, loops, facts, conditions);
  if (!box || !block->block->predicate) return box;
  if (!conditions.empty()) {
    Analyzer inside = facts;  // of the domains
    for (const IterVar& axis : axes) {
      inside.assume(axis.value >= axis.domain.min);
      inside.assume(axis.value < end_of(axis.domain));
    }
    auto holds = [&](const Expr& condition) { return inside.can_prove(condition); };
    if (!std::ranges::all_of(conditions, holds)) return std::nullopt;
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    const Range& domain = axes[a].domain;
    Range& side = (*box)[a];
    side = cut(side, end_of(domain), facts);
    if (facts.can_prove(side.min >= domain.min)) continue;
    Expr first = facts.can_prove(side.min <= domain.min) ? domain.min : max(side.min, domain.min);
    side = {first, facts.simplify(end_of(side) - first)};
  }
  return box;
}

// Returns the union of the boxes if it is a box.
std::optional<Box> joined(const Box& a, const Box& b, const Analyzer& facts) {
  std::optional<size_t> differs;
  for (size_t d = 0; d < a.size(); ++d) {
    if (covers(a[d], b[d], facts) && covers(b[d], a[d], facts)) continue;
    if (differs) return std::nullopt;
    differs = d;
  }
  if (!differs) return a;
  const Range &x = a[*differs], &y = b[*differs];
  DType dtype = dtype_of(x.min);
  Expr x_end = x.min + cast_to(x.extent, dtype), y_min = cast_to(y.min, dtype),
       y_end = y_min + cast_to(y.extent, dtype);
  if (!facts.can_prove(y_min <= x_end) || !facts.can_prove(x.min <= y_end)) return std::nullopt;
  Box result = a;
  result[*differs] = hull(x, y, x.extent, facts);
  return result;
}

bool is_choice(const NodeRef& node) {
  const Binary* binary = node.as<Binary>();
  return binary && (binary->op == BinaryOp::kMin || binary->op == BinaryOp::kMax);
}

// Returns the first min or max in the expression that has no other one in it.
std::optional<Ref<Binary>> find_choice(const Expr& e) {
  std::optional<Ref<Binary>> result;
  walk(e, [&](const Ref<Binary>& node) {
    bool is_inner = is_choice(node) && !any_node(node->a, is_choice) && !any_node(node->b, is_choice);
    if (!result && is_inner) result = node;
  });
  return result;
}

// Proves a condition over ends of parts, which are minima and maxima, by taking each of them for one and for the other
// of its operands.
bool can_prove_by_cases(const Expr& condition, const Analyzer& facts, int most_cases = 6) {
  if (facts.can_prove(condition)) return true;
  std::optional<Ref<Binary>> choice = find_choice(condition);
  if (!choice || most_cases == 0) return false;
  const Expr &a = (*choice)->a, &b = (*choice)->b;
  const bool is_min = (*choice)->op == BinaryOp::kMin;
  auto holds = [&](const Expr& fact, const Expr& chosen, const Expr& opposite) {
    if (facts.can_prove(opposite)) return true;
    Analyzer more = facts;
    more.assume(fact);
    Expr simpler = rewrite(condition, [&](const Ref<Binary>& node) -> std::optional<Expr> {
      return structural_equal(node, *choice) ? std::optional(chosen) : std::nullopt;
    });
    return can_prove_by_cases(simpler, more, most_cases - 1);
  };
  return holds(a <= b, is_min ? a : b, b < a) && holds(b <= a, is_min ? b : a, a < b);
}

class Writes {
  static constexpr size_t kMostBoxes = 64;  // that wait for one between them

 public:
  Writes(const Buffer& buffer, const Analyzer& facts) : buffer_(buffer), facts_(facts) {}

  // Adds what the block writes while the counters run, inside of outer blocks' axes.
  bool add(const TreeNode* block, const TreeNode* below) {
    const BufferRegion* declared = write_of(block, buffer_);
    if (!declared) return true;
    std::optional<Box> values = axis_values(block, ranges_of(loops_above(block, below)), declared->ranges);
    if (!values) return false;
    std::vector<Counter> axes;
    for (size_t a = 0; a < values->size(); ++a) axes.push_back({block->axes()[a].var, (*values)[a]});
    // A block with windows calls an instruction: its declared region says what it writes.
    if (!block->block->match_buffers.empty()) return add(declared->ranges, axes);
    if (block->is_leaf_block()) return add_stores(block->block->body, axes);
    std::optional<Box> inner = written_at(blocks_inside(block), buffer_, nullptr);
    return inner && add(*inner, axes);
  }
  // Returns the union of what was added, if it is known to be a box.
  std::optional<Box> box() {
    for (size_t i = 0; i < boxes_.size();) i = merge_with_others(i) ? 0 : i + 1;
    return boxes_.size() == 1 ? std::optional(boxes_[0]) : std::nullopt;
  }

  // Returns whether the union of what was added is known to contain the needed region.
  bool contain(const Box& needed) {
    std::optional<Box> all = box();
    return all ? covers_dims(*all, needed, {}) : parts_contain(needed);
  }

 private:
  bool covers_dims(const Box& outer, const Box& inner, std::optional<size_t> except) const {
    for (size_t d = 0; d < inner.size(); ++d) {
      if (d != except && !covers(outer[d], inner[d], facts_)) return false;
    }
    return true;
  }
  // The boxes may be parts of a concatenation, clipped to a tile: [l1, u1), [l2, u2), ... in one dim, in this order,
  // some of them empty or of negative extent. They contain [a, b) if l1 <= a, b <= the last u, and no element below b
  // is between a part's end and the next one's begin: min(l2, b) <= max(a, u1).
  bool parts_contain(const Box& needed) const {
    auto in_order = [&](size_t d) {
      const Expr& a = needed[d].min;
      DType dtype = dtype_of(a);
      Expr b = end_of(needed[d]), reached = a;
      for (const Box& part : boxes_) {
        Expr begin = cast_to(part[d].min, dtype);
        if (!covers_dims(part, needed, d) || !can_prove_by_cases(min(begin, b) <= max(a, reached), facts_))
          return false;
        reached = begin + cast_to(part[d].extent, dtype);
      }
      return can_prove_by_cases(b <= reached, facts_);
    };
    for (size_t d = 0; d < needed.size(); ++d) {
      if (in_order(d)) return true;
    }
    return false;
  }
  bool add(const Box& at, const std::vector<Counter>& counters) {
    std::vector<Expr> always;
    std::optional<Box> box = filled(at, counters, facts_, always);
    if (!box) return false;
    std::optional<Box> both = boxes_.empty() ? std::nullopt : joined(boxes_.back(), *box, facts_);
    if (both) boxes_.back() = *both;
    if (!both) boxes_.push_back(*box);
    return boxes_.size() <= kMostBoxes;
  }
  bool merge_with_others(size_t at) {
    for (size_t other = at + 1; other < boxes_.size(); ++other) {
      std::optional<Box> both = joined(boxes_[at], boxes_[other], facts_);
      if (!both) continue;
      boxes_[at] = *both;
      boxes_.erase(boxes_.begin() + static_cast<long>(other));
      return true;
    }
    return false;
  }
  bool add_stores(const Stmt& s, std::vector<Counter> counters) {
    if (!uses_var(s, buffer_)) return true;
    if (const Seq* list = s.as<Seq>())
      return std::ranges::all_of(list->stmts, [&](const Stmt& each) { return add_stores(each, counters); });
    if (const For* loop = s.as<For>(); loop && !loop->step) {
      counters.push_back({loop->var, {loop->min, loop->extent}});
      return add_stores(loop->body, counters);
    }
    if (s.is<Bind>()) return true;  // reads at most
    const BufferStore* store = s.as<BufferStore>();
    if (!store || store->predicate) return false;
    if (!same_node(store->buffer, buffer_)) return true;
    auto at = all_or_none(store->indices, [](const Expr& index) -> std::optional<Range> {
      const Ramp* lanes = index.as<Ramp>();
      if (dtype_of(index).lanes > 1 && !(lanes && is_int(lanes->stride, 1))) return std::nullopt;
      const Expr& first = lanes ? lanes->base : index;
      return Range{first, int_imm(lanes ? lanes->lanes : 1, dtype_of(first))};
    });
    return at && add(*at, counters);
  }

  const Buffer& buffer_;
  const Analyzer& facts_;
  std::vector<Box> boxes_;
};

}  // namespace

std::optional<std::vector<Range>> written_at(const Nodes& blocks, const Buffer& buffer, const TreeNode* below) {
  if (blocks.empty()) return std::nullopt;
  Writes writes(buffer, blocks[0]->tree->facts);
  bool is_known = std::ranges::all_of(blocks, [&](const TreeNode* block) { return writes.add(block, below); });
  return is_known ? writes.box() : std::nullopt;
}

// Returns whether the block reads the buffer for some values of its axes only.
static bool reads_by_condition(const TreeNode* block, const Buffer& buffer) {
  auto reads_it = [&](const NodeRef& part) {
    return any_node(part, [&](const NodeRef& node) {
      const BufferLoad* load = node.as<BufferLoad>();
      return load && same_node(load->buffer, buffer);
    });
  };
  return any_node(block->block->body, [&](const NodeRef& node) {
    const Call* call = node.is<Call>() ? as_call(cast_handle<Expr>(node), ops::kIfThenElse) : nullptr;
    if (call) return reads_it(call->args[1]) || reads_it(call->args[2]);
    return (node.is<Select>() || node.is<IfThenElse>()) && reads_it(node);
  });
}

bool has_other_elements(const TreeNode* block, const BufferRegion& read) {
  if (!reads_by_condition(block, read.buffer)) return false;
  const Analyzer& facts = block->tree->facts;
  RunningVars domains = running(loops_above(block, nullptr));  // which a block may name beside its axes
  for (const IterVar& axis : block->axes()) domains.emplace(axis.var.get(), axis.domain);
  for (size_t d = 0; d < read.ranges.size(); ++d) {
    const Expr& dim = buffer_type(read.buffer).shape[d];
    const Range all{int_imm(0, dtype_of(dim)), dim};
    if (!covers(all, range_over(read.ranges[d], dim, domains, facts), facts)) return true;
  }
  return false;
}

bool writes_all(const Nodes& blocks, const Buffer& buffer, const TreeNode* below, const std::vector<Range>& needed) {
  if (blocks.empty()) return false;
  const Analyzer& facts = blocks[0]->tree->facts;
  Writes writes(buffer, facts);
  bool is_known = std::ranges::all_of(blocks, [&](const TreeNode* block) { return writes.add(block, below); });
  // Regions are upper bounds: loops over whole vectors go beyond the buffer, reads do not.
  Box inside = needed;
  for (size_t d = 0; d < inside.size(); ++d) {
    const Expr& dim = buffer_type(buffer).shape[d];
    const Range all{int_imm(0, dtype_of(dim)), dim};
    if (!covers(all, inside[d], facts)) inside[d] = intersection(all, inside[d], facts);
  }
  return is_known && writes.contain(inside);
}

}  // namespace relaxc::scheduling
