// The schedule of products on matrix registers (Target::has_int8_tiles), also of convolutions, whose windows make the
// left operand (im2col). All rows are one axis, all columns, and all elements of a sum:
//
//   for rows, columns of a tile: for depth: sums[row, column] += left[row, depth] * right[depth, column]
//
// Tiles of sums stay in registers during the whole depth, then go through memory to the blocks that follow. Operands
// are padded to whole tiles. The right one is constant and laid out when the program is compiled; the left one is laid
// out in rows, for a block of them at a time, or before all products.
#include <algorithm>

#include "ir/op_names.h"
#include "support/checked_math.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/primitives/pad_einsum.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

using Positions = std::vector<size_t>;

// Axes of a block that become one. The first one is the outermost.
struct MergedAxes {
  Positions axes;
  std::vector<Expr> extents;

  void add(size_t position, const Expr& extent) {
    axes.push_back(position);
    extents.push_back(extent);
  }
  Expr extent() const {
    Expr result = int_imm(1);
    for (const Expr& each : extents) result = simplify(result * each);
    return result;
  }
  Expr merged(const Exprs& at) const {
    Expr result = int_imm(0);
    for (size_t i = 0; i < axes.size(); ++i) result = result * extents[i] + at[axes[i]];
    return result;
  }
};

struct TileProduct : Stage {
  std::string op;
  const TileForm* form;
  Ref<BufferLoad> left, right;
  MergedAxes rows, columns, depth;
  // The axes of the depth in which neighbours of the left operand are not neighbours in memory, and then all others.
  std::vector<int64_t> parts_of_depth = {};

  std::optional<int64_t> num_rows() const { return as_int(rows.extent()); }
  int64_t num_columns() const { return *as_int(columns.extent()); }
  int64_t depth_of_sum() const { return *as_int(depth.extent()); }
};

// Sorts the axes of a product; returns why it is none.
std::optional<std::string> sort_axes(TileProduct& product) {
  const std::vector<IterVar>& axes = product.block->iter_vars;
  for (size_t a = 0; a < axes.size(); ++a) {
    const IterVar& axis = axes[a];
    const bool in_left = uses_var(product.left->indices, axis.var),
               in_right = uses_var(product.right->indices, axis.var);
    const bool is_reduced = axis.kind == IterKind::kReduce;
    if (is_reduced ? !in_left || !in_right : in_left && in_right && !is_int(axis.domain.extent, 1))
      return fmt::format("axis '{}' is none of rows, columns and depth", axis.var->name);
    (is_reduced ? product.depth : in_right ? product.columns : product.rows).add(a, axis.domain.extent);
  }
  for (const MergedAxes* known : {&product.columns, &product.depth}) {
    if (known->axes.empty() || !as_int(known->extent())) return "its columns or its depth are symbolic";
  }
  return std::nullopt;
}

// Returns the extents of the parts of the depth, of which the last one is contiguous in the left operand.
std::vector<int64_t> parts_of_depth(const TileProduct& product) {
  const std::vector<IterVar>& axes = product.block->iter_vars;
  std::vector<int64_t> parts;
  for (size_t i = product.depth.axes.size(); i-- > 0;) {
    const int64_t extent = *as_int(product.depth.extents[i]);
    const bool joins = parts.size() == 1 && is_one_axis(*product.left, axes[product.depth.axes[i]],
                                                        axes[product.depth.axes[i + 1]], Analyzer());
    if (joins || (!parts.empty() && extent == 1)) {
      parts.front() *= extent;
    } else {
      parts.insert(parts.begin(), extent);
    }
  }
  return parts;
}

std::variant<TileProduct, std::string> find_tile_product(const PrimFuncRef& program, const Target& target, Decisions&) {
  if (!target.has_int8_tiles && !target.has_bfloat16_tiles) return "the target has no matrix registers";
  for (const std::string& op : {std::string("matmul"), std::string(ops::short_name(ops::kConv2d))}) {
    std::optional<Stage> stage = find_stage(program, op);
    if (!stage) continue;
    std::vector<Ref<BufferLoad>> operands = operands_of(*stage->block);
    const BufferStore* store = stage->block->body.as<BufferStore>();
    if (operands.size() != 2 || !store) return "it is not a product of two operands";
    const TileForm* form =
        find_tile_form(dtype_of(Expr(operands[0])), dtype_of(Expr(operands[1])), dtype_of(store->value), target);
    if (!form) return "no tile form has its dtypes";
    const std::string& constant = stage->block->annotations.get_string(annotation<"constant_operand">(), "");
    if (constant != operands[1]->buffer->name) return "its right operand is not constant";
    TileProduct product{*stage, op, form, operands[0], operands[1], {}, {}, {}};
    if (auto why = sort_axes(product)) return *why;
    if (product.num_rows().value_or(cost_model::kFewestTileRows) < cost_model::kFewestTileRows ||
        product.num_columns() < kTileRows || product.depth_of_sum() < form->depth)
      return "tiles would be mostly padding";
    product.parts_of_depth = parts_of_depth(product);
    return product;
  }
  return fmt::format("it is not a list of plain nests with a block of 'matmul' or '{}'", ops::short_name(ops::kConv2d));
}

