// The schedule of attention (passes/fuse_attention.cc): two products, and between them blocks that go over the rows of
// the first one's result, such as a softmax. Threads share blocks of rows of the second product. For each register tile
// of rows all that it needs is computed, so that no more than the scores of these rows exist, in the L1 or L2 cache:
//
//   for head, i in grid(heads, queries):          for head, block in parallel: for tile of rows in block:
//     s[i, :] = q[i, :] . k                         for panel of keys:                 in registers
//   for head, i: m[i] = max(s[i, :])          ->      s[tile, panel] = q . k, the scale and mask
//   for head, i: e[i, :] = exp(s[i, :] - m[i])      m; then e; then z, row by row
//   for head, i: o[i, :] = e[i, :] . v              for columns:                       in registers
//                                                     out[tile, columns] = e . v, divided by z
//
// A row is complete in its tile, so an ordinary softmax does (no running maximum as in FlashAttention, Dao et al.,
// 2022), and results do not depend on threads. Placing producers in a consumer's loop is Halide's compute_at.
#include <algorithm>

#include "support/checked_math.h"
#include "tir/analysis/annotations.h"
#include "tir/rules/blocks.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

using namespace cost_model;

// The products, whose last two spatial axes are rows and columns. The columns of the first are the depth of the second.
struct Attention {
  Ref<Block> scores, output;
  std::optional<int64_t> extent(const Block& product, size_t from_last) const {
    const std::vector<IterVar> axes = axes_of(product, IterKind::kSpatial);
    return as_int(axes[axes.size() - 1 - from_last].domain.extent);
  }
};

struct AttentionPlan {
  int64_t rows;                // of a register tile
  int64_t tiles;               // of rows, in a block that one thread takes
  ColumnTile scores, columns;  // of the register tiles of both products
  bool has_whole_tiles;        // else the last tile has as much code as there are numbers of rows
  bool parallel;
};

bool is_product(const Block& block) {
  return axes_of(block, IterKind::kSpatial).size() >= 2 && axes_of(block, IterKind::kReduce).size() == 1 &&
         is_contraction(block);
}

std::variant<Attention, std::string> find_attention(const PrimFuncRef& program, const Target& target, Decisions&) {
  auto stage = find_stage(program, "attention");
  if (!stage || !is_product(*stage->block)) return "it is not a list of plain nests with a product 'attention'";
  const std::vector<Ref<Block>> nests = *find_nests(program);
  auto reduces = [](const Ref<Block>& block) { return !axes_of(*block, IterKind::kReduce).empty(); };
  const Ref<Block> first = *std::ranges::find_if(nests, reduces);
  if (same_node(first, stage->block) || !is_product(*first)) return "no product comes before the one of 'attention'";
  if (lanes_of(*first, target) < kFewestLanes) return "the target has no vectors of its elements";
  return Attention{first, stage->block};
}

// Returns the iterations of the axes around rows and columns.
int64_t num_products(const Block& product) {
  const std::vector<IterVar> axes = axes_of(product, IterKind::kSpatial);
  int64_t count = 1;
  for (size_t d = 0; d + 2 < axes.size(); ++d)
    count = std::min(count * std::clamp<int64_t>(as_int(axes[d].domain.extent).value_or(1), 1, kMostProducts),
                     kMostProducts);
  return count;
}

// Returns the row tiles of a block: the keys are read for each of them, and there are enough blocks for all threads.
int64_t tiles_in_block(const Attention& attention, std::optional<int64_t> queries, int64_t rows) {
  const int64_t most = std::clamp(kMostQueriesInBlock / rows, int64_t{1}, kMostRowTilesOfScores);
  if (!queries) return most;
  const int64_t tiles = ceil_div(*queries, rows), least = ceil_div(kFewestCores, num_products(*attention.output));
  return ceil_div(tiles, ceil_div(tiles, std::clamp(tiles / least, int64_t{1}, most)));
}

