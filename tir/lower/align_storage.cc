#include <algorithm>
#include <map>
#include <unordered_set>

#include "tir/analysis/annotations.h"
#include "tir/analysis/windows.h"
#include "tir/lower/lower.h"

namespace relaxc {

// Gives buffers the strides that blocks request with buffer_dim_align (see the primitive storage_align). Such a stride
// is `offset` modulo `factor`, so that rows start in different banks or cache sets. A buffer with a window that
// requires an alignment gets explicit strides, too: they keep the window aligned when compact_buffers moves the buffer.
PrimFuncRef align_storage(const PrimFuncRef& function) {
  struct Request {
    Buffer buffer;
    std::map<size_t, std::pair<int64_t, int64_t>> dims;  // factor, offset
  };
  std::unordered_map<const NodeHeader*, Request> requests;
  auto request_for = [&](const Buffer& buffer) -> Request& {
    return requests.try_emplace(buffer.get(), Request{buffer, {}}).first->second;
  };
  std::unordered_set<const NodeHeader*> allocated;
  walk(function, [&](const Block& block) {
    for (const Buffer& buffer : block.alloc_buffers) allocated.insert(buffer.get());
  });
  walk(function, [&](const Block& block) {
    for (const MatchBuffer& window : block.match_buffers) {
      bool is_aligned = requires_alignment(buffer_type(window.buffer));
      if (is_aligned && allocated.contains(window.source.buffer.get())) request_for(window.source.buffer);
    }
    const AttrValue* noted = block.annotations.find(annotation<"buffer_dim_align">());
    if (!noted || !noted->as<AttrList>()) return;
    for (const AttrValue& item : *noted->as<AttrList>()) {
      std::vector<int64_t> row;
      if (!from_attr(item, row) || row.size() != 4 || row[0] < 0 || row[2] <= 0) continue;
      size_t write = static_cast<size_t>(row[0]), axis = static_cast<size_t>(row[1]);
      if (write < block.writes.size()) request_for(block.writes[write].buffer).dims[axis] = {row[2], row[3]};
    }
  });
  VarMap strided;
  for (const VarRef& param : function->params) requests.erase(param.get());
  for (const auto& [key, request] : requests) {
    BufferType type = buffer_type(request.buffer);
    if (!type.strides.empty() || type.shape.empty()) continue;
    auto is_wide = [](const Expr& dim) { return dtype_of(dim) == kInt64; };
    Expr stride = int_imm(1, std::ranges::any_of(type.shape, is_wide) ? kInt64 : dtype_of(type.shape.back()));
    for (size_t d = type.shape.size(); d-- > 0;) {
      if (auto it = request.dims.find(d); it != request.dims.end()) {
        auto [factor, offset] = it->second;
        Expr missing = floor_mod(int_imm(offset, dtype_of(stride)) - stride, factor);
        stride = simplify(stride + floor_mod(missing + factor, factor));
      }
      type.strides.insert(type.strides.begin(), stride);
      stride = stride * cast_to(type.shape[d], dtype_of(stride));
    }
    strided.emplace(key, make_var(request.buffer->name, make(std::move(type)), request.buffer.span()));
  }
  if (strided.empty()) return function;
  return cast<PrimFunc>(substitute(static_cast<const Expr&>(function), strided));
}

}  // namespace relaxc
