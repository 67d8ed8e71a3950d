// Blocks of the interpreter: axes, the elements that they declare to access, and windows on other buffers' memory.
#include <utility>

#include "ir/arith.h"
#include "ir/undefined.h"
#include "tir/interpret/internal.h"

namespace relaxc::interpreter {

namespace {

// A number of a window that is known from its source: bound when its variable is new, else checked.
struct WindowNumber {
  int slot = -1;   // of the variable to bind
  CodePtr wanted;  // or the value to check
  const char* what = "";
  void set(Frame& frame, int64_t value, const Buffer& buffer) const {
    if (slot >= 0) {
      frame.slots[slot].i = value;
      return;
    }
    if (!wanted) return;
    int64_t expected = wanted->as_int(frame);
    if (expected != value) {
      fail(buffer.span(), "window '{}': {} is {}, expected {}", buffer->name, what, value, expected);
    }
  }
};
WindowNumber window_number(Compiler& compiler, const Expr& value, const char* what) {
  WindowNumber result;
  result.what = what;
  if (value.is<Var>() && !compiler.is_defined(cast<Var>(value))) {
    result.slot = compiler.define(cast<Var>(value));
  } else {
    result.wanted = compiler.expr(value);
  }
  return result;
}

struct WindowStep final : Step {
  Buffer buffer;
  int slot, source;
  std::vector<CodePtr> mins, extents;                // of the source's region
  std::vector<WindowNumber> shape, strides, offset;  // of the window; strides and offset may be empty
  explicit WindowStep(Buffer b) : buffer(std::move(b)) {}

  void run(Frame& frame) const override {
    const BufferState& from = frame.buffers[source];
    BufferState& state = frame.buffers[slot];
    state.data = from.data;
    state.written = from.written;
    state.capacity = from.capacity;
    state.element_bytes = from.element_bytes;
    state.offset = from.offset;
    state.depth = frame.depth;
    state.shape.clear();
    size_t rank = shape.size(), dropped = mins.size() - rank;
    for (size_t d = 0; d < mins.size(); ++d) {
      int64_t min = mins[d]->as_int(frame), extent = extents[d]->as_int(frame);
      if (min < 0 || extent < 0 || min > from.shape[d] - extent) {
        fail(buffer.span(), "window '{}': [{}, {}) of dim {} is out of range, the extent is {}", buffer->name, min,
             min + extent, d, from.shape[d]);
      }
      if (d < dropped && extent != 1) {
        fail(buffer.span(), "window '{}': dim {} of the source has extent {}, expected 1", buffer->name, d, extent);
      }
      state.offset += min * from.strides[d];
      if (d >= dropped) state.shape.push_back(extent);
    }
    state.strides.assign(from.strides.begin() + static_cast<int64_t>(dropped), from.strides.end());
    for (size_t d = 0; d < rank; ++d) shape[d].set(frame, state.shape[d], buffer);
    for (size_t d = 0; d < strides.size(); ++d) {
      if (state.shape[d] > 1 || strides[d].slot >= 0) strides[d].set(frame, state.strides[d], buffer);
    }
    for (const WindowNumber& number : offset) number.set(frame, state.offset, buffer);
  }
};

struct BlockStep final : Counted {
  struct Axis {
    int slot;
    CodePtr min, extent, value;
    bool reduce;
    VarRef var;
    std::optional<int64_t> known_min, known_extent;
  };
  struct Region {
    int slot;
    bool is_write;
    std::vector<CodePtr> mins, extents;
  };
  std::string name;
  CodePtr predicate;
  std::vector<Axis> axes;
  std::vector<Region> regions;
  std::vector<StepPtr> prologue;  // allocations and windows
  StepPtr init, body;
  explicit BlockStep(Span s) : Counted(std::move(s)) {}

