#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/diagnostic.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/windows.h"
#include "tir/lower/lower.h"
#include "tir/lower/rewriting.h"

namespace relaxc {

namespace {

// Replaces the pointer to a window, and its offset, by those of the source. A window that leaves its offset open begins
// at it; the pointer to another one is where it begins.
Stmt with_pointers_of_source(const Stmt& body, const MatchBuffer& window) {
  const BufferType& type = buffer_type(window.buffer);
  bool has_offset = type.elem_offset || type.offset_factor > 0;
  return rewrite(body, [&](const Ref<Call>& call) -> std::optional<Expr> {
    if (call->args.empty() || !same_node(call->args[0], window.buffer)) return std::nullopt;
    if (op_name(call) == kBufferElemOffset) return cast_to(simplify(window_start(window)), dtype_of(call));
    if (op_name(call) != ops::kBufferData) return std::nullopt;
    Expr data = buffer_data(window.source.buffer, call.span());
    if (has_offset) return data;
    Expr start = simplify(window_start(window));
    int64_t per_byte = type.dtype.per_byte();
    if (Analyzer().known_divisor(start) % per_byte != 0)
      fail_unsupported(call.span(), "a pointer to a window of {} that may begin inside of a byte",
                       to_string(type.dtype));
    Expr bytes = simplify(floor_div(start, per_byte) * type.dtype.bytes());
    return relaxc::call(op_ref(ops::kAddByteOffset), {data, bytes}, {}, data.type(), call.span());
  });
}

// Replaces accesses to a window by accesses to its source, offset by the window's start.
Stmt inline_window(const Stmt& body, const MatchBuffer& window) {
  const std::vector<Range>& ranges = window.source.ranges;
  size_t leading = ranges.size() - buffer_type(window.buffer).shape.size();
  auto shifted = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> result;
    for (size_t d = 0; d < ranges.size(); ++d) {
      if (d < leading) {
        result.push_back(ranges[d].min);
        continue;
      }
      // The sum has the wider dtype. A vector stays a ramp, in which later steps recognize neighbouring elements.
      const Expr& index = indices[d - leading];
      DType at = dtype_of(index), from = dtype_of(ranges[d].min), dtype = at.bits > from.bits ? at.element() : from;
      Expr start = cast_to(ranges[d].min, dtype);
      if (const Ramp* lanes = index.as<Ramp>()) {
        result.push_back(ramp(start + cast_to(lanes->base, dtype), cast_to(lanes->stride, dtype), lanes->lanes));
      } else {
        Expr shifted = cast_to(index, dtype.with_lanes(at.lanes));
        result.push_back((at.lanes > 1 ? broadcast(start, at.lanes) : start) + shifted);
      }
    }
    return result;
  };
  Stmt result = map_elements(body, [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    bool is_in_window = same_node(buffer, window.buffer);
    return is_in_window ? std::optional(Element{window.source.buffer, shifted(indices)}) : std::nullopt;
  });
  VarMap numbers = window_numbers({window});
  for (const VarRef& var : window.defines) {
    if (auto it = numbers.find(var.get()); it != numbers.end()) it->second = cast_to(it->second, dtype_of(var));
  }
  // Before the numbers are put in: they make another variable of a buffer whose strides name them.
  return substitute(with_pointers_of_source(result, window), numbers);
}

// Returns the statement with the block's pragmas on its outermost loops, as far as these have none.
Stmt with_pragmas(const Stmt& s, const Attrs& annotations) {
  if (s.is<For>()) {
    return edited<For>(s, [&](For& loop) {
      for (const char* name : {annotation<"pragma_auto_unroll_max_step">(), annotation<"pragma_unroll_explicit">()}) {
        const AttrValue* value = annotations.find(name);
        if (value && !loop.annotations.has(name)) loop.annotations.set(name, *value);
      }
    });
  }
  return map_stmts(s, [&](const Stmt& inner) { return with_pragmas(inner, annotations); });
}

Stmt lower_block(const Ref<Block>& block, const std::unordered_set<const NodeHeader*>& doubled,
                 const PrimFuncRef& function, Analyzer facts) {
  VarMap axes;
  std::optional<Expr> first;  // the condition that all reduce axes have their first values
  for (const IterVar& axis : block->iter_vars) {
    axes.emplace(axis.var.get(), axis.value);
    facts.bind(axis.var, axis.domain.min, axis.domain.extent);
    if (axis.kind != IterKind::kReduce) continue;
    Expr at_start = equal(axis.value, axis.domain.min);
    first = first ? *first && at_start : at_start;
  }
  Stmt body = block->annotations.empty() ? block->body : with_pragmas(block->body, block->annotations);
  if (block->annotations.get_bool(annotation<"skips_zeros">(), false)) body = with_zeros_skipped(body);
  if (block->init) body = seq({first ? make(IfThenElse{*first, *block->init, std::nullopt}) : *block->init, body});
  VarMap numbers = window_numbers(block->match_buffers);
  // Innermost windows come first: the source of a window may be an outer window.
  for (size_t i = block->match_buffers.size(); i-- > 0;) {
    const MatchBuffer& window = block->match_buffers[i];
    if (auto why = misfit(window, body, function, numbers, facts)) fail(block.span(), "window {}", *why);
    body = inline_window(body, window);
  }
  body = substitute(body, axes);
  std::vector<Stmt> stmts;
  for (const Buffer& buffer : block->alloc_buffers) {
    Attrs annotations;
    if (doubled.contains(buffer.get())) annotations.set(annotation<"double_buffer">(), true);
    stmts.push_back(make(AllocBuffer{buffer, annotations}, block.span()));
  }
  body = followed_by(std::move(stmts), body, block.span());
  if (block->predicate) body = make(IfThenElse{*block->predicate, body, std::nullopt}, block.span());
  return body;
}

}  // namespace

// Replaces blocks by their bodies: axes are substituted, the predicate becomes a branch, init a branch on the first
// reduce iteration, allocations become AllocBuffer, and accesses to windows (match_buffers) go to their source.
PrimFuncRef lower_blocks(const PrimFuncRef& function) {
  std::unordered_set<const NodeHeader*> doubled;  // buffers that double_buffer handles
  walk(function->body, [&](const Block& block) {
    int64_t position = block.annotations.get_int(annotation<"double_buffer_scope">(), -1);
    if (position >= 0 && static_cast<size_t>(position) < block.writes.size())
      doubled.insert(block.writes[static_cast<size_t>(position)].buffer.get());
  });
  Analyzer facts = facts_of_params(function);
  Stmt body = rewrite(function->body, [&](const Ref<Block>& block) -> std::optional<Stmt> {
    return lower_block(block, doubled, function, facts);
  });
  // Memory that is not a window's begins at its pointer.
  return with_body(function, rewrite(body, [&](const Ref<Call>& call) -> std::optional<Expr> {
                     bool asks = op_name(call) == kBufferElemOffset;
                     return asks ? std::optional(int_imm(0, dtype_of(call))) : std::nullopt;
                   }));
}

}  // namespace relaxc
