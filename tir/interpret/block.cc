// Blocks of the interpreter: axes, the elements that they declare to access, and windows on other buffers' memory.
#include <utility>

#include "ir/arith.h"
#include "ir/undefined.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

// A number of a window that is known from its source: bound when its variable is new, else checked.
struct WindowNumber {
  int slot;        // of the variable to bind, or -1
  CodePtr wanted;  // else the value to check
  const char* what;
  void set(Frame& frame, int64_t value, const Buffer& buffer) const {
    if (slot >= 0) {
      frame.slots[slot].i = value;
    } else if (int64_t expected = wanted->as_int(frame); expected != value) {
      fail(buffer.span(), "window '{}': {} is {}, expected {}", buffer->name, what, value, expected);
    }
  }
};
WindowNumber window_number(Compiler& compiler, const Expr& value, const char* what) {
  bool is_new = value.is<Var>() && !compiler.is_defined(cast<Var>(value));
  if (is_new) return {compiler.define(cast<Var>(value)), nullptr, what};
  return {-1, compiler.expr(value), what};
}

struct Region {
  int slot;
  std::vector<CodePtr> mins, extents;
};
struct Window {
  Buffer buffer;
  int slot;
  Region source;
  std::vector<WindowNumber> shape, strides, offset;  // of the window; strides and offset may be empty
};

void bind_window(Frame& frame, const Window& window) {
  const Buffer& buffer = window.buffer;
  const BufferState& from = frame.buffers[window.source.slot];
  BufferState& state = frame.buffers[window.slot];
  state.data = from.data;
  state.written = from.written;
  state.capacity = from.capacity;
  state.element_bytes = from.element_bytes;
  state.offset = from.offset;
  state.depth = frame.depth;
  state.shape.clear();
  size_t rank = window.shape.size(), dropped = window.source.mins.size() - rank;
  for (size_t d = 0; d < dropped + rank; ++d) {
    int64_t min = window.source.mins[d]->as_int(frame), extent = window.source.extents[d]->as_int(frame);
    if (min < 0 || extent < 0 || min > from.shape[d] - extent)
      fail(buffer.span(), "window '{}': [{}, {}) of dim {} is out of range, the extent is {}", buffer->name, min,
           min + extent, d, from.shape[d]);
    if (d < dropped && extent != 1)
      fail(buffer.span(), "window '{}': dim {} of the source has extent {}, expected 1", buffer->name, d, extent);
    state.offset += min * from.strides[d];
    if (d >= dropped) state.shape.push_back(extent);
  }
  state.strides.assign(from.strides.begin() + static_cast<int64_t>(dropped), from.strides.end());
  for (size_t d = 0; d < rank; ++d) window.shape[d].set(frame, state.shape[d], buffer);
  for (size_t d = 0; d < window.strides.size(); ++d) {
    const WindowNumber& stride = window.strides[d];
    if (state.shape[d] > 1 || stride.slot >= 0) stride.set(frame, state.strides[d], buffer);
  }
  for (const WindowNumber& number : window.offset) number.set(frame, state.offset, buffer);
}

struct BlockStep final : Step {
  struct Axis {
    int slot;
    CodePtr min, extent, value;
    bool reduce;
    VarRef var;
    std::optional<int64_t> known_min, known_extent;
  };
  Span span;
  std::string name;
  CodePtr predicate;
  std::vector<Axis> axes;
  std::vector<Region> reads, writes;
  std::vector<StepPtr> prologue;  // allocations and windows
  StepPtr init, body;

