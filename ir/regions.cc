#include "ir/regions.h"

#include <algorithm>

#include "ir/arith.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

bool same_range(const Range& a, const Range& b) {
  return structural_equal(a.min, b.min) && structural_equal(a.extent, b.extent);
}

class AccessCollector {
 public:
  explicit AccessCollector(const Stmt& body) {
    walk_nodes(body, [&](const NodeRef& node) {
      if (const For* loop = node.as<For>()) {
        // Outer loops first.
        loops_.emplace_back(loop->var, Range{loop->min, loop->extent});
        bind_constant(loop->var, {loop->min, loop->extent});
      }
      if (const Block* block = node.as<Block>()) {
        for (const IterVar& axis : block->iter_vars) add_axis(axis, block->predicate.has_value());
      }
      visit_children(node, [&](const NodeRef& child, Slot slot) {
        if (child.is<Var>() && slot.role != Role::kField) bound_.insert(child.get());
      });
      return true;
    });
  }

  void add(std::vector<BufferRegion>& regions, const Buffer& buffer, const std::vector<Expr>& indices) {
    if (bound_.contains(buffer.get())) return;
    std::vector<Range> ranges;
    for (size_t d = 0; d < indices.size(); ++d) ranges.push_back(range_of(buffer, d, indices[d]));
    for (BufferRegion& region : regions) {
      if (!same_node(region.buffer, buffer)) continue;
      for (size_t d = 0; d < ranges.size(); ++d)
        region.ranges[d] = hull(region.ranges[d], ranges[d]).value_or(whole(buffer, d));
      return;
    }
    regions.push_back({buffer, std::move(ranges)});
  }

 private:
  // An axis of a block inside is its value, or goes over its domain where a guard keeps some values from running.
  void add_axis(const IterVar& axis, bool guarded) {
    bool is_value = !guarded && dtype_of(axis.value) == dtype_of(axis.var);
    loops_.emplace_back(axis.var, is_value ? Range{axis.value, int_imm(1, dtype_of(axis.var))} : axis.domain);
    bind_constant(axis.var, axis.domain);
  }
  void bind_constant(const VarRef& var, const Range& range) {
    auto first = as_int(range.min), count = as_int(range.extent);
    if (first && count && *count > 0) constant_loops_.bind(var, range.min, range.extent);
  }
  static Range whole(const Buffer& buffer, size_t d) { return whole_range(buffer_type(buffer).shape[d]); }
  // Returns the hull of two ranges when they are a constant distance from each other.
  static std::optional<Range> hull(const Range& a, const Range& b) {
    if (same_range(a, b)) return a;
    if (dtype_of(a.min) != dtype_of(b.min) || dtype_of(a.extent) != dtype_of(b.extent)) return std::nullopt;
    auto starts = as_int(simplify(b.min - a.min));
    DType dtype = dtype_of(a.extent);
    auto ends = as_int(simplify(cast_to(b.min - a.min, dtype) + b.extent - a.extent));
    if (!starts || !ends) return std::nullopt;
    Expr min = *starts < 0 ? b.min : a.min;
    Expr extent = *ends > 0 ? cast_to(b.min - a.min, dtype) + b.extent : a.extent;
    if (*starts < 0) extent = extent + cast_to(a.min - b.min, dtype);
    return Range{min, simplify(extent)};
  }
  bool mentions_bound(const Expr& index) const { return uses_var(index, bound_) || holds<BufferLoad, Let>(index); }
  // Returns the range from the smallest to the largest value that the index has over the loops.
  Range range_of(const Buffer& buffer, size_t d, const Expr& index) {
    DType dtype = dtype_of(index);
    if (dtype.lanes != 1) {
      const Ramp* ramp = index.as<Ramp>();
      auto stride = ramp ? as_int(ramp->stride) : std::nullopt;
      auto last = ramp && stride ? checked_mul(ramp->lanes - 1, *stride) : std::nullopt;
      if (!last || *stride < 1 || ramp->lanes < 1) return whole(buffer, d);
      Range first = range_of(buffer, d, ramp->base);
      if (structural_equal(first.extent, whole(buffer, d).extent)) return first;
      return {first.min, simplify(first.extent + int_imm(*last, dtype_of(first.extent)))};
    }
    if (!mentions_bound(index)) return {index, int_imm(1, dtype)};
    // The index is linear in each loop variable, so its ends are at the ends of the loops. Inner loops come first, as
    // their ends may depend on outer ones.
    Expr low = index, high = index;
    bool linear = dtype.is_integral();
    for (size_t i = loops_.size(); linear && i-- > 0;) {
      const auto& [var, range] = loops_[i];
      for (Expr* end : {&low, &high}) {
        if (!uses_var(*end, var)) continue;
        Expr one = int_imm(1, dtype_of(var));
        auto factor = as_int(simplify(substitute(*end, {{var.get(), var + one}}) - *end));
        linear = linear && factor.has_value();
        if (!linear) break;
        bool at_last = (*factor > 0) == (end == &high);
        Expr first = cast_to(range.min, dtype_of(var));
        Expr last = first + cast_to(range.extent, dtype_of(var)) - one;
        *end = substitute(*end, {{var.get(), at_last ? last : first}});
      }
    }
    if (linear && !mentions_bound(low) && !mentions_bound(high)) {
      low = simplify(low);
      return {low, simplify(high - low + int_imm(1, dtype))};
    }
    // Any other index may still be bounded by constants, such as i % 4.
    Interval bounds = constant_loops_.bounds(index);
    auto extent = as_int(whole(buffer, d).extent);
    bool inside = bounds.min >= 0 && bounds.max >= bounds.min && extent && bounds.max < *extent;
    if (inside) return {int_imm(bounds.min, dtype), int_imm(bounds.max - bounds.min + 1, dtype)};
    return whole(buffer, d);
  }

  VarSet bound_;
  std::vector<std::pair<VarRef, Range>> loops_;
  Analyzer constant_loops_;
};

}  // namespace

Accesses find_accesses(const Stmt& body, const std::optional<Stmt>& init) {
  Accesses result;
  const Stmt whole = init ? seq({*init, body}) : body;
  AccessCollector collector(whole);
  walk(
      whole, [&](const BufferLoad& load) { collector.add(result.reads, load.buffer, load.indices); },
      [&](const BufferStore& store) { collector.add(result.writes, store.buffer, store.indices); });
  if (init) {
    std::erase_if(result.reads, [&](const BufferRegion& read) {
      auto write =
          std::ranges::find_if(result.writes, [&](const BufferRegion& w) { return same_node(w.buffer, read.buffer); });
      return write != result.writes.end() && std::ranges::equal(read.ranges, write->ranges, same_range);
    });
  }
  return result;
}

bool covers_rows(const std::vector<Expr>& indices, const std::vector<Expr>& shape, const Analyzer& facts) {
  const Ramp* lanes = indices.size() < 2 || indices.size() != shape.size() ? nullptr : indices.back().as<Ramp>();
  if (!lanes || lanes->lanes < 1) return false;
  std::optional<int64_t> row = as_int(shape.back());
  return row && *row > 0 && lanes->lanes % *row == 0 && is_int(lanes->stride, 1) &&
         facts.can_prove_equal(lanes->base, int_imm(0, dtype_of(lanes->base)));
}

}  // namespace relaxc