struct TilePlan {
  int64_t row_tiles, column_tiles;  // of sums in registers
  int64_t groups;                   // of row tiles, for which the left operand is laid out together
  bool copies_before;               // it is laid out before all products
};

TilePlan choose_tiles(const TileProduct& product, const Target& target, Decisions& decisions) {
  const int64_t depth = ceil_div(product.depth_of_sum(), product.form->depth) * kTileBytes;  // bytes
  const std::optional<int64_t> rows = product.num_rows();
  const int64_t column_tiles = ceil_div(product.num_columns(), kTileRows);
  TilePlan plan{};
  const bool has_pairs = !rows || ceil_div(*rows, kTileRows) % 2 == 0 || *rows > cost_model::kManyTileRows * kTileRows;
  plan.row_tiles = decisions.number("row_tiles", {1, 2}, has_pairs ? 2 : 1);
  plan.column_tiles = decisions.number("column_tiles", {1, 2}, column_tiles % 2 == 0 ? 2 : 1);
  const int64_t group_bytes = plan.row_tiles * kTileRows * depth;
  const int64_t fitting = std::clamp<int64_t>(target.l2_of_core() / 4 / group_bytes, 1, cost_model::kMostTileGroups);
  const bool are_few = rows && *rows * depth <= target.l2_of_core() / 2;
  plan.copies_before = decisions.flag("copies_before", are_few);
  const int64_t shares = cost_model::kSharesPerCore * assumed_cores(target);
  int64_t groups =
      rows ? std::min(fitting, std::max<int64_t>(1, ceil_div(*rows, plan.row_tiles * kTileRows * shares))) : fitting;
  plan.groups = decisions.number("groups", numbers_between(1, cost_model::kMostTileGroups), groups);
  return plan;
}

class TileSchedule {
 public:
  TileSchedule(Schedule& sch, const TileProduct& product, const TilePlan& plan)
      : sch_(sch), product_(product), plan_(plan), form_(*product.form), rv_(sch.apply(GetBlock{product.op.c_str()})) {}

  void run() {
    take_epilogue();
    merge_axes();
    lay_out_operands();
    BlockRV store = sch_.apply(CacheWrite{rv_, 0, kTileScope});
    split_loops();
    move_results(store);
    load_tiles();
    multiply();
    place_copies();
    distribute();
  }

 private:
  // The last block reads all sums, at the same axes.
  void take_epilogue() {
    const size_t rank = product_.rows.axes.size() + product_.columns.axes.size();
    Blocks found = sch_.apply(MergeEpilogue{rv_});
    const bool fits = found.size() == 1 && cast<Block>(sch_.get(found[0]))->iter_vars.size() == rank;
    epilogue_ = fits ? found[0] : sch_.apply(CacheWrite{rv_, 0, "global"});
  }

  void merge_axes() {
    const size_t rank = product_.block->iter_vars.size();
    const IndexMap result(rank - product_.depth.axes.size(), [&](const Exprs& at) {
      return Exprs{product_.rows.merged(at), product_.columns.merged(at)};
    });
    sch_.apply(TransformBlockLayout{rv_, IndexMap(rank, [&](const Exprs& at) {
                                      return Exprs{product_.rows.merged(at), product_.columns.merged(at),
                                                   product_.depth.merged(at)};
                                    })});
    sch_.apply(TransformBlockLayout{epilogue_, result});
    sch_.apply(TransformLayout{rv_, {"write", 0}, result});
  }

  Ref<BufferLoad> operand(size_t i) const { return operands_of(*cast<Block>(sch_.get(rv_)))[i]; }
  // Returns the block that makes an operand.
  BlockRV maker(size_t i) {
    const Buffer buffer = operand(i)->buffer;
    Blocks all = sch_.apply(GetProducers{rv_});
    return *std::ranges::find_if(all, [&](const BlockRV& block) { return same_node(write_of(block), buffer); });
  }
  Buffer write_of(const BlockRV& block) const { return cast<Block>(sch_.get(block))->writes[0].buffer; }

