// Statements of the interpreter but blocks (block.cc). Semantics: ir/stmt.h.
#include <algorithm>
#include <utility>

#include "ir/intrinsics.h"
#include "tir/interpret/internal.h"
#include "vm/error.h"

namespace relaxc::interpreter {

namespace {

// After an iteration: returns whether the loop ends.
bool ends(Frame& frame) { return std::exchange(frame.leave, Frame::Leave::kNo) == Frame::Leave::kBreak; }

StepPtr leave_step(Frame::Leave leave) {
  return make_step([leave](Frame& frame) { frame.leave = leave; });
}

}  // namespace

int Compiler::define(const VarRef& var) {
  int slot = slot_count;
  const PrimType* type = var.type().as<PrimType>();
  if (!type) fail(var.span(), "variable '{}' is not a scalar", var->name);
  slot_count += type->dtype.lanes;
  slots_[var.get()] = slot;
  return slot;
}
int Compiler::slot(const VarRef& var, const Span& span) const {
  auto it = slots_.find(var.get());
  if (it == slots_.end()) fail(span ? span : var.span(), "variable '{}' has no value", var->name);
  return it->second;
}
int Compiler::define_buffer(const Buffer& buffer) { return buffer_slots_[buffer.get()] = buffer_count++; }
int Compiler::buffer_slot(const Buffer& buffer, const Span& span) const {
  auto it = buffer_slots_.find(buffer.get());
  if (it == buffer_slots_.end()) fail(span ? span : buffer.span(), "buffer '{}' is not defined", buffer->name);
  return it->second;
}

StepPtr Compiler::stmt(const Stmt& whole) {
  const Span& span = whole.span();
  return match(
      whole,
      [&](const Seq& node) {
        std::vector<StepPtr> steps;
        for (const Stmt& child : node.stmts) steps.push_back(stmt(child));
        return make_step([steps = std::move(steps)](Frame& frame) {
          for (const StepPtr& step : steps) {
            step->run(frame);
            if (frame.leave != Frame::Leave::kNo) return;
          }
        });
      },
      [&](const BufferStore& node) { return store_step(node, span); },
      [&](const For& node) { return for_step(node, span); },
      [&](const While& node) {
        return make_step([span, condition = expr(node.condition), body = stmt(node.body)](Frame& frame) {
          while (condition->as_int(frame)) {
            count(frame, span);
            body->run(frame);
            if (ends(frame)) return;
          }
        });
      },
      [&](const IfThenElse& node) {
        CodePtr condition = expr(node.condition);
        StepPtr then_body = stmt(node.then_body), else_body = node.else_body ? stmt(*node.else_body) : nullptr;
        return make_step([condition = std::move(condition), then_body = std::move(then_body),
                          else_body = std::move(else_body)](Frame& frame) {
          const StepPtr& side = condition->as_int(frame) ? then_body : else_body;
          if (side) side->run(frame);
        });
      },
      [&](const Bind& node) {
        CodePtr value = expr(node.value);
        return make_step(
            [span, value = std::move(value), dtype = dtype_of(node.value), slot = define(node.var)](Frame& frame) {
              count(frame, span);
              for_lanes(frame, dtype.lanes, [&] { frame.slots[slot + frame.lane] = value->word(frame, dtype); });
            });
      },
      [&](const AllocBuffer& node) { return alloc_step(node, span); },
      [&](const Evaluate& node) { return evaluate_step(node, span); },
      [&](const Assert& node) {
        std::vector<CodePtr> values;
        for (const Expr& value : node.values) values.push_back(expr(value));
        return make_step(
            [span, condition = expr(node.condition), message = node.text(), values = std::move(values)](Frame& frame) {
              count(frame, span);
              if (condition->as_int(frame)) return;
              std::vector<int64_t> numbers;
              for (const CodePtr& value : values) numbers.push_back(value->as_int(frame));
              fail(span, "assertion failed: {}", with_values(message, numbers));
            });
      },
      [&](const AttrStmt& node) { return stmt(node.body); }, [&](const Block& node) { return block_step(node, span); });
}

StepPtr Compiler::for_step(const For& node, const Span& span) {
  CodePtr min = expr(node.min), extent = expr(node.extent), step = node.step ? expr(*node.step) : nullptr;
  int slot = define(node.var);
  return make_step([span, min = std::move(min), extent = std::move(extent), step = std::move(step), slot,
                    dtype = dtype_of(node.var), parallel = node.kind == ForKind::kParallel,
                    body = stmt(node.body)](Frame& frame) {
    int64_t first = min->as_int(frame), n = extent->as_int(frame), stride = step ? step->as_int(frame) : 1;
    if (stride < 1) fail(span, "the step of the loop is {}", stride);
    if (n > 0) n = (n - 1) / stride + 1;
    bool reverse = parallel && frame.reverse_parallel_loops;
    for (int64_t i = 0; i < n; ++i) {
      count(frame, span);
      frame.slots[slot].i = wrap_int(first + (reverse ? n - 1 - i : i) * stride, dtype);
      body->run(frame);
      if (ends(frame)) return;
    }
  });
}

StepPtr Compiler::evaluate_step(const Evaluate& node, const Span& span) {
  if (as_call(node.value, "tir.break_loop")) return leave_step(Frame::Leave::kBreak);
  if (as_call(node.value, "tir.continue_loop")) return leave_step(Frame::Leave::kContinue);
  if (as_call(node.value, "tir.prefetch")) return leave_step(Frame::Leave::kNo);
  return make_step([span, value = expr(node.value), dtype = dtype_of(node.value)](Frame& frame) {
    count(frame, span);
    for_lanes(frame, dtype.lanes, [&] { value->word(frame, dtype); });
  });
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
  return make_step([span, code = std::move(code)](Frame& frame) {
    count(frame, span);
    allocate(frame, code);
  });
}

StepPtr Compiler::store_step(const BufferStore& node, const Span& span) {
  Access access = make_access(*this, node.buffer, node.indices, node.predicate, span);
  access.is_write = true;
  DType dtype = dtype_of(node.value), expected = access.dtype.with_lanes(access.dtype.lanes * access.index_lanes);
  if (dtype != expected)
    fail(span, "a value of {} is stored into buffer '{}', expected {}", to_string(dtype), node.buffer->name,
         to_string(expected));
  return make_step([span, access = std::move(access), value = expr(node.value), dtype](Frame& frame) {
    count(frame, span);
    if (dtype.lanes == 1) {
      if (!access.active(frame)) return;
      Word word = value->word(frame, dtype);
      return access.write(access.place(frame), word);
    }
    // All lanes are evaluated before the first is written.
    std::vector<std::pair<Place, Word>> writes;
    writes.reserve(dtype.lanes);
    for_lanes(frame, dtype.lanes, [&] {
      if (!access.active(frame)) return;
      Word word = value->word(frame, dtype);
      writes.emplace_back(access.place(frame), word);
    });
    for (auto& [at, word] : writes) access.write(at, word);
  });
}

}  // namespace relaxc::interpreter