  void run(Frame& frame) const override {
    count(frame);
    if (predicate && !predicate->as_int(frame)) return;
    bool first = true;
    for (const Axis& axis : axes) {
      int64_t min = axis.known_min ? *axis.known_min : axis.min->as_int(frame);
      int64_t extent = axis.known_extent ? *axis.known_extent : axis.extent->as_int(frame);
      int64_t value = axis.value->as_int(frame);
      if (value < min || value - min >= extent) {
        fail(span, "block '{}': axis '{}' is {}, outside of its domain [{}, {})", name, axis.var->name, value, min,
             min + extent);
      }
      if (axis.reduce && value != min) first = false;
      frame.slots[axis.slot].i = value;
    }
    ++frame.depth;
    if (frame.check_regions) {
      run_checked(frame, first);
    } else {
      run_body(frame, first);
    }
    --frame.depth;
  }
  void run_body(Frame& frame, bool first) const {
    for (const StepPtr& step : prologue) step->run(frame);
    if (init && first) init->run(frame);
    body->run(frame);
  }
  void run_checked(Frame& frame, bool first) const {
    RunningBlock block{&name, init != nullptr, {}};
    for (const Region& region : regions) {
      DeclaredRegion declared{region.slot, region.is_write, {}};
      for (size_t d = 0; d < region.mins.size(); ++d) {
        int64_t min = region.mins[d]->as_int(frame);
        declared.ranges.emplace_back(min, min + region.extents[d]->as_int(frame));
      }
      block.regions.push_back(std::move(declared));
    }
    const RunningBlock* outer = frame.running;
    frame.running = regions.empty() ? nullptr : &block;
    run_body(frame, first);
    frame.running = outer;
  }
};

BlockStep::Region region_code(Compiler& compiler, const BufferRegion& region, bool is_write, const Span& span) {
  BlockStep::Region code{compiler.buffer_slot(region.buffer, span), is_write, {}, {}};
  for (const Range& range : region.ranges) {
    code.mins.push_back(compiler.expr(with_defined_operands(range.min, Analyzer())));
    code.extents.push_back(compiler.expr(with_defined_operands(range.extent, Analyzer())));
  }
  return code;
}

}  // namespace

StepPtr Compiler::block_step(const Block& block, const Span& span) {
  auto step = std::make_unique<BlockStep>(span);
  step->name = block.name;
  if (block.predicate) step->predicate = expr(*block.predicate);
  for (const IterVar& iter : block.iter_vars) {
    CodePtr min = expr(iter.domain.min), extent = expr(iter.domain.extent), value = expr(iter.value);
    step->axes.push_back({define(iter.var), std::move(min), std::move(extent), std::move(value),
                          iter.kind == IterKind::kReduce, iter.var, as_int(iter.domain.min),
                          as_int(iter.domain.extent)});
  }
  if (checks_regions_) {
    for (const BufferRegion& region : block.reads) step->regions.push_back(region_code(*this, region, false, span));
    for (const BufferRegion& region : block.writes) step->regions.push_back(region_code(*this, region, true, span));
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
  const std::vector<Range>& ranges = match.source.ranges;
  if (ranges.size() < type.shape.size()) {
    fail(span, "window '{}' of rank {} on a region of rank {}", match.buffer->name, type.shape.size(), ranges.size());
  }
  auto window = std::make_unique<WindowStep>(match.buffer);
  window->source = buffer_slot(match.source.buffer, span);
  for (const Range& range : ranges) {
    window->mins.push_back(expr(range.min));
    window->extents.push_back(expr(range.extent));
  }
  for (const Expr& dim : type.shape) window->shape.push_back(window_number(*this, dim, "a dim"));
  for (const Expr& stride : type.strides) window->strides.push_back(window_number(*this, stride, "a stride"));
  if (type.elem_offset) window->offset.push_back(window_number(*this, *type.elem_offset, "the element offset"));
  window->slot = define_buffer(match.buffer);
  return window;
}

}  // namespace relaxc::interpreter
