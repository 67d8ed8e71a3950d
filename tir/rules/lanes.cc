#include "tir/rules/lanes.h"

#include <algorithm>
#include <unordered_set>

#include "ir/intrinsics.h"
#include "ir/op_names.h"
#include "support/checked_math.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/byte_tables.h"
#include "tir/analysis/conditions.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

size_t position_of_loop(const Schedule& sch, const Loops& loops, const IterVar& axis) {
  auto loop = std::find_if(loops.begin(), loops.end(),
                           [&](const LoopRV& rv) { return same_node(cast<For>(sch.get(rv))->var, axis.value); });
  RELAXC_CHECK(loop != loops.end(), "expected a loop of axis '{}'", axis.var->name);
  return static_cast<size_t>(loop - loops.begin());
}

// Returns whether the call becomes tens of instructions for each vector.
bool is_expensive(const Ref<Call>& node) {
  constexpr OpName kInstructions[] = {
      ops::kScalarAbs,   ops::kScalarBitwiseNot, ops::kScalarCeil,  ops::kCopysign,    ops::kScalarFloor,
      ops::kFma,         ops::kScalarIsFinite,   ops::kScalarIsInf, ops::kScalarIsNan, ops::kNearbyint,
      ops::kScalarRound, ops::kScalarRsqrt,      ops::kScalarSqrt,  ops::kScalarTrunc};
  return find_intrinsic(op_name(node)) && !find_item(kInstructions, op_name(node), &OpName::text);
}

}  // namespace

std::optional<Stage> find_stage(const PrimFuncRef& program, std::string_view op) {
  auto anchor = find_anchor(program, op);
  auto nests = find_nests(program);
  if (!anchor || !nests) return std::nullopt;
  auto at = std::ranges::find_if(*nests, [&](const Ref<Block>& block) { return same_node(block, *anchor); });
  if (at == nests->end()) return std::nullopt;
  return Stage{*anchor, {at + 1, nests->end()}, {nests->begin(), at}};
}

bool is_small(const std::vector<Expr>& extents, const Target& target, int64_t work) {
  for (const Expr& extent : extents) {
    auto known = as_int(extent);
    auto product = known ? checked_mul(work, *known) : std::nullopt;
    if (!product) return false;
    work = *product;
  }
  return static_cast<double>(work) < target.elements_per_cycle * static_cast<double>(target.wake_cycles);
}

int64_t assumed_cores(const Target& target) { return std::max(target.cores, cost_model::kFewestCores); }

bool any_is_expensive(const std::vector<Ref<Block>>& blocks) {
  bool result = false;
  for (const Ref<Block>& block : blocks)
    walk(block->body, [&](const Ref<Call>& node) { result = result || is_expensive(node); });
  return result;
}

int64_t vectors_for_functions(const Block& block) {
  using namespace cost_model;
  constexpr OpName kInFloat[] = {{"tir.acos"}, {"tir.erf"},         {"tir.exp"},
                                 {"tir.log"},  ops::kScalarSigmoid, {"tir.tanh"}};
  int64_t vectors = 1;
  walk(block.body, [&](const Ref<Call>& node) {
    const DType dtype = dtype_of(node);
    if (!is_expensive(node) || !dtype.is_float() || dtype.bits > 32 || vectors == kDoubleFunctionVectors) return;
    vectors = find_item(kInFloat, op_name(node), &OpName::text) ? kFunctionVectors : kDoubleFunctionVectors;
  });
  return vectors;
}

int64_t rows_in_registers(int64_t vectors, int64_t spare, const Target& target) {
  return std::max<int64_t>(1, (target.num_vector_registers - vectors - spare) / vectors);
}

int64_t fewest_rows_beyond(int64_t extent, int64_t most) {
  int64_t best = most, least = most;
  for (int64_t rows = most; rows >= std::max<int64_t>(2, most / 2); --rows) {
    int64_t waste = (rows - extent % rows) % rows;
    if (waste >= least) continue;
    least = waste;
    best = rows;
  }
  return best;
}

