// Statements of the interpreter but blocks (block.cc) and allocations (memory.cc). Semantics: ir/stmt.h.
#include <utility>

#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/interpret/internal.h"
#include "vm/error.h"

namespace relaxc::interpreter {

namespace {

StepPtr sequence(std::vector<StepPtr> steps) {
  return step([steps = std::move(steps)](Frame& frame) {
    for (const StepPtr& step : steps) {
      step->run(frame);
      if (frame.leave != Frame::Leave::kNo) return;
    }
  });
}
StepPtr leave_step(Frame::Leave leave) {
  return step([leave](Frame& frame) { frame.leave = leave; });
}
// Returns after an iteration whether the loop ends.
bool ends(Frame& frame) {
  if (frame.leave == Frame::Leave::kReturn) return true;
  return std::exchange(frame.leave, Frame::Leave::kNo) == Frame::Leave::kBreak;
}

// Runs fn with each lane of a vector as the frame's.
template <class F>
void for_each_lane(Frame& frame, int lanes, F fn) {
  for (frame.lane = 0; frame.lane < lanes; ++frame.lane) fn();
  frame.lane = 0;
}

}  // namespace

int Compiler::define(const VarRef& var) {
  const PrimType* type = var.type().as<PrimType>();
  if (!type) fail(var.span(), "variable '{}' is not a scalar", var->name);
  int slot = std::exchange(slot_count_, slot_count_ + type->dtype.lanes);
  slots_[var.get()] = slot;
  return slot;
}
int Compiler::define_if_new(const Expr& value) {
  return value.is<Var>() && !slots_.contains(value.get()) ? define(cast<Var>(value)) : -1;
}
int Compiler::slot(const VarRef& var, const Span& span) const {
  auto it = slots_.find(var.get());
  if (it == slots_.end()) fail(span ? span : var.span(), "variable '{}' has no value", var->name);
  return it->second;
}
int Compiler::buffer_slot(const Buffer& buffer, const Span& span) const {
  auto it = buffer_slots_.find(buffer.get());
  if (it == buffer_slots_.end()) fail(span ? span : buffer.span(), "buffer '{}' is not defined", buffer->name);
  return it->second;
}
Frame Compiler::frame() const {
  Frame frame;
  frame.slots.resize(slot_count_);
  frame.buffers.resize(buffer_count_);
  return frame;
}

StepPtr Compiler::stmt(const Stmt& whole) {
  const Span& span = whole.span();
  return match(
      whole,
      [&](const Seq& node) { return sequence(map_each(node.stmts, [&](const Stmt& child) { return stmt(child); })); },
      [&](const BufferStore& node) { return store_step(node, span); },
      [&](const For& node) { return for_step(node, span); },
      [&](const While& node) {
        return step([condition = expr(node.condition), body = stmt(node.body), span](Frame& frame) {
          while (condition->as_int(frame)) {
            count(frame, span);
            body->run(frame);
            if (ends(frame)) return;
          }
        });
      },
      [&](const IfThenElse& node) {
        return step([condition = expr(node.condition), then_body = stmt(node.then_body),
                     else_body = node.else_body ? stmt(*node.else_body) : nullptr](Frame& frame) {
          if (condition->as_int(frame)) {
            then_body->run(frame);
          } else if (else_body) {
            else_body->run(frame);
          }
        });
      },
      [&](const Bind& node) {
        CodePtr value = expr(node.value);
        int slot = define(node.var), lanes = dtype_of(node.value).lanes;
        return counted(span, [slot, lanes, value = std::move(value)](Frame& frame) {
          for_each_lane(frame, lanes, [&] { frame.slots[slot + frame.lane] = value->word(frame); });
        });
      },
      [&](const AllocBuffer& node) { return alloc_step(node, span); },
      [&](const Evaluate& node) { return evaluate_step(node, span); },
      [&](const Assert& node) {
        return counted(span, [condition = expr(node.condition), message = node.text(), values = exprs(node.values),
                              span](Frame& frame) {
          if (condition->as_int(frame)) return;
          std::vector<int64_t> numbers = map_each(values, [&](const CodePtr& value) { return value->as_int(frame); });
          fail(span, "assertion failed: {}", with_values(message, numbers));
        });
      },
      [&](const AttrStmt& node) { return stmt(node.body); }, [&](const Block& node) { return block_step(node, span); });
}

StepPtr Compiler::for_step(const For& node, const Span& span) {
  CodePtr min = expr(node.min), extent = expr(node.extent), stride = node.step ? expr(*node.step) : nullptr;
  int slot = define(node.var);
  return step([=, dtype = dtype_of(node.var), is_parallel = node.kind == ForKind::kParallel, min = std::move(min),
               extent = std::move(extent), stride = std::move(stride), body = stmt(node.body)](Frame& frame) {
    int64_t first = min->as_int(frame), n = extent->as_int(frame), by = stride ? stride->as_int(frame) : 1;
    if (by < 1) fail(span, "the step of the loop is {}", by);
    if (n > 0) n = (n - 1) / by + 1;
    bool reverse = is_parallel && frame.options->reverse_parallel_loops;
    for (int64_t i = 0; i < n; ++i) {
      count(frame, span);
      frame.slots[slot] = wrap_int(first + (reverse ? n - 1 - i : i) * by, dtype);
      body->run(frame);
      if (ends(frame)) return;
    }
  });
}

StepPtr Compiler::evaluate_step(const Evaluate& node, const Span& span) {
  if (as_call(node.value, ops::kBreakLoop)) return leave_step(Frame::Leave::kBreak);
  if (as_call(node.value, ops::kContinueLoop)) return leave_step(Frame::Leave::kContinue);
  if (const Call* call = as_call(node.value, ops::kRet)) {  // the value is of use to callers in C only
    CodePtr value = call->args.empty() ? nullptr : expr(call->args[0]);
    return counted(span, [value = std::move(value)](Frame& frame) {
      if (value) value->word(frame);
      frame.leave = Frame::Leave::kReturn;
    });
  }
  if (as_call(node.value, ops::kPrefetch)) return sequence({});
  return counted(span, [lanes = dtype_of(node.value).lanes, value = expr(node.value)](Frame& frame) {
    for_each_lane(frame, lanes, [&] { value->word(frame); });
  });
}

StepPtr Compiler::store_step(const BufferStore& node, const Span& span) {
  Access to = access(node, span);
  DType dtype = dtype_of(node.value), expected = to.dtype.with_lanes(to.dtype.lanes * to.index_lanes);
  if (dtype != expected)
    fail(span, "a value of {} is stored into buffer '{}', expected {}", to_string(dtype), node.buffer->name,
         to_string(expected));
  CodePtr value = expr(node.value);
  if (dtype.lanes == 1)
    return counted(span, [to = std::move(to), value = std::move(value)](Frame& frame) {
      if (!to.active(frame)) return;
      Word word = value->word(frame);
      to.write(to.place(frame), word);
    });
  // All lanes are evaluated before the first is written.
  return counted(span, [to = std::move(to), value = std::move(value), lanes = dtype.lanes](Frame& frame) {
    std::vector<std::pair<Place, Word>> writes;
    writes.reserve(lanes);
    for_each_lane(frame, lanes, [&] {
      if (!to.active(frame)) return;
      Word word = value->word(frame);
      writes.emplace_back(to.place(frame), word);
    });
    for (auto& [at, word] : writes) to.write(at, word);
  });
}

}  // namespace relaxc::interpreter
