// Statements of the interpreter. Semantics: ir/stmt.h.
#include <algorithm>
#include <utility>

#include "ir/intrinsics.h"
#include "ir/undefined.h"
#include "tir/interpret/internal.h"
#include "vm/error.h"

namespace relaxc::interpreter {

namespace {

// Counts a statement against the step limit.
struct Counted : Step {
  Span span;
  explicit Counted(Span s) : span(std::move(s)) {}
  void count(Frame& frame) const {
    if (--frame.steps_left < 0) fail(span, "interpreter: the step limit is reached");
  }
};

struct SeqStep final : Step {
  std::vector<StepPtr> steps;
  void run(Frame& frame) const override {
    for (const StepPtr& step : steps) {
      step->run(frame);
      if (frame.leave != Frame::Leave::kNo) return;
    }
  }
};
// break and continue.
struct LeaveStep final : Step {
  Frame::Leave leave;
  explicit LeaveStep(Frame::Leave l) : leave(l) {}
  void run(Frame& frame) const override { frame.leave = leave; }
};
// After an iteration: whether the loop ends.
bool ends(Frame& frame) { return std::exchange(frame.leave, Frame::Leave::kNo) == Frame::Leave::kBreak; }

struct StoreStep final : Counted {
  Access access;
  CodePtr value;
  int lanes;
  bool is_float;
  StoreStep(Access a, CodePtr v, Span s) : Counted(std::move(s)), access(std::move(a)), value(std::move(v)) {
    access.is_write = true;
  }