ColumnTile choose_column_tile(std::optional<int64_t> extent, int lanes) {
  using namespace cost_model;
  if (!extent) return {lanes, kSideBySide};
  for (int candidate : {lanes, lanes / 2, lanes / 4}) {
    for (int vectors : {kSideBySide, 3, 1}) {
      if (candidate >= kFewestLanes && *extent % (candidate * vectors) == 0) return {candidate, vectors};
    }
  }
  ColumnTile tile{lanes, kSideBySide};
  while (tile.lanes > kFewestLanes && *extent < tile.lanes) tile.lanes /= 2;
  if (*extent < tile.columns()) tile.vectors = 1;
  return tile;
}

std::vector<Ref<BufferLoad>> operands_of(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store) return {};
  std::vector<Ref<BufferLoad>> result = loads_of(store->value);
  std::erase_if(result, [&](const Ref<BufferLoad>& load) { return same_node(load->buffer, store->buffer); });
  return result;
}

const DotForm* dot_form_of(const Block& product, DType a, DType b, const Target& target) {
  const DotForm* form = find_dot_form(a, b, dtype_of(product.body.as<BufferStore>()->value), target);
  const bool may_clamp = product.annotations.get_bool(annotation<"sums_in_int16">(), false);
  return form && (may_clamp || !form->clamps()) ? form : nullptr;
}

int lanes_of(const Block& block, const Target& target) {
  int widest = 8;
  auto widen = [&](const Expr& e) {
    if (e.type().is<PrimType>()) widest = std::max<int>(widest, dtype_of(e).bits);
  };
  bool vectorizable = !holds<While, Ramp, Broadcast>(block.body);
  std::unordered_set<const NodeHeader*> table_indices;  // which lowering keeps as bytes
  walk(
      block.body,
      [&](const Ref<BufferLoad>& e) {
        widen(e);
        if (byte_table_index(*e)) table_indices.insert(e->indices[0].get());
      },
      [&](const Ref<Cast>& e) {
        if (!table_indices.contains(e.get())) widen(e);
      },
      [&](const BufferStore& store) { widen(store.value); },
      [&](const Ref<Call>& call) { vectorizable = vectorizable && ops::is_tir_op(op_name(call)); });
  return vectorizable ? std::max(target.vector_lanes(widest), 2) : 1;
}

bool only_in_indices(const Block& block, const VarRef& axis) {
  bool ok = true;
  walk(block.body, [&](const BufferStore& store) {
    walk(
        store.value, [&](const BufferLoad&) { return false; },
        [&](const Ref<Var>& var) { ok = ok && !same_node(var, axis); });
  });
  return ok;
}

bool is_one_axis(const BufferLoad& access, const IterVar& outer, const IterVar& inner, const Analyzer& facts) {
  auto far = access_stride(access.buffer, access.indices, outer.var, facts),
       near = access_stride(access.buffer, access.indices, inner.var, facts);
  return far && near && facts.can_prove_equal(*far, *near * inner.domain.extent);
}

bool takes_as_one(const Block& block, size_t axis, const Analyzer& facts) {
  const BufferStore* store = single_store(block);
  const std::vector<IterVar> axes = axes_of(block, IterKind::kSpatial);
  if (!store || axes.size() < axis + 2 || !is_at(store->indices, axes)) return false;
  const IterVar &outer = axes[axis], &inner = axes[axis + 1];
  std::vector<Ref<BufferLoad>> accesses = loads_of(store->value);
  accesses.push_back(cast<BufferLoad>(load(store->buffer, store->indices)));
  return only_in_indices(block, outer.var) && only_in_indices(block, inner.var) &&
         std::ranges::all_of(accesses,
                             [&](const Ref<BufferLoad>& access) { return is_one_axis(*access, outer, inner, facts); });
}

int64_t bytes_of(const Buffer& buffer, int64_t symbolic) {
  std::optional<int64_t> bytes = buffer_type(buffer).dtype.bytes();
  for (const Expr& dim : buffer_type(buffer).shape) {
    const int64_t extent = as_int(dim).value_or(symbolic);
    if (extent == 0) return 0;
    bytes = bytes ? checked_mul(*bytes, extent) : std::nullopt;
  }
  return bytes.value_or(INT64_MAX);
}

bool is_lane_stride(const std::optional<Expr>& stride) { return stride && (is_int(*stride, 1) || is_int(*stride, 0)); }

