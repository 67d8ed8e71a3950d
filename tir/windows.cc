#include "tir/windows.h"

#include <algorithm>
#include <numeric>

#include "ir/text/printer.h"
#include "ir/visit.h"
#include "tir/scalable.h"
#include "vm/memory.h"

namespace relaxc {

std::vector<Expr> strides_of(const BufferType& type) {
  if (!type.strides.empty() || type.shape.empty()) return type.strides;
  std::vector<Expr> strides;
  Expr step = int_imm(1, dtype_of(type.shape.back()));
  for (size_t d = type.shape.size(); d-- > 0; step = step * type.shape[d]) strides.insert(strides.begin(), step);
  return strides;
}

Expr window_start(const MatchBuffer& window) {
  std::vector<Expr> strides = strides_of(buffer_type(window.source.buffer));
  Expr start = int_imm(0, kInt32);
  for (size_t d = 0; d < strides.size(); ++d) {
    const Expr& min = window.source.ranges[d].min;
    Expr step = min * cast_to(strides[d], dtype_of(min));
    start = cast_to(start, dtype_of(step)) + step;
  }
  return start;
}

namespace {

// Whether all lanes of the index are within the dim.
bool stays_within(const Expr& index, const Expr& dim, const Analyzer& facts) {
  const Ramp* lanes = index.as<Ramp>();
  if (!lanes) return true;
  DType dtype = dtype_of(lanes->base);
  Expr count = lanes->lanes < 0 ? vscale(dtype) * int_imm(-lanes->lanes, dtype) : int_imm(lanes->lanes, dtype);
  Expr end = lanes->base + lanes->stride * (count - int_imm(1, dtype)) + int_imm(1, dtype);
  Expr limit = index_in_dtype(dim, dtype);
  return facts.can_prove(end <= limit) || facts.can_prove_equal(end, limit);
}

// Whether what the body does with the buffer depends on where rows lie.
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
      [&](const Call& call) {
        const OpRef* op = call.callee.as<OpRef>();
        bool takes_address = op && op->name == "tir.address_of";
        const BufferLoad* load = takes_address && !call.args.empty() ? call.args[0].as<BufferLoad>() : nullptr;
        found = found || (load && same_node(load->buffer, buffer));
      });
  return found;
}

bool holds(const std::vector<Buffer>& buffers, const Buffer& buffer) {
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& other) { return same_node(other, buffer); });
}

bool allocates(const PrimFuncRef& function, const Buffer& buffer) {
  bool found = false;
  walk(
      function->body, [&](const Block& block) { found = found || holds(block.alloc_buffers, buffer); },
      [&](const AllocBuffer& alloc) { found = found || same_node(alloc.buffer, buffer); });
  return found;
}

// Of another number than one that says nothing.
bool asks_align(const BufferType& type) { return type.data_alignment != BufferType{}.data_alignment; }

// The window's start, axes of one iteration as numbers.
Expr start_in(const MatchBuffer& window, const Analyzer& facts) {
  Expr start = window_start(window);
  VarMap still;
  for (const VarRef& var : free_vars(start)) {
    Interval bounds = facts.bounds(var);
    if (bounds.min == bounds.max) still.emplace(var.get(), int_imm(bounds.min, dtype_of(var)));
  }
  return facts.simplify(substitute(start, still));
}

// What the first element's position in memory and its address are known to be multiples of.
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
  // Memory that the host brings is aligned to its elements (vm/kernel_abi.h).
  if (holds(buffer_params(function), buffer)) return {step, size};
  // A window itself: what it asked for.
  return {std::gcd(std::max<int64_t>(source.offset_factor, 1), step),
          address(asks_align(source) ? std::max<int64_t>(source.data_alignment, 1) : size)};
}

std::string number(const Expr& e) {
  auto value = as_int(e);
  return value ? fmt::format("{}", *value) : print_expr(e);
}

std::optional<std::string> misplaced(const MatchBuffer& window, const PrimFuncRef& function, const Analyzer& facts) {
  const BufferType &type = buffer_type(window.buffer), &source = buffer_type(window.source.buffer);
  const std::string &name = window.buffer->name, &there = window.source.buffer->name;
  bool plain = type.scope == "global" && source.scope == "local";
  if (type.scope != source.scope && !plain)
    return fmt::format("'{}' asks for memory of scope '{}', that of '{}' is '{}'", name, type.scope, there,
                       source.scope);
  bool is_fixed =
      type.elem_offset && std::none_of(window.defines.begin(), window.defines.end(),
                                       [&](const VarRef& var) { return same_node(var, *type.elem_offset); });
  if (is_fixed && !facts.can_prove_equal(start_in(window, facts), *type.elem_offset))
    return fmt::format("'{}' asks to begin at element {}; it begins in '{}' at {}", name, number(*type.elem_offset),
                       there, number(start_in(window, facts)));
  bool asks_offset = type.offset_factor > 1;
  if (!asks_offset && !asks_align(type)) return std::nullopt;
  Divisors known = divisors_of(window, function, facts);
  auto says = [&](int64_t wanted, int64_t found, const char* unit) {
    return fmt::format("'{}' asks to begin at a multiple of {} {}; where it begins in '{}', {}, is one of {} only",
                       name, wanted, unit, there, number(start_in(window, facts)), found);
  };
  if (asks_offset && known.elements % type.offset_factor != 0)
    return says(type.offset_factor, known.elements, "elements (offset_factor)");
  if (asks_align(type) && (type.data_alignment < 1 || known.bytes % type.data_alignment != 0))
    return says(type.data_alignment, known.bytes, "bytes (align)");
  return std::nullopt;
}

}  // namespace

std::optional<std::string> misfit(const MatchBuffer& window, const Stmt& body, const PrimFuncRef& function,
                                  const Analyzer& facts) {
  if (auto why = misplaced(window, function, facts)) return why;
  const BufferType& type = buffer_type(window.buffer);
  std::vector<Expr> wanted = strides_of(type), there = strides_of(buffer_type(window.source.buffer));
  bool asks = !type.strides.empty();
  if (!asks && !relies_on_memory(body, window.buffer, facts)) return std::nullopt;
  size_t leading = there.size() - wanted.size();
  for (size_t d = 0; d < wanted.size(); ++d) {
    bool defines = std::any_of(window.defines.begin(), window.defines.end(),
                               [&](const VarRef& var) { return same_node(var, wanted[d]); });
    if (defines || is_int(window.source.ranges[leading + d].extent, 1)) continue;
    if (facts.can_prove_equal(index_in_dtype(there[leading + d], kInt64), index_in_dtype(wanted[d], kInt64))) continue;
    return fmt::format(
        "'{}' {} neighbours in its dim {} to lie {} elements apart, those of '{}' lie {} apart: lay them out so "
        "(transform_layout, cache_read), or declare strides",
        window.buffer->name, asks ? "asks for" : "is used in vectors or by address, which needs", d, number(wanted[d]),
        window.source.buffer->name, number(there[leading + d]));
  }
  return std::nullopt;
}

}  // namespace relaxc