  void lay_out_operands() {
    BlockRV left = sch_.apply(ReindexCacheRead{rv_, product_.left->buffer->name.c_str(), "global",
                                               IndexMap(3, [](const Exprs& at) { return Exprs{at[0], at[2]}; })});
    BlockRV right = sch_.apply(ReindexCacheRead{rv_, product_.right->buffer->name.c_str(), "global",
                                                IndexMap(3, [](const Exprs& at) { return Exprs{at[1], at[2]}; })});
    for (const BlockRV& border : sch_.apply(GetProducers{left})) (void)sch_.try_apply(ComputeInline{border});
    const Buffer result = write_of(rv_), left_rows = operand(0)->buffer, right_columns = operand(1)->buffer;
    sch_.apply(PadEinsum{rv_, {plan_.row_tiles * kTileRows, plan_.column_tiles * kTileRows, form_.depth}});
    copies_ = {left};
    if (!same_node(operand(0)->buffer, left_rows)) {
      copies_.push_back(maker(0));
      if (product_.depth_of_sum() % form_.depth == 0) {
        sch_.apply(ComputeInline{left});
        copies_ = {copies_[1]};
      }
    }
    if (!same_node(operand(1)->buffer, right_columns)) sch_.apply(ComputeInline{right});
    if (!same_node(write_of(rv_), result)) sch_.apply(ComputeInline{sch_.apply(GetConsumers{rv_}).at(0)});
    right = maker(1);
    sch_.apply(TransformLayout{right, {"write", 0}, IndexMap(2, [&](const Exprs& at) {
                                 const int64_t group = form_.group();
                                 return Exprs{floor_div(at[0], kTileRows), floor_div(at[1], form_.depth),
                                              floor_div(floor_mod(at[1], form_.depth), group),
                                              floor_mod(at[0], kTileRows), floor_mod(at[1], group)};
                               })});
    sch_.apply(Annotate{right, annotation<"meta_schedule.layout_rewrite_preproc">(), true});
  }

  void split_loops() {
    Loops loops = sch_.apply(GetLoops{rv_});
    rows_ = sch_.apply(Split{loops[0], {std::nullopt, plan_.groups, plan_.row_tiles, kTileRows}});
    columns_ = sch_.apply(Split{loops[1], {std::nullopt, plan_.column_tiles, kTileRows}});
    depth_ = sch_.apply(Split{loops[2], {std::nullopt, form_.depth}});
    sch_.apply(Reorder{
        Loops{rows_[0], columns_[0], rows_[1], depth_[0], rows_[2], columns_[1], rows_[3], columns_[2], depth_[1]}});
  }

  // Moves the blocks that read the sums into the loop over tiles.
  void move_results(const BlockRV& store) {
    const LoopRV& tile = rows_[1];
    sch_.apply(ReverseComputeAt{store, tile, true});
    lay_out_in_tiles(rv_, kTileRows);
    use_tiles(store, 3, fmt::format("amx_store_{0}x{0}_{1}", kTileRows, short_name(form_.result)));
    sch_.apply(ReverseComputeAt{epilogue_, tile, true});
    Loops inner = loops_inside(sch_, epilogue_, 3);
    Loops vectors = sch_.apply(Split{inner[1], {std::nullopt, kTileRows}});
    keep_in_registers(sch_, {vectors[0]}, {vectors[1]});
  }

  // Lays out what a block writes, a matrix, in tiles of so many columns.
  void lay_out_in_tiles(const BlockRV& block, int64_t columns) {
    sch_.apply(TransformLayout{block, {"write", 0}, IndexMap(2, [&](const Exprs& at) {
                                 return Exprs{floor_div(at[0], kTileRows), floor_div(at[1], columns),
                                              floor_mod(at[0], kTileRows), floor_mod(at[1], columns)};
                               })});
  }

  // Makes the last two loops of a block, rows and columns, instructions on tiles, and unrolls the loops over tiles.
  void use_tiles(const BlockRV& block, size_t outer, const std::string& intrin) {
    Loops inner = loops_inside(sch_, block, outer);
    Loops rows = sch_.apply(Split{inner[0], {std::nullopt, kTileRows}});
    Loops columns = sch_.apply(Split{inner[1], {std::nullopt, kTileRows}});
    sch_.apply(Reorder{Loops{rows[0], columns[0], rows[1], columns[1]}});
    unroll(sch_, {rows[0], columns[0]});
    sch_.apply(Tensorize{rows[1], intrin});
  }