AttentionPlan choose_attention(const Attention& attention, const Target& target, Decisions& decisions) {
  const int lanes = lanes_of(*attention.scores, target);
  AttentionPlan plan{.rows = 1,
                     .tiles = 1,
                     .scores = choose_column_tile(std::nullopt, lanes),
                     .columns = choose_column_tile(attention.extent(*attention.output, 0), lanes),
                     .has_whole_tiles = false,
                     .parallel = true};
  const auto queries = attention.extent(*attention.output, 1);
  const int64_t spare = target.num_vector_registers >= kManyRegisters ? kSpareOfMany : kSpareOfFew;
  const int64_t fit = rows_in_registers(std::max(plan.scores.vectors, plan.columns.vectors), spare, target);
  const int64_t most = std::min(fit, queries ? kMostRows : kFewestRows);
  plan.rows = decisions.number("rows", numbers_between(1, fit),
                               queries ? fewest_rows_beyond(*queries, std::clamp<int64_t>(*queries, 1, most)) : most);
  plan.tiles = decisions.number("row_tiles", numbers_between(1, kMostRowTilesOfScores),
                                tiles_in_block(attention, queries, plan.rows));
  plan.has_whole_tiles = queries.has_value();
  const std::vector<Expr> extents =
      map_each(axes_of(*attention.scores, IterKind::kSpatial), [](const IterVar& axis) { return axis.domain.extent; });
  plan.parallel = !is_small(extents, target, kGuessedSum);
  return plan;
}

class AttentionSchedule {
 public:
  AttentionSchedule(Schedule& sch, const AttentionPlan& plan)
      : sch_(sch), plan_(plan), output_(sch.apply(GetBlock{"attention"})) {}

  void run() {
    const Blocks blocks = children();
    scores_ = *std::ranges::find_if(blocks, [&](const BlockRV& block) { return reduces(block); });
    inline_elementwise();
    const BlockRV result = epilogue_of(output_), masked = epilogue_of(scores_);
    const Blocks between = blocks_between(masked);
    Loops around = tile_output(result);
    const LoopRV& tiles = around.back();
    for (size_t i = between.size(); i-- > 0;) sch_.apply(ComputeAt{between[i], tiles, true});
    sch_.apply(ComputeAt{masked, tiles, true});
    sch_.apply(ComputeAt{scores_, tiles, true});
    const Loops loops = sch_.apply(GetLoops{scores_});
    tile(scores_, masked, {}, Loops(loops.end() - 3, loops.end()), plan_.scores);
    for (const BlockRV& block : between) schedule_rows(block);
    if (!plan_.has_whole_tiles) sch_.apply(Annotate{tiles, annotation<"exact_tails">(), true});
    around.pop_back();
    const LoopRV all = fused(sch_, around);
    if (!plan_.has_whole_tiles) sch_.apply(Annotate{all, annotation<"keep_whole">(), true});
    if (plan_.parallel) sch_.apply(Parallel{all});
  }

 private:
  Blocks children() { return sch_.apply(GetChildBlocks{sch_.apply(GetBlock{"root"})}); }
  Ref<Block> block_of(const BlockRV& block) const { return cast<Block>(sch_.get(block)); }
  bool reduces(const BlockRV& block) const { return !axes_of(*block_of(block), IterKind::kReduce).empty(); }
  Buffer result_of(const BlockRV& block) const { return block_of(block)->writes[0].buffer; }
  bool is_same(const BlockRV& a, const BlockRV& b) const { return same_node(result_of(a), result_of(b)); }

  // Inlines elementwise blocks that only other elementwise ones read into these.
  void inline_elementwise() {
    for (const BlockRV& block : children()) {
      if (reduces(block) || sch_.tree("").is_param(result_of(block))) continue;
      const Blocks readers = sch_.apply(GetConsumers{block});
      if (std::ranges::none_of(readers, [&](const BlockRV& reader) { return reduces(reader); }))
        (void)sch_.try_apply(ComputeInline{block});
    }
  }
  // Returns the block that takes the product from registers.
  BlockRV epilogue_of(const BlockRV& product) {
    const Blocks merged = sch_.apply(MergeEpilogue{product});
    return merged.size() == 1 ? merged[0] : sch_.apply(CacheWrite{product, 0, "local"});
  }
  Blocks blocks_between(const BlockRV& masked) {
    const Blocks all = children();
    auto at = [&](const BlockRV& wanted) {
      return std::ranges::find_if(all, [&](const BlockRV& block) { return is_same(block, wanted); });
    };
    return {at(masked) + 1, at(output_)};
  }

