#include "tir/analysis/unwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "ir/regions.h"
#include "ir/text/printer.h"
#include "tir/analysis/buffer_uses.h"

namespace relaxc {

namespace {

// Returns the buffers whose elements may be written under another name.
std::set<const NodeHeader*> aliased_buffers(const PrimFuncRef& program) {
  std::set<const NodeHeader*> result;
  auto add_all = [&](const Expr& pointer) { walk(pointer, [&](const Ref<Var>& var) { result.insert(var.get()); }); };
  walk(
      program->body,
      [&](const Ref<Block>& block) {
        for (const MatchBuffer& window : block->match_buffers) result.insert(window.source.buffer.get());
      },
      [&](const Ref<Call>& call) {
        if (is_call_with_effect(call) || as_call(call, ops::kAddressOf) || as_call(call, ops::kBufferData))
          add_all(call);
      });
  return result;
}

// Returns which part of a dim is written, "[0, 4) of [0, 8)"; nullopt where it is not certain that elements are left
// out.
std::optional<std::string> left_out(const Range& written, const Expr& dim, const Analyzer& facts) {
  // The analyzer proves less about sums that are cast.
  const bool is_of_one_dtype = dtype_of(written.min) == dtype_of(dim) && dtype_of(written.extent) == dtype_of(dim);
  const DType dtype = is_of_one_dtype ? dtype_of(dim) : kInt64;
  const Expr first = cast_to(written.min, dtype), end = first + cast_to(written.extent, dtype),
             size = cast_to(dim, dtype);
  const bool misses_first = facts.can_prove(int_imm(1, dtype) <= first), misses_last = facts.can_prove(end < size);
  if (!misses_first && !misses_last) return std::nullopt;
  return fmt::format("[{}, {}) of [0, {})", print_plain(facts.simplify(first)), print_plain(facts.simplify(end)),
                     print_plain(facts.simplify(size)));
}

void add_partial(const BufferRegion& written, const Span& span, const Analyzer& facts, Diagnostics& result) {
  const std::vector<Expr>& shape = buffer_type(written.buffer).shape;
  for (size_t d = 0; d < shape.size() && d < written.ranges.size(); ++d) {
    std::optional<std::string> part = left_out(written.ranges[d], shape[d], facts);
    if (!part) continue;
    result.warning(span,
                   "the program stores to {} of dim {} of its result '{}': the other elements have no known value; "
                   "store to all of them",
                   *part, d, written.buffer->name);
    return;
  }
}

}  // namespace

std::vector<Diagnostic> unwritten_results(const PrimFuncRef& program, const std::vector<Buffer>& results) {
  Diagnostics found;
  const std::vector<BufferUse> uses = buffer_uses(program);
  const std::set<const NodeHeader*> aliased = aliased_buffers(program);
  const Accesses accesses = find_accesses(program->body);
  Analyzer facts;
  for (const BufferUse& use : uses) {
    for (const Expr& dim : buffer_type(use.buffer).shape) {
      if (dim.is<Var>()) facts.bind(cast<Var>(dim), Interval{.min = 1});
    }
  }
  for (const BufferUse& use : uses) {
    const Buffer& buffer = use.buffer;
    const bool is_result =
        std::ranges::any_of(results, [&](const Buffer& result) { return same_node(result, buffer); });
    if (!is_result || aliased.contains(buffer.get())) continue;
    const Span& span = buffer.span() ? buffer.span() : program.span();
    if (!use.is_written)
      found.warning(span, "the program stores nothing to its result '{}', whose elements have no known value",
                    buffer->name);
    for (const BufferRegion& written : accesses.writes) {
      if (same_node(written.buffer, buffer)) add_partial(written, span, facts, found);
    }
  }
  return found.all();
}

std::vector<Buffer> likely_results(const PrimFuncRef& program) {
  std::vector<Buffer> result;
  const std::vector<BufferUse> uses = buffer_uses(program);
  for (const BufferUse& use : uses) {
    const bool is_unused_last = &use == &uses.back() && uses.size() > 1 && !use.is_written;
    if (!use.is_read && (use.is_written || is_unused_last)) result.push_back(use.buffer);
  }
  return result;
}

}  // namespace relaxc