  void load_tiles() {
    const std::string left = fmt::format("amx_load_{}x{}_{}", kTileRows, form_.depth, short_name(form_.a));
    BlockRV a = sch_.apply(CacheRead{rv_, operand(0)->buffer->name.c_str(), kTileScope});
    sch_.apply(ComputeAt{a, depth_[0], true});
    Loops rows = sch_.apply(Split{loops_inside(sch_, a, 4)[0], {std::nullopt, kTileRows}});
    lay_out_in_tiles(a, form_.depth);
    sch_.apply(Unroll{rows[0]});
    sch_.apply(Tensorize{rows[1], left});
    const std::string right = fmt::format("amx_load_{0}x{0}x{1}_{2}", kTileRows, form_.group(), short_name(form_.b));
    BlockRV b = sch_.apply(CacheRead{rv_, operand(1)->buffer->name.c_str(), kTileScope});
    sch_.apply(ComputeAt{b, depth_[0], true});
    Loops tiles = loops_inside(sch_, b, 4);
    sch_.apply(Unroll{tiles[0]});
    sch_.apply(Tensorize{tiles[2], right});
  }

  void multiply() {
    BlockRV zero = sch_.apply(DecomposeReduction{rv_, depth_[0]});
    Loops inner = loops_inside(sch_, zero, 3);
    unroll(sch_, {inner[0], inner[1]});
    sch_.apply(Tensorize{inner[2], fmt::format("amx_zero_{0}x{0}_{1}", kTileRows, short_name(form_.result))});
    unroll(sch_, {rows_[2], columns_[1]});
    sch_.apply(Tensorize{rows_[3], form_.name});
  }

  // The copies of the left operand, the last of which the product reads.
  void place_copies() {
    for (size_t i = copies_.size(); i-- > 0;) {
      const BlockRV& copy = copies_[i];
      const bool reads_operand = i == 0;
      if (reads_operand && product_.parts_of_depth.size() > 1) split_depth(copy);
      if (!plan_.copies_before) sch_.apply(ComputeAt{copy, rows_[0], true});
      Loops loops = loops_inside(sch_, copy, plan_.copies_before ? 0 : 1);
      const int64_t width = extent_of(sch_, loops.back()).value_or(kTileBytes);
      Loops vectors = sch_.apply(Split{loops.back(), {std::nullopt, std::min<int64_t>(width, kTileBytes)}});
      sch_.apply(Vectorize{vectors[1]});
      if (plan_.copies_before) sch_.apply(Parallel{loops[0]});
    }
  }
  void split_depth(const BlockRV& copy) {
    const std::vector<int64_t>& parts = product_.parts_of_depth;
    sch_.apply(TransformBlockLayout{copy, IndexMap(2, [&](const Exprs& at) {
                                      Exprs result = {at[0]};
                                      int64_t inside = 1;
                                      for (size_t i = parts.size(); i-- > 0;) {
                                        Expr digit = floor_div(at[1], inside);
                                        if (i > 0) digit = floor_mod(digit, parts[i]);
                                        result.insert(result.begin() + 1, digit);
                                        inside *= parts[i];
                                      }
                                      return result;
                                    })});
  }

  void distribute() {
    const LoopRV shared = plan_.copies_before ? sch_.apply(Fuse{Loops{rows_[0], columns_[0]}}) : rows_[0];
    // Only the last tile of rows tests which of them there are.
    sch_.apply(Annotate{shared, annotation<"keep_whole">(), true});
    sch_.apply(Parallel{shared});
  }

  Schedule& sch_;
  const TileProduct& product_;
  const TilePlan& plan_;
  const TileForm& form_;
  BlockRV rv_, epilogue_;
  Blocks copies_ = {};
  Loops rows_ = {}, columns_ = {}, depth_ = {};
};

void schedule_tiles(Schedule& sch, const TileProduct& product, const TilePlan& plan) {
  TileSchedule(sch, product, plan).run();
}

}  // namespace

ScheduleRule tiles_rule() {
  return anchored(
      {.name = "tiles",
       .doc = "a product or convolution of bytes or bfloat16 on the tiles of matrix registers (AMX)",
       .decisions = {{"row_tiles", "tiles of rows in registers", "2, or 1 where few rows make an odd number"},
                     {"column_tiles", "tiles of columns in registers", "2, or 1 of an odd number"},
                     {"copies_before", "the left operand is laid out before all products",
                      "where it fills at most half of L2"},
                     {"groups", "of row tiles, for which it is laid out together otherwise", "a quarter of L2"}}},
      find_tile_product, choose_tiles, schedule_tiles);
}

}  // namespace relaxc
