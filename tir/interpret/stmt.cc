// Statements of the interpreter but blocks (block.cc). Semantics: ir/stmt.h.
#include <algorithm>
#include <utility>

#include "ir/intrinsics.h"
#include "tir/interpret/internal.h"
#include "vm/error.h"

namespace relaxc::interpreter {

namespace {

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
      [&](const BufferStore& node) { return store_step(node, span); },
      [&](const For& node) { return for_step(node, span); },
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
      [&](const AllocBuffer& node) { return alloc_step(node, span); },
      [&](const Evaluate& node) { return evaluate_step(node, span); },
      [&](const Assert& node) -> StepPtr {
        auto step = std::make_unique<AssertStep>(span);
        step->condition = expr(node.condition);
        step->message = node.text();
        for (const Expr& value : node.values) step->values.push_back(expr(value));
        return step;
      },
      [&](const AttrStmt& node) { return stmt(node.body); }, [&](const Block& node) { return block_step(node, span); });
}

StepPtr Compiler::for_step(const For& node, const Span& span) {
  auto step = std::make_unique<ForStep>(span);
  step->min = expr(node.min);
  step->extent = expr(node.extent);
  if (node.step) step->step = expr(*node.step);
  step->dtype = dtype_of(node.var);
  step->parallel = node.kind == ForKind::kParallel;
  step->slot = define(node.var);
  step->body = stmt(node.body);
  return step;
}

StepPtr Compiler::evaluate_step(const Evaluate& node, const Span& span) {
  if (as_call(node.value, "tir.break_loop")) return std::make_unique<LeaveStep>(Frame::Leave::kBreak);
  if (as_call(node.value, "tir.continue_loop")) return std::make_unique<LeaveStep>(Frame::Leave::kContinue);
  if (as_call(node.value, "tir.prefetch")) return std::make_unique<SeqStep>();
  auto step = std::make_unique<EvaluateStep>(span);
  step->value = expr(node.value);
  step->dtype = dtype_of(node.value);
  return step;
}

StepPtr Compiler::alloc_step(const AllocBuffer& node, const Span& span) {
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

}  // namespace relaxc::interpreter
