// Blocks of the interpreter: axes, the elements that they declare to access, and windows on other buffers' memory.
#include <utility>

#include "ir/arith.h"
#include "ir/undefined.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

struct RangeCode {
  CodePtr min, extent;
  // Returns begin and end, which is less than begin where the sum overflows.
  std::pair<int64_t, int64_t> evaluate(Frame& frame) const {
    int64_t begin = min->as_int(frame), count = extent->as_int(frame);
    return {begin, static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(count))};
  }
};

struct Window {
  Buffer buffer;
  int slot, source;
  size_t rank;
  std::vector<BufferNumber> numbers;
  std::vector<RangeCode> region = {};  // of the source

  void operator()(Frame& frame) const {
    const BufferState& from = frame.buffers[source];
    BufferState& state = frame.buffers[slot];
    state.data = from.data;
    state.written = from.written;
    state.capacity = from.capacity;
    state.dtype = from.dtype;
    state.offset = from.offset;
    state.depth = frame.depth;
    state.shape.clear();
    size_t dropped = region.size() - rank;
    for (size_t d = 0; d < region.size(); ++d) {
      auto [begin, end] = region[d].evaluate(frame);
      if (begin < 0 || end < begin || end > from.shape[d])
        fail(buffer.span(), "window '{}': [{}, {}) of dim {} is out of range, the extent is {}", buffer->name, begin,
             end, d, from.shape[d]);
      if (d < dropped && end - begin != 1)
        fail(buffer.span(), "window '{}': dim {} of the source has extent {}, expected 1", buffer->name, d,
             end - begin);
      state.offset += begin * from.strides[d];
      if (d >= dropped) state.shape.push_back(end - begin);
    }
    state.strides.assign(from.strides.begin() + static_cast<int64_t>(dropped), from.strides.end());
    for (const BufferNumber& number : numbers) number.bind(frame, state);
    for (const BufferNumber& number : numbers) number.check(frame, state, "window", buffer);
  }
};

struct RunBlock {
  struct Axis {
    VarRef var;
    RangeCode domain;
    CodePtr value;
    bool reduces;
    int slot;
  };
  struct Region {
    int slot;
    bool is_write;
    std::vector<RangeCode> ranges;
  };
  std::string name;
  Span span;
  CodePtr predicate = nullptr;
  std::vector<Axis> axes = {};
  std::vector<Region> regions = {};
  std::vector<StepPtr> prologue = {};  // allocations and windows
  StepPtr init = nullptr, body = nullptr;

  void operator()(Frame& frame) const {
    if (predicate && !predicate->as_int(frame)) return;
    bool first = true;
    for (const Axis& axis : axes) {
      auto [begin, end] = axis.domain.evaluate(frame);
      int64_t value = axis.value->as_int(frame);
      if (value < begin || value >= end)
        fail(span, "block '{}': axis '{}' is {}, outside of its domain [{}, {})", name, axis.var->name, value, begin,
             end);
      first = first && (!axis.reduces || value == begin);
      frame.slots[axis.slot] = value;
    }
    Temporarily depth(frame.depth, frame.depth + 1);
    RunningBlock block{&name, init != nullptr, {}};
    auto evaluate = [&](const RangeCode& range) { return range.evaluate(frame); };
    for (const Region& region : regions)
      block.regions.push_back({region.slot, region.is_write, map_each(region.ranges, evaluate)});
    Temporarily<const RunningBlock*> running(frame.running, regions.empty() ? nullptr : &block);
    for (const StepPtr& step : prologue) step->run(frame);
    if (init && first) init->run(frame);
    body->run(frame);
  }
};

}  // namespace

StepPtr Compiler::block_step(const Block& block, const Span& span) {
  RunBlock run{block.name, span};
  if (block.predicate) run.predicate = expr(*block.predicate);
  for (const IterVar& axis : block.iter_vars) {
    RangeCode domain{expr(axis.domain.min), expr(axis.domain.extent)};
    CodePtr value = expr(axis.value);
    run.axes.push_back(
        {axis.var, std::move(domain), std::move(value), axis.kind == IterKind::kReduce, define(axis.var)});
  }
  auto declare = [&](const std::vector<BufferRegion>& regions, bool is_write) {
    auto defined = [&](const Expr& e) { return expr(with_defined_operands(e, Analyzer())); };
    auto code_of = [&](const Range& range) { return RangeCode{defined(range.min), defined(range.extent)}; };
    for (const BufferRegion& region : regions)
      run.regions.push_back({buffer_slot(region.buffer, span), is_write, map_each(region.ranges, code_of)});
  };
  if (options_.check_regions) {  // blocks evaluate what they declare to access
    declare(block.reads, false);
    declare(block.writes, true);
  }
  for (const Buffer& buffer : block.alloc_buffers)
    run.prologue.push_back(alloc_step({.buffer = buffer, .annotations = {}, .contents = {}}, span));
  for (const MatchBuffer& match : block.match_buffers) run.prologue.push_back(window_step(match, span));
  if (block.init) run.init = stmt(*block.init);
  run.body = stmt(block.body);
  return counted(span, std::move(run));
}

StepPtr Compiler::window_step(const MatchBuffer& match, const Span& span) {
  const BufferType& type = buffer_type(match.buffer);
  const std::vector<Range>& ranges = match.source.ranges;
  if (ranges.size() < type.shape.size())
    fail(span, "window '{}' of rank {} on a region of rank {}", match.buffer->name, type.shape.size(), ranges.size());
  int source = buffer_slot(match.source.buffer, span);
  auto region = map_each(ranges, [&](const Range& range) { return RangeCode{expr(range.min), expr(range.extent)}; });
  Window window{match.buffer,     define_buffer(match.buffer), source, type.shape.size(), numbers_of(type),
                std::move(region)};
  set_expected(window.numbers);
  return step(std::move(window));
}

}  // namespace relaxc::interpreter
