#include <algorithm>
#include <map>

#include "tir/lower/lower.h"

namespace relaxc {

// A stride that is offset modulo factor: rows that start at different banks or cache lines.
PrimFuncRef align_storage(const PrimFuncRef& function) {
  struct Wish {
    Buffer buffer;
    std::map<size_t, std::pair<int64_t, int64_t>> dims;  // factor, offset
  };
  std::vector<Wish> wishes;
  walk(function, [&](const Block& block) {
    const AttrValue* note = block.annotations.find("buffer_dim_align");
    if (!note || !note->as<AttrList>()) return;
    for (const AttrValue& item : *note->as<AttrList>()) {
      std::vector<int64_t> row;
      if (!from_attr(item, row) || row.size() != 4 || row[0] < 0 || row[2] <= 0) continue;
      if (static_cast<size_t>(row[0]) >= block.writes.size()) continue;
      const Buffer& buffer = block.writes[static_cast<size_t>(row[0])].buffer;
      auto known =
          std::find_if(wishes.begin(), wishes.end(), [&](const Wish& w) { return same_node(w.buffer, buffer); });
      if (known == wishes.end()) known = wishes.insert(wishes.end(), {buffer, {}});
      known->dims[static_cast<size_t>(row[1])] = {row[2], row[3]};
    }
  });
  VarMap strided;
  for (const Wish& wish : wishes) {
    bool is_param = std::any_of(function->params.begin(), function->params.end(),
                                [&](const VarRef& param) { return same_node(param, wish.buffer); });
    BufferType type = buffer_type(wish.buffer);
    if (is_param || !type.strides.empty() || type.shape.empty()) continue;
    Expr stride = int_imm(1, dtype_of(type.shape.back()));
    for (size_t d = type.shape.size(); d-- > 0;) {
      if (auto it = wish.dims.find(d); it != wish.dims.end()) {
        auto [factor, offset] = it->second;
        stride = simplify(stride +
                          floor_mod(floor_mod(int_imm(offset, dtype_of(stride)) - stride, factor) + factor, factor));
      }
      type.strides.insert(type.strides.begin(), stride);
      stride = stride * type.shape[d];
    }
    strided.emplace(wish.buffer.get(), make_var(wish.buffer->name, make(std::move(type)), wish.buffer.span()));
  }
  if (strided.empty()) return function;
  Substitution substitution(strided);
  return cast<PrimFunc>(substitution(static_cast<const Expr&>(function)));
}

}  // namespace relaxc
