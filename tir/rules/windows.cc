#include "tir/rules/windows.h"

#include <algorithm>

#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

// Returns by how much the place in an operand moves with the axis, at least 1.
int64_t largest_step(const std::vector<Ref<BufferLoad>>& loads, const IterVar& axis, const Analyzer& facts) {
  int64_t largest = 1;
  for (const Ref<BufferLoad>& load : loads) {
    for (const Expr& index : load->indices) {
      if (auto step = coefficient(index, axis.var, facts)) largest = std::max(largest, *step);
    }
  }
  return largest;
}

// Returns the axes of the window that are longer than 1.
std::vector<IterVar> sliding_axes(const Nest& nest, const std::vector<Ref<BufferLoad>>& loads) {
  std::vector<IterVar> window(nest.axes.end() - static_cast<long>(axes_of_window(nest, loads)), nest.axes.end());
  std::erase_if(window, [](const IterVar& axis) { return is_int(axis.domain.extent, 1); });
  return window;
}

// Returns the axis of filters in groups, if there is one.
std::optional<GroupAxis> group_axis(const Nest& nest) {
  std::vector<Ref<BufferLoad>> loads = loads_of(match_reduction(*nest.block)->value);
  const std::vector<IterVar> window = sliding_axes(nest, loads);
  for (size_t d = 0; d < nest.num_spatial; ++d) {
    if (!slides(loads, nest.axes[d], window)) continue;
    std::optional<int64_t> filters;
    for (const Ref<BufferLoad>& load : loads) {
      walk(load, [&](const Binary& op) {
        if (op.op == BinaryOp::kFloorDiv && same_node(op.a, nest.axes[d].var)) filters = as_int(op.b);
      });
    }
    const auto extent = as_int(nest.axes[d].domain.extent);
    if (filters && extent && *extent % *filters == 0) return GroupAxis{d, *filters};
  }
  return std::nullopt;
}