  void run(Frame& frame) const override {
    count(frame);
    if (lanes > 1) return run_vector(frame);
    if (!access.active(frame)) return;
    Word word = evaluate(frame);
    access.write(access.place(frame), word);
  }
  Word evaluate(Frame& frame) const {
    Word word;
    if (is_float) {
      word.f = value->as_float(frame);
    } else {
      word.i = value->as_int(frame);
    }
    return word;
  }
  // All lanes are evaluated before the first is written.
  void run_vector(Frame& frame) const {
    std::vector<std::pair<Place, Word>> writes;
    writes.reserve(lanes);
    for (frame.lane = 0; frame.lane < lanes; ++frame.lane) {
      if (!access.active(frame)) continue;
      Word word = evaluate(frame);
      writes.emplace_back(access.place(frame), word);
    }
    frame.lane = 0;
    for (auto& [at, word] : writes) access.write(at, word);
  }
};

struct ForStep final : Counted {
  using Counted::Counted;
  int slot;
  CodePtr min, extent, step;  // step: null for 1
  DType dtype;
  bool parallel;
  StepPtr body;
  void run(Frame& frame) const override {
    int64_t first = min->as_int(frame), n = extent->as_int(frame), stride = step ? step->as_int(frame) : 1;
    if (stride < 1) fail(span, "the step of the loop is {}", stride);
    if (n > 0) n = (n - 1) / stride + 1;
    bool reverse = parallel && frame.reverse_parallel_loops;
    for (int64_t i = 0; i < n; ++i) {
      count(frame);
      frame.slots[slot].i = wrap_int(first + (reverse ? n - 1 - i : i) * stride, dtype);
      body->run(frame);
      if (ends(frame)) return;
    }
  }
};
struct WhileStep final : Counted {
  using Counted::Counted;
  CodePtr condition;
  StepPtr body;
  void run(Frame& frame) const override {
    while (condition->as_int(frame)) {
      count(frame);
      body->run(frame);
      if (ends(frame)) return;
    }
  }
};
struct IfStep final : Step {
  CodePtr condition;
  StepPtr then_body, else_body;
  void run(Frame& frame) const override {
    if (condition->as_int(frame)) {
      then_body->run(frame);
    } else if (else_body) {
      else_body->run(frame);
    }
  }
};
struct BindStep final : Counted {
  using Counted::Counted;
  int slot;
  DType dtype;
  CodePtr value;
  void run(Frame& frame) const override {
    count(frame);
    for (frame.lane = 0; frame.lane < dtype.lanes; ++frame.lane) {
      Word& word = frame.slots[slot + frame.lane];
      if (dtype.is_float()) {
        word.f = value->as_float(frame);
      } else {
        word.i = value->as_int(frame);
      }
    }
    frame.lane = 0;
  }
};
struct AllocStep final : Counted {
  BufferCode code;
  AllocStep(BufferCode c, Span s) : Counted(std::move(s)), code(std::move(c)) {}
  void run(Frame& frame) const override {
    count(frame);
    allocate(frame, code);
  }
};
struct EvaluateStep final : Counted {
  using Counted::Counted;
  CodePtr value;
  DType dtype;
  void run(Frame& frame) const override {
    count(frame);
    for (frame.lane = 0; frame.lane < dtype.lanes; ++frame.lane) {
      if (dtype.is_float()) {
        value->as_float(frame);
      } else {
        value->as_int(frame);
      }
    }
    frame.lane = 0;
  }
};
struct AssertStep final : Counted {
  using Counted::Counted;
  CodePtr condition;
  std::string message;
  std::vector<CodePtr> values;
  void run(Frame& frame) const override {
    count(frame);
    if (condition->as_int(frame)) return;
    std::vector<int64_t> numbers;
    for (const CodePtr& value : values) numbers.push_back(value->as_int(frame));
    fail(span, "assertion failed: {}", with_values(message, numbers));
  }
};

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

}  // namespace

int Compiler::define(const VarRef& var) {
  int slot = slot_count_;
  const PrimType* type = var.type().as<PrimType>();
  if (!type) fail(var.span(), "variable '{}' is not a scalar", var->name);
  slot_count_ += type->dtype.lanes;
  slots_[var.get()] = slot;
  return slot;
}
int Compiler::slot(const VarRef& var, const Span& span) const {
  auto it = slots_.find(var.get());
  if (it == slots_.end()) fail(span ? span : var.span(), "variable '{}' has no value", var->name);
  return it->second;
}
int Compiler::define_buffer(const Buffer& buffer) { return buffer_slots_[buffer.get()] = buffer_count_++; }
int Compiler::buffer_slot(const Buffer& buffer, const Span& span) const {
  auto it = buffer_slots_.find(buffer.get());
  if (it == buffer_slots_.end()) fail(span ? span : buffer.span(), "buffer '{}' is not defined", buffer->name);
  return it->second;
}

StepPtr Compiler::stmt(const Stmt& whole) {
  const Span& span = whole.span();
  return match(
      whole,
      [&](const Seq& node) -> StepPtr {
        auto step = std::make_unique<SeqStep>();
        for (const Stmt& child : node.stmts) step->steps.push_back(stmt(child));
        return step;
      },
      [&](const BufferStore& node) -> StepPtr { return store_step(node, span); },
      [&](const For& node) -> StepPtr {
        auto step = std::make_unique<ForStep>(span);
        step->min = expr(node.min);
        step->extent = expr(node.extent);
        if (node.step) step->step = expr(*node.step);
        step->dtype = dtype_of(node.var);
        step->parallel = node.kind == ForKind::kParallel;
        step->slot = define(node.var);
        step->body = stmt(node.body);
        return step;
      },
      [&](const While& node) -> StepPtr {
        auto step = std::make_unique<WhileStep>(span);
        step->condition = expr(node.condition);
        step->body = stmt(node.body);
        return step;
      },
      [&](const IfThenElse& node) -> StepPtr {
        auto step = std::make_unique<IfStep>();
        step->condition = expr(node.condition);
        step->then_body = stmt(node.then_body);
        if (node.else_body) step->else_body = stmt(*node.else_body);
        return step;
      },
      [&](const Bind& node) -> StepPtr {
        auto step = std::make_unique<BindStep>(span);
        step->value = expr(node.value);
        step->dtype = dtype_of(node.value);
        step->slot = define(node.var);
        return step;
      },
      [&](const AllocBuffer& node) -> StepPtr {
        int source = -1;
        if (const std::optional<Expr>& data = buffer_type(node.buffer).data) {
          const Call* pointer = as_call(*data, kBufferData);
          if (!pointer) fail_unsupported(span, "interpreter: buffer '{}' over a pointer", node.buffer->name);
          source = buffer_slot(cast<Var>(pointer->args[0]), span);
        }
        BufferCode code = buffer_code(node.buffer, define_buffer(node.buffer));
        code.source = source;
        if (node.contents) code.contents = node.contents->as<Constant>()->data;
        return std::make_unique<AllocStep>(std::move(code), span);
      },
      [&](const Evaluate& node) -> StepPtr {
        if (as_call(node.value, "tir.break_loop")) return std::make_unique<LeaveStep>(Frame::Leave::kBreak);
        if (as_call(node.value, "tir.continue_loop")) return std::make_unique<LeaveStep>(Frame::Leave::kContinue);
        if (as_call(node.value, "tir.prefetch")) return std::make_unique<SeqStep>();
        auto step = std::make_unique<EvaluateStep>(span);
        step->value = expr(node.value);
        step->dtype = dtype_of(node.value);
        return step;
      },
      [&](const Assert& node) -> StepPtr {
        auto step = std::make_unique<AssertStep>(span);
        step->condition = expr(node.condition);
        step->message = node.text();
        for (const Expr& value : node.values) step->values.push_back(expr(value));
        return step;
      },
      [&](const AttrStmt& node) -> StepPtr { return stmt(node.body); },
      [&](const Block& node) -> StepPtr { return block_step(node, span); });
}

StepPtr Compiler::store_step(const BufferStore& node, const Span& span) {
  Access access = make_access(*this, node.buffer, node.indices, node.predicate, span);
  DType dtype = dtype_of(node.value);
  int index_lanes = node.indices.empty() ? 1 : dtype_of(node.indices.back()).lanes;
  DType expected = access.dtype.with_lanes(access.dtype.lanes * index_lanes);
  if (dtype != expected) {
    fail(span, "a value of {} is stored into buffer '{}', expected {}", to_string(dtype), node.buffer->name,
         to_string(expected));
  }
  auto step = std::make_unique<StoreStep>(std::move(access), expr(node.value), span);
  step->lanes = dtype.lanes;
  step->is_float = dtype.is_float();
  return step;
}

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
    auto add = [&](const std::vector<BufferRegion>& list, bool is_write) {
      for (const BufferRegion& region : list) {
        BlockStep::Region code{buffer_slot(region.buffer, span), is_write, {}, {}};
        for (const Range& range : region.ranges) {
          code.mins.push_back(expr(with_defined_operands(range.min, Analyzer())));
          code.extents.push_back(expr(with_defined_operands(range.extent, Analyzer())));
        }
        step->regions.push_back(std::move(code));
      }
    };
    add(block.reads, false);
    add(block.writes, true);
  }
  for (const Buffer& buffer : block.alloc_buffers) {
    BufferCode code = buffer_code(buffer, define_buffer(buffer));
    step->prologue.push_back(std::make_unique<AllocStep>(std::move(code), span));
  }
  for (const MatchBuffer& match : block.match_buffers) {
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
    auto number = [&](const Expr& value, const char* what) {
      WindowNumber result;
      result.what = what;
      if (value.is<Var>() && !is_defined(cast<Var>(value))) {
        result.slot = define(cast<Var>(value));
      } else {
        result.wanted = expr(value);
      }
      return result;
    };
    for (const Expr& dim : type.shape) window->shape.push_back(number(dim, "a dim"));
    for (const Expr& stride : type.strides) window->strides.push_back(number(stride, "a stride"));
    if (type.elem_offset) window->offset.push_back(number(*type.elem_offset, "the element offset"));
    window->slot = define_buffer(match.buffer);
    step->prologue.push_back(std::move(window));
  }
  if (block.init) step->init = stmt(*block.init);
  step->body = stmt(block.body);
  return step;
}

}  // namespace relaxc::interpreter