std::vector<Expr> Nest::spatial_extents() const {
  return map_each(std::span(axes).first(num_spatial), [](const IterVar& axis) { return axis.domain.extent; });
}

Nest nest_of(const Ref<Block>& block) {
  Nest nest{block, axes_of(*block, IterKind::kSpatial), 0, {}};
  nest.num_spatial = nest.axes.size();
  std::ranges::copy(axes_of(*block, IterKind::kReduce), std::back_inserter(nest.axes));
  return nest;
}

Nest ordered_nest(Schedule& sch, const BlockRV& rv) {
  Nest nest = nest_of(cast<Block>(sch.get(rv)));
  Loops loops = sch.apply(GetLoops{rv});
  std::vector<size_t> order;
  for (const IterVar& axis : nest.axes) {
    order.push_back(position_of_loop(sch, loops, axis));
    nest.loops.push_back(loops[order.back()]);
  }
  if (!std::ranges::is_sorted(order)) sch.apply(Reorder{nest.loops});
  return nest;
}

Loops loops_of_axes(Schedule& sch, const BlockRV& rv) {
  Ref<Block> block = cast<Block>(sch.get(rv));
  Loops loops = sch.apply(GetLoops{rv});
  return map_each(block->iter_vars, [&](const IterVar& axis) { return loops[position_of_loop(sch, loops, axis)]; });
}

Loops loops_inside(Schedule& sch, const BlockRV& block, size_t outer) {
  Loops loops = sch.apply(GetLoops{block});
  return Loops(loops.begin() + static_cast<long>(outer), loops.end());
}

std::optional<int64_t> extent_of(const Schedule& sch, const LoopRV& loop) {
  return as_int(cast<For>(sch.get(loop))->extent);
}

std::optional<BlockRV> rest_of_sums(Schedule& sch) {
  for (const BlockRV& block : sch.apply(GetChildBlocks{sch.apply(GetBlock{"root"})})) {
    if (cast<Block>(sch.get(block))->annotations.has(annotation<"rest_of_sums">())) return block;
  }
  return std::nullopt;
}

void sum_rest_in_tile(Schedule& sch, const BlockRV& rest, const Loops& around, size_t column_axis, int64_t lanes,
                      const std::string& intrin) {
  constexpr int64_t kFirst = -2;  // registers are free for its sums before those of the product
  sch.apply(ComputeAt{rest, around.back(), true, kFirst});
  Loops tile = loops_inside(sch, rest, around.size());
  const LoopRV step = tile[tile.size() - 2], group = tile.back();
  tile.resize(tile.size() - 2);
  const Loops columns = sch.apply(Split{tile[column_axis], {std::nullopt, lanes}});
  tile.erase(tile.begin() + static_cast<long>(column_axis));
  tile.push_back(columns[0]);
  sch.apply(Reorder{joined({{step}, tile, {columns[1], group}})});
  unroll(sch, tile);
  sch.apply(DecomposeReduction{rest, step});
  sch.apply(Tensorize{columns[1], intrin, false});
}

Loops joined(std::initializer_list<Loops> parts) {
  Loops result;
  for (const Loops& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

LoopRV fused(Schedule& sch, const Loops& loops) { return loops.size() > 1 ? sch.apply(Fuse{loops}) : loops[0]; }

void unroll(Schedule& sch, const Loops& loops) {
  for (const LoopRV& loop : loops) sch.apply(Unroll{loop});
}

void keep_in_registers(Schedule& sch, const Loops& unrolled, const Loops& lanes) {
  unroll(sch, unrolled);
  for (const LoopRV& loop : lanes) sch.apply(Vectorize{loop});
}

size_t enough_for_threads(const Schedule& sch, const Loops& loops, int64_t most_shares) {
  size_t count = 0;
  for (int64_t shares = 1; count < loops.size() && shares < most_shares; ++count)
    shares *= extent_of(sch, loops[count]).value_or(1);
  return count;
}

void fuse_parallel(Schedule& sch, const Loops& loops, bool parallel) {
  if (loops.empty()) return;
  LoopRV all = fused(sch, loops);
  if (parallel) sch.apply(Parallel{all});
}

}  // namespace relaxc
