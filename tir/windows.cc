#include "tir/windows.h"

#include <algorithm>

#include "ir/text/printer.h"
#include "ir/visit.h"
#include "tir/scalable.h"

namespace relaxc {

std::vector<Expr> strides_of(const BufferType& type) {
  if (!type.strides.empty() || type.shape.empty()) return type.strides;
  std::vector<Expr> strides;
  Expr step = int_imm(1, dtype_of(type.shape.back()));
  for (size_t d = type.shape.size(); d-- > 0; step = step * type.shape[d]) strides.insert(strides.begin(), step);
  return strides;
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

}  // namespace

namespace {
std::string number(const Expr& e) {
  auto value = as_int(e);
  return value ? fmt::format("{}", *value) : print_expr(e);
}
}  // namespace

std::optional<std::string> misfit(const MatchBuffer& window, const Stmt& body, const Analyzer& facts) {
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