  // Keeps a tile of the product in registers, the rows of one loop and some columns, to which the block that reads its
  // result is applied. Its loops are rows, columns and depth; those in `outer` stay around them.
  void tile(const BlockRV& product, const BlockRV& reader, const Loops& outer, const Loops& loops,
            const ColumnTile& width) {
    const LoopRV &row = loops[0], &depth = loops[2];
    const Loops columns = sch_.apply(Split{loops[1], {std::nullopt, width.vectors, width.lanes}});
    sch_.apply(Reorder{joined({outer, {columns[0], depth, row, columns[1], columns[2]}})});
    const size_t row_axis = row_axis_of(reader, result_of(product));
    const size_t num_outside = sch_.apply(GetLoops{product}).size() - 4;
    sch_.apply(ReverseComputeAt{reader, columns[0], true});
    Loops inside = loops_inside(sch_, reader, num_outside);
    const Loops last = sch_.apply(Split{inside.back(), {width.vectors, width.lanes}});
    const LoopRV reader_row = inside[row_axis];
    inside.pop_back();
    inside.erase(inside.begin() + static_cast<long>(row_axis));
    sch_.apply(Reorder{joined({inside, {reader_row}, last})});
    unroll(sch_, {row, reader_row});
    keep_in_registers(sch_, {columns[1], last[0]}, {columns[2], last[1]});
    sch_.apply(DecomposeReduction{product, depth});
  }
  // Returns the axis of the reader that goes over the rows of what it reads.
  size_t row_axis_of(const BlockRV& reader, const Buffer& product) const {
    const Ref<Block> block = block_of(reader);
    size_t axis = 0;
    walk(block->body, [&](const BufferLoad& load) {
      if (same_node(load.buffer, product))
        axis = position_of_axis(block->iter_vars, load.indices[load.indices.size() - 2]);
    });
    return axis;
  }

  // Returns the loops around the columns: those of the batch, of blocks, and of tiles in a block.
  Loops tile_output(const BlockRV& result) {
    const Loops loops = loops_of_axes(sch_, output_);
    const size_t row = loops.size() - 3;
    Loops around(loops.begin(), loops.begin() + static_cast<long>(row));
    const Loops rows = sch_.apply(Split{loops[row], {std::nullopt, plan_.tiles, plan_.rows}});
    around.insert(around.end(), {rows[0], rows[1]});
    tile(output_, result, around, {rows[2], loops[row + 1], loops[row + 2]}, plan_.columns);
    return around;
  }
  // Goes over the elements of each row in vectors.
  void schedule_rows(const BlockRV& block) {
    const int lanes = plan_.scores.lanes;
    if (reduces(block)) {
      reduce_in_lanes(sch_, block, sch_.apply(GetLoops{block}).back(), int64_t{2} * lanes);
      return;
    }
    sch_.apply(Vectorize{sch_.apply(Split{sch_.apply(GetLoops{block}).back(), {std::nullopt, lanes}})[1]});
  }

  Schedule& sch_;
  const AttentionPlan& plan_;
  BlockRV output_, scores_ = output_;
};

void follow_attention(Schedule& sch, const Attention&, const AttentionPlan& plan) {
  AttentionSchedule(sch, plan).run();
}

}  // namespace

ScheduleRule attention_rule() {
  return anchored({.name = "attention",
                   .op = "attention",
                   .doc = "two products with a softmax between them, block by block of rows",
                   .decisions = {{"rows", "rows of a register tile of both products",
                                  fmt::format("(vector registers - vectors - spare) / vectors, at most {}, divided "
                                              "evenly; of symbolic rows at most {}",
                                              kMostRows, kFewestRows)},
                                 {"row_tiles", "row tiles in a block that one thread takes",
                                  fmt::format("{} rows, and enough blocks for all threads", kMostQueriesInBlock)}}},
                  find_attention, choose_attention, follow_attention);
}

}  // namespace relaxc