  void run(Frame& frame) const override {
    count(frame, span);
    if (predicate && !predicate->as_int(frame)) return;
    bool first = true;
    for (const Axis& axis : axes) {
      int64_t min = axis.known_min ? *axis.known_min : axis.min->as_int(frame);
      int64_t extent = axis.known_extent ? *axis.known_extent : axis.extent->as_int(frame);
      int64_t value = axis.value->as_int(frame);
      if (value < min || value - min >= extent)
        fail(span, "block '{}': axis '{}' is {}, outside of its domain [{}, {})", name, axis.var->name, value, min,
             min + extent);
      if (axis.reduce && value != min) first = false;
      frame.slots[axis.slot].i = value;
    }
    ++frame.depth;
    const RunningBlock* outer = frame.running;
    RunningBlock block{&name, init != nullptr, {}};
    if (frame.check_regions) {
      for (const Region& region : reads) block.regions.push_back(declared(frame, region, false));
      for (const Region& region : writes) block.regions.push_back(declared(frame, region, true));
      frame.running = block.regions.empty() ? nullptr : &block;
    }
    for (const StepPtr& step : prologue) step->run(frame);
    if (init && first) init->run(frame);
    body->run(frame);
    frame.running = outer;
    --frame.depth;
  }
  static DeclaredRegion declared(Frame& frame, const Region& region, bool is_write) {
    DeclaredRegion result{region.slot, is_write, {}};
    for (size_t d = 0; d < region.mins.size(); ++d) {
      int64_t min = region.mins[d]->as_int(frame);
      result.ranges.emplace_back(min, min + region.extents[d]->as_int(frame));
    }
    return result;
  }
};

Region region_code(Compiler& compiler, const BufferRegion& region, const Span& span,
                   Expr (*as_evaluated)(const Expr&)) {
  Region code{compiler.buffer_slot(region.buffer, span), {}, {}};
  for (const Range& range : region.ranges) {
    code.mins.push_back(compiler.expr(as_evaluated(range.min)));
    code.extents.push_back(compiler.expr(as_evaluated(range.extent)));
  }
  return code;
}
Expr defined_everywhere(const Expr& e) { return with_defined_operands(e, Analyzer()); }
Expr as_written(const Expr& e) { return e; }

}  // namespace

StepPtr Compiler::block_step(const Block& block, const Span& span) {
  auto step = std::make_unique<BlockStep>();
  step->span = span;
  step->name = block.name;
  if (block.predicate) step->predicate = expr(*block.predicate);
  for (const IterVar& iter : block.iter_vars) {
    CodePtr min = expr(iter.domain.min), extent = expr(iter.domain.extent), value = expr(iter.value);
    step->axes.push_back({define(iter.var), std::move(min), std::move(extent), std::move(value),
                          iter.kind == IterKind::kReduce, iter.var, as_int(iter.domain.min),
                          as_int(iter.domain.extent)});
  }
  if (checks_regions_) {
    for (const BufferRegion& region : block.reads)
      step->reads.push_back(region_code(*this, region, span, defined_everywhere));
    for (const BufferRegion& region : block.writes)
      step->writes.push_back(region_code(*this, region, span, defined_everywhere));
  }
  for (const Buffer& buffer : block.alloc_buffers)
    step->prologue.push_back(alloc_step({.buffer = buffer, .annotations = {}, .contents = {}}, span));
  for (const MatchBuffer& match : block.match_buffers) step->prologue.push_back(window_step(match, span));
  if (block.init) step->init = stmt(*block.init);
  step->body = stmt(block.body);
  return step;
}

StepPtr Compiler::window_step(const MatchBuffer& match, const Span& span) {
  const BufferType& type = buffer_type(match.buffer);
  if (match.source.ranges.size() < type.shape.size())
    fail(span, "window '{}' of rank {} on a region of rank {}", match.buffer->name, type.shape.size(),
         match.source.ranges.size());
  Window window{match.buffer, -1, region_code(*this, match.source, span, as_written), {}, {}, {}};
  for (const Expr& dim : type.shape) window.shape.push_back(window_number(*this, dim, "a dim"));
  for (const Expr& stride : type.strides) window.strides.push_back(window_number(*this, stride, "a stride"));
  if (type.elem_offset) window.offset.push_back(window_number(*this, *type.elem_offset, "the element offset"));
  window.slot = define_buffer(match.buffer);
  return make_step([window = std::move(window)](Frame& frame) { bind_window(frame, window); });
}

}  // namespace relaxc::interpreter
