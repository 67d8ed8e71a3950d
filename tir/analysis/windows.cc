#include "tir/analysis/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/op_names.h"
#include "ir/visit.h"
#include "tir/analysis/conditions.h"
#include "tir/program.h"
#include "tir/scalable_vectors.h"
#include "vm/memory.h"

namespace relaxc {

std::vector<Expr> strides_of(const BufferType& type) {
  auto strides = map_each(type.strides, [](const Expr& stride) { return index_in_dtype(stride, kInt64); });
  if (!strides.empty()) return strides;
  Expr step = int_imm(1);
  for (size_t d = type.shape.size(); d-- > 0; step = step * index_in_dtype(type.shape[d], kInt64))
    strides.insert(strides.begin(), step);
  return strides;
}

Expr window_start(const MatchBuffer& window) {
  std::vector<Expr> strides = strides_of(buffer_type(window.source.buffer));
  const std::optional<Expr>& offset = buffer_type(window.source.buffer).elem_offset;
  Expr start = offset ? index_in_dtype(*offset, kInt64) : int_imm(0);
  for (size_t d = 0; d < strides.size(); ++d)
    start = start + index_in_dtype(window.source.ranges[d].min, kInt64) * strides[d];
  return start;
}

namespace {

// Returns whether all lanes of the index are within the dim.
bool stays_within(const Expr& index, const Expr& dim, const Analyzer& facts) {
  const Ramp* lanes = index.as<Ramp>();
  if (!lanes) return true;
  DType dtype = dtype_of(lanes->base);
  Expr count = lanes->lanes < 0 ? vscale(dtype) * int_imm(-lanes->lanes, dtype) : int_imm(lanes->lanes, dtype);
  Expr end = lanes->base + lanes->stride * (count - 1) + 1;
  Expr limit = index_in_dtype(dim, dtype);
  return facts.can_prove(end <= limit) || facts.can_prove_equal(end, limit);
}

// Returns whether the body uses the buffer in a way that depends on where its rows lie.
bool relies_on_memory(const Stmt& body, const Buffer& buffer, const Analyzer& facts) {
  bool found = false;
  auto look = [&](const Buffer& accessed, const std::vector<Expr>& indices) {
    if (!same_node(accessed, buffer)) return;
    const std::vector<Expr>& shape = buffer_type(buffer).shape;
    for (size_t d = 0; d < indices.size(); ++d) found = found || !stays_within(indices[d], shape[d], facts);
  };
  walk(
      body, [&](const BufferLoad& load) { look(load.buffer, load.indices); },
      [&](const BufferStore& store) { look(store.buffer, store.indices); },
      [&](const Ref<Call>& call) {
        const Call* address = as_call(call, ops::kAddressOf);
        const BufferLoad* load = address && !address->args.empty() ? address->args[0].as<BufferLoad>() : nullptr;
        const Call* pointer = as_call(call, ops::kBufferData);
        found = found || (load && same_node(load->buffer, buffer)) || (pointer && same_node(pointer->args[0], buffer));
      });
  return found;
}

bool allocates(const PrimFuncRef& function, const Buffer& buffer) {
  bool found = false;
  walk(
      function->body, [&](const Block& block) { found = found || contains(block.alloc_buffers, buffer); },
      [&](const AllocBuffer& alloc) { found = found || same_node(alloc.buffer, buffer); });
  return found;
}

// Returns whether the type sets an alignment other than the default.
bool sets_alignment(const BufferType& type) { return type.data_alignment != BufferType{}.data_alignment; }

// Returns the window's start, with each variable that has only one value replaced by that value.
Expr start_in(const MatchBuffer& window, const Analyzer& facts) {
  Expr start = window_start(window);
  VarMap constants;
  for (const VarRef& var : free_vars(start)) {
    Interval bounds = facts.bounds(var);
    if (bounds.min == bounds.max) constants.emplace(var.get(), int_imm(bounds.min, dtype_of(var)));
  }
  return facts.simplify(substitute(start, constants));
}

// Returns the expression as int64, with each variable that a window defines replaced by its value.
Expr resolved(const Expr& number, const VarMap& numbers) {
  return copy_value(numbers, number.get()).value_or(index_in_dtype(number, kInt64));
}

// Known divisors of the position of a window's first element in memory, in elements, and of its address, in bytes.
struct Divisors {
  int64_t elements, bytes;
};
Divisors divisors_of(const MatchBuffer& window, const PrimFuncRef& function, const Analyzer& facts) {
  const Buffer& buffer = window.source.buffer;
  const BufferType& source = buffer_type(buffer);
  int64_t size = std::max<int64_t>(source.dtype.element().bytes(), 1);
  int64_t step = facts.known_divisor(start_in(window, facts));
  auto address = [&](int64_t base) { return std::gcd(base, step % base * size); };
  if (allocates(function, buffer)) return {step, address(vm::kAlignment)};
  // Memory that the host passes in is aligned to its elements (vm/kernel_abi.h).
  if (contains(buffer_params(function), buffer)) return {step, size};
  // A source that is itself a window has the alignment that it requires.
  return {std::gcd(std::max<int64_t>(source.offset_factor, 1), step),
          address(sets_alignment(source) ? std::max<int64_t>(source.data_alignment, 1) : size)};
}

std::optional<std::string> misplaced(const MatchBuffer& window, const PrimFuncRef& function, const VarMap& numbers,
                                     const Analyzer& facts) {
  const BufferType &type = buffer_type(window.buffer), &source = buffer_type(window.source.buffer);
  const std::string &name = window.buffer->name, &there = window.source.buffer->name;
  bool plain = type.scope == "global" && source.scope == "local";
  if (type.scope != source.scope && !plain)
    return fmt::format("'{}' requires memory of scope '{}', '{}' has scope '{}'", name, type.scope, there,
                       source.scope);
  if (type.elem_offset && !facts.can_prove_equal(start_in(window, facts), resolved(*type.elem_offset, numbers)))
    return fmt::format("'{}' must begin at element {}; it begins in '{}' at {}", name, size_text(*type.elem_offset),
                       there, size_text(start_in(window, facts)));
  if (!requires_alignment(type)) return std::nullopt;
  Divisors known = divisors_of(window, function, facts);
  auto misaligned = [&](int64_t wanted, int64_t found, const char* unit) {
    return fmt::format("'{}' must begin at a multiple of {} {}; it begins in '{}' at {}, a multiple of {} only", name,
                       wanted, unit, there, size_text(start_in(window, facts)), found);
  };
  if (type.offset_factor > 1 && known.elements % type.offset_factor != 0)
    return misaligned(type.offset_factor, known.elements, "elements (offset_factor)");
  if (sets_alignment(type) && (type.data_alignment < 1 || known.bytes % type.data_alignment != 0))
    return misaligned(type.data_alignment, known.bytes, "bytes (align)");
  return std::nullopt;
}

}  // namespace

VarMap window_numbers(const std::vector<MatchBuffer>& windows) {
  VarMap result;
  for (const MatchBuffer& window : windows) {
    const BufferType& type = buffer_type(window.buffer);
    const std::vector<Range>& ranges = window.source.ranges;
    std::vector<Expr> strides = strides_of(buffer_type(window.source.buffer));
    size_t leading = ranges.size() - type.shape.size();
    for (const VarRef& var : window.defines) {
      auto define = [&](const Expr& number, const Expr& value) {
        if (same_node(var, number)) result.emplace(var.get(), simplify(value));
      };
      for (size_t d = 0; d < type.shape.size(); ++d) {
        define(type.shape[d], ranges[leading + d].extent);
        if (d < type.strides.size()) define(type.strides[d], strides[leading + d]);
      }
      if (type.elem_offset) define(*type.elem_offset, window_start(window));
    }
  }
  return result;
}

bool requires_alignment(const BufferType& type) { return type.offset_factor > 1 || sets_alignment(type); }

std::optional<std::string> misfit(const MatchBuffer& window, const Stmt& body, const PrimFuncRef& function,
                                  const VarMap& numbers, const Analyzer& facts) {
  if (auto why = misplaced(window, function, numbers, facts)) return why;
  const BufferType& type = buffer_type(window.buffer);
  std::vector<Expr> wanted = strides_of(type), there = strides_of(buffer_type(window.source.buffer));
  bool has_strides = !type.strides.empty();
  for (size_t d = 0; has_strides && d < wanted.size(); ++d) wanted[d] = resolved(type.strides[d], numbers);
  if (!has_strides && !relies_on_memory(body, window.buffer, facts)) return std::nullopt;
  size_t leading = there.size() - wanted.size();
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (is_int(window.source.ranges[leading + d].extent, 1)) continue;
    if (facts.can_prove_equal(there[leading + d], wanted[d])) continue;
    return fmt::format(
        "'{}' {} stride {} in its dim {}, '{}' has stride {}: change that layout (transform_layout, cache_read), or "
        "declare strides",
        window.buffer->name, has_strides ? "declares" : "is used in vectors or by address, which needs",
        size_text(wanted[d]), d, window.source.buffer->name, size_text(there[leading + d]));
  }
  return std::nullopt;
}

}  // namespace relaxc