// Returns the bytes of the operand that so many rows of windows read, along the first axis on which they slide.
int64_t bytes_read_by_rows(const Nest& nest, size_t first, int64_t rows, const Analyzer& facts) {
  const std::vector<Ref<BufferLoad>> loads = loads_of(match_reduction(*nest.block)->value);
  int64_t most = 1;
  for (const Ref<BufferLoad>& load : loads) {
    if (!uses_var(load->indices, nest.axes[first].var)) continue;
    const BufferType& type = buffer_type(load->buffer);
    int64_t bytes = type.dtype.bytes() * rows * largest_step({load}, nest.axes[first], facts);
    bytes *= as_int(type.shape.back()).value_or(cost_model::kGuessedPixels);
    // The window's other axes that are longer than 1, such as the channels of a group.
    for (const IterVar& axis : sliding_axes(nest, loads)) {
      const bool is_in_image =
          std::ranges::any_of(std::span(nest.axes).subspan(first, nest.num_spatial - first),
                              [&](const IterVar& image) { return slides({load}, image, {&axis, 1}); });
      if (!is_in_image) bytes *= as_int(axis.domain.extent).value_or(1);
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

bool slides(const std::vector<Ref<BufferLoad>>& loads, const IterVar& axis, std::span<const IterVar> others) {
  return std::ranges::any_of(loads, [&](const Ref<BufferLoad>& load) {
    return std::ranges::any_of(load->indices, [&](const Expr& index) {
      return uses_var(index, axis.var) &&
             std::ranges::any_of(others, [&](const IterVar& other) { return uses_var(index, other.var); });
    });
  });
}

size_t axes_of_window(const Nest& nest, const std::vector<Ref<BufferLoad>>& loads) {
  std::span axes(nest.axes), spatial = axes.first(nest.num_spatial);
  auto is_own = [&](const Ref<BufferLoad>& load) {
    return std::ranges::all_of(spatial, [&](const IterVar& axis) {
      return is_int(axis.domain.extent, 1) || uses_var(load->indices, axis.var);
    });
  };
  std::vector<Ref<BufferLoad>> windows;
  std::ranges::copy_if(loads, std::back_inserter(windows), is_own);
  size_t count = 0;
  while (count < nest.num_reduced() && slides(windows, axes[axes.size() - 1 - count], spatial)) ++count;
  return count;
}

size_t first_axis_of_windows(const Nest& nest, const std::optional<GroupAxis>& groups) {
  std::vector<Ref<BufferLoad>> loads = loads_of(match_reduction(*nest.block)->value);
  const std::vector<IterVar> window = sliding_axes(nest, loads);
  size_t d = 0;
  while (d < nest.num_spatial && ((groups && d == groups->axis) || !slides(loads, nest.axes[d], window))) ++d;
  return d;
}

bool reads_windows(const Ref<Block>& block) {
  std::optional<Reduction> reduction = match_reduction(*block);
  return reduction && axes_of_window(nest_of(block), loads_of(reduction->value)) > 0;
}

bool has_open_border(const Ref<Block>& block, const Analyzer& facts) {
  Nest nest = nest_of(block);
  std::optional<Reduction> reduction = match_reduction(*block);
  if (!reduction) return false;
  std::vector<Ref<BufferLoad>> loads = loads_of(reduction->value);
  std::span axes(nest.axes);
  const std::vector<IterVar> window = sliding_axes(nest, loads);
  int64_t taps = 1, step = 1;  // of a window, and from one window to the next, in elements
  for (const IterVar& axis : window) taps *= as_int(axis.domain.extent).value_or(cost_model::kMostWindowSteps + 1);
  bool is_known = true;
  int dims = 0;
  for (const IterVar& axis : axes.first(nest.num_spatial)) {
    if (!slides(loads, axis, window)) continue;
    ++dims;
    is_known = is_known && as_int(axis.domain.extent);
    step *= largest_step(loads, axis, facts);
  }
  return dims > 1 && taps >= (is_known ? cost_model::kMostWindowSteps + 1 : cost_model::kFewestTapsOfCopy * step);
}

void choose_band(ReductionPlan& plan, const Nest& nest, const Analyzer& facts, const Target& target,
                 Decisions& decisions) {
  const std::optional<GroupAxis> groups = group_axis(nest);
  if (groups && plan.row_axis != groups->axis) plan.groups = groups;  // else a tile has rows of several filters
  const size_t first = first_axis_of_windows(nest, plan.groups);
  if (first == nest.num_spatial) return;
  int64_t shares = 1;
  for (size_t d = 0; d < first; ++d) {
    const int64_t extent = as_int(nest.axes[d].domain.extent).value_or(1);
    shares *= plan.groups && d == plan.groups->axis ? extent / plan.groups->filters : extent;
  }
  int64_t formula = shares >= cost_model::kFewestCores ? 0 : cost_model::kRowTilesInBand;
  std::vector<int64_t> candidates = numbers_between(0, cost_model::kMostRowTiles);
  if (plan.groups) {
    // Tiles of a band that is not whole would have conditions that no proof of their boxes sees through.
    const auto rows = as_int(nest.axes[first].domain.extent);
    const int64_t tiles = ceil_div(rows.value_or(1), plan.rows);
    candidates = {0};
    if (rows) std::ranges::copy(divisors_between(1, tiles, tiles), std::back_inserter(candidates));
    const int64_t most = target.l2_of_core() / 2 / bytes_read_by_rows(nest, first, plan.rows, facts);
    const int64_t fit = rows ? divisors_between(1, std::clamp<int64_t>(most, 1, tiles), tiles).back() : 0;
    formula = fit == tiles && formula == 0 ? 0 : fit;
  }
  plan.band = decisions.number("band", candidates, formula);
}

// Returns the step from one window to the next along the last dim of the producer's result; 1 if it is not known.
int64_t step_of_columns(Schedule& sch, const BlockRV& producer, const Buffer& made) {
  int64_t step = 1;
  for (const BlockRV& reader : sch.apply(GetConsumers{producer})) {
    const Nest nest = nest_of(cast<Block>(sch.get(reader)));
    std::vector<Ref<BufferLoad>> loads = loads_of(nest.block->body);
    std::erase_if(loads, [&](const Ref<BufferLoad>& load) { return !same_node(load->buffer, made); });
    for (const Ref<BufferLoad>& load : loads) {
      for (const IterVar& axis : std::span(nest.axes).first(nest.num_spatial)) {
        auto factor = coefficient(load->indices.back(), axis.var, sch.tree("").facts);
        if (factor && *factor > 1) step = *factor;
      }
    }
  }
  return step;
}

void make_in_band(Schedule& sch, const BlockRV& producer, const LoopRV& band, const ReductionPlan& tile) {
  const Ref<Block> block = cast<Block>(sch.get(producer));
  const size_t rank = block->iter_vars.size();
  const int64_t step = step_of_columns(sch, producer, block->writes[0].buffer);
  const IndexMap map(rank, [&](const Exprs& at) {
    Exprs result(at.begin(), at.end() - 1);
    if (step > 1) result.push_back(floor_mod(at.back(), step));
    const Expr column = step > 1 ? floor_div(at.back(), step) : at.back();
    result.push_back(floor_div(column, tile.lanes));
    result.push_back(floor_mod(column, tile.lanes));
    return result;
  });
  sch.apply(TransformLayout{producer, {"write", 0}, map, 0});
  sch.apply(ComputeAt{producer, band});
  Loops columns = sch.apply(GetLoops{producer});
  if (tile.masks_columns) sch.apply(Annotate{columns[columns.size() - 2], annotation<"keep_whole">(), true});
  sch.apply(Vectorize{columns.back()});
}

}  // namespace relaxc
