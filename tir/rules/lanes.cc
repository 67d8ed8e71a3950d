#include "tir/rules/lanes.h"

#include <algorithm>

#include "ir/intrinsics.h"
#include "support/checked_math.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/reorder.h"

namespace relaxc {

bool is_small(const std::vector<Expr>& extents, const Target& target, int64_t work) {
  for (const Expr& extent : extents) {
    auto known = as_int(extent);
    auto product = known ? checked_mul(work, *known) : std::nullopt;
    if (!product) return false;
    work = *product;
  }
  return work < 2 * target.wake_cycles;  // about two simple elements a cycle on one core
}

bool is_long(const Block& block) {
  constexpr std::string_view kInstructions[] = {
      "tir.abs",   "tir.bitwise_not", "tir.ceil",      "tir.copysign", "tir.floor", "tir.fma",  "tir.isfinite",
      "tir.isinf", "tir.isnan",       "tir.nearbyint", "tir.round",    "tir.rsqrt", "tir.sqrt", "tir.trunc"};
  bool result = false;
  walk(block.body, [&](const Ref<Call>& node) {
    const std::string& name = op_name(node);
    bool is_instruction =
        std::find(std::begin(kInstructions), std::end(kInstructions), name) != std::end(kInstructions);
    result = result || (find_intrinsic(name) && !is_instruction);
  });
  return result;
}

ColumnTile choose_column_tile(std::optional<int64_t> extent, int lanes) {
  if (!extent) return {lanes, 2};
  for (int candidate : {lanes, lanes / 2, lanes / 4}) {
    for (int vectors : {2, 3, 1}) {
      if (candidate >= 4 && *extent % (candidate * vectors) == 0) return {candidate, vectors};
    }
  }
  ColumnTile tile{lanes, 2};
  while (tile.lanes > 4 && *extent < tile.lanes) tile.lanes /= 2;
  if (*extent < tile.columns()) tile.vectors = 1;
  return tile;
}

int lanes_of(const Block& block, const Target& target) {
  int widest = 8;
  bool vectorizable = true;
  auto see = [&](const Expr& e) {
    if (e.type().is<PrimType>()) widest = std::max<int>(widest, dtype_of(e).bits);
  };
  walk(
      block.body, [&](const Ref<BufferLoad>& e) { see(e); }, [&](const Ref<Cast>& e) { see(e); },
      [&](const BufferStore& store) { see(store.value); }, [&](const For&) { vectorizable = false; },
      [&](const Ramp&) { vectorizable = false; }, [&](const Broadcast&) { vectorizable = false; },
      [&](const While&) { vectorizable = false; },
      [&](const Call& call) {
        const OpRef* op = call.callee.as<OpRef>();
        if (!op || !op->name.starts_with("tir.")) vectorizable = false;
      });
  return vectorizable ? std::max(target.vector_lanes(widest), 2) : 1;
}

std::optional<Expr> access_stride(const Buffer& buffer, const std::vector<Expr>& indices, const VarRef& axis,
                                  const Analyzer& facts) {
  bool plain = true;
  Expr position = int_imm(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    walk(indices[d], [&](const BufferLoad&) { plain = false; });
    if (!plain || dtype_of(indices[d]).lanes != 1) return std::nullopt;
    position = position * cast_to(buffer_type(buffer).shape[d], kInt64) + cast_to(indices[d], kInt64);
  }
  Expr stepped = substitute(position, {{axis.get(), static_cast<const Expr&>(axis) + 1}});
  Expr stride = facts.simplify(stepped - position);
  if (mentions(stride, axis)) return std::nullopt;
  return stride;
}

std::vector<Expr> Nest::spatial_extents() const {
  std::vector<Expr> result;
  for (size_t d = 0; d < num_spatial; ++d) result.push_back(axes[d].domain.extent);
  return result;
}

Nest in_order(Schedule& sch, const BlockRV& rv) {
  Nest nest{cast<Block>(sch.get(rv)), {}, 0, {}};
  Loops loops = sch.apply(GetLoops{rv});
  std::vector<VarRef> vars;
  for (const LoopRV& loop : loops) vars.push_back(cast<For>(sch.get(loop))->var);
  std::vector<size_t> order;
  for (IterKind kind : {IterKind::kSpatial, IterKind::kReduce}) {
    for (const IterVar& axis : axes_of(*nest.block, kind)) {
      auto var = std::find_if(vars.begin(), vars.end(), [&](const VarRef& v) { return same_node(v, axis.value); });
      order.push_back(static_cast<size_t>(var - vars.begin()));
      nest.axes.push_back(axis);
      nest.loops.push_back(loops.at(order.back()));
    }
    if (kind == IterKind::kSpatial) nest.num_spatial = nest.axes.size();
  }
  if (!std::is_sorted(order.begin(), order.end())) sch.apply(Reorder{nest.loops});
  return nest;
}

void share_out(Schedule& sch, const Loops& loops, bool parallel) {
  if (loops.empty()) return;
  LoopRV all = loops.size() > 1 ? sch.apply(Fuse{loops}) : loops[0];
  if (parallel) sch.apply(Parallel{all});
}

}  // namespace relaxc
