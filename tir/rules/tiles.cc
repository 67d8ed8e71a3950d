// The schedule of products on matrix registers (Target::has_int8_tiles), also of convolutions, whose windows make the
// left operand (im2col). All rows are one axis, all columns, and all elements of a sum:
//
//   for rows, columns of a tile: for depth: sums[row, column] += left[row, depth] * right[depth, column]
//
// Tiles of sums stay in registers during the whole depth, then go through memory to the blocks that follow. Operands
// are padded to whole tiles. The right one is constant and laid out when the program is compiled. The left one is read
// where it lies if its rows are evenly apart there; else it is laid out in rows, for a block of them at a time, or
// before all products.
//
// An image with a border is stored with it first, pixel after pixel. If as many results are computed in each row of
// pixels as the image with its border has columns, all rows of the product are evenly apart, for each element of the
// window: row i of the product starts at pixel stride * i. The results beyond the width are not stored. Rows of pixels
// of a stride lie in images of their own, for each remainder.
#include <algorithm>
#include <utility>

#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/primitives/extend_axis.h"
#include "tir/primitives/pad_einsum.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"
#include "tir/rules/tile_product.h"

namespace relaxc {

namespace {

Exprs one_after_another(Exprs first, const Exprs& others) {
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

struct TilePlan {
  int64_t row_tiles, column_tiles;  // of sums in registers
  int64_t groups;                   // of row tiles, for which the left operand is laid out together
  bool in_place;                    // it is read where it lies
  bool copies_before;               // it is laid out before all products
  bool columns_first;               // all rows use a tile of columns before the next one
};

// Returns the number of groups of row tiles whose part of the left operand fills a quarter of L2, that divides the
// number of tiles and leaves work for all threads.
int64_t row_groups(int64_t tiles, int64_t tile_bytes, const Target& target) {
  const int64_t shares = cost_model::kSharesPerCore * assumed_cores(target);
  const int64_t most =
      std::min({target.l2_of_core() / 4 / tile_bytes, ceil_div(tiles, shares), cost_model::kMostTileGroups});
  const std::vector<int64_t> divisors = divisors_between(1, std::max<int64_t>(most, 1), tiles);
  return divisors.empty() ? 1 : divisors.back();
}

TilePlan choose_tiles(const TileProduct& product, const Target& target, Decisions& decisions) {
  const int64_t row_bytes = ceil_div(product.depth_of_sum(), product.form->depth) * kTileBytes;
  const std::optional<int64_t> rows = product.num_rows();
  const int64_t half_l2 = target.l2_of_core() / 2;
  TilePlan plan{};
  plan.in_place = product.windows || (has_even_rows(product) && decisions.flag("in_place", true));
  const bool has_pairs = rows ? ceil_div(*rows, kTileRows) % 2 == 0 || *rows > cost_model::kManyTileRows * kTileRows
                              : product.op == kMatmul;
  const bool must_be_even = plan.in_place && !product.windows && *rows / kTileRows % 2 != 0;
  // Rows that are laid out where they are used leave a small right operand in the L1 cache if they are few.
  const int64_t right_bytes = product.num_columns() * row_bytes;
  const bool is_beside_rows = !plan.in_place && rows && *rows >= cost_model::kFewestRowBlocks * 2 * kTileRows &&
                              right_bytes <= 2 * target.l1_of_core();
  plan.row_tiles = decisions.number("row_tiles", must_be_even ? Ints{1} : Ints{1, 2},
                                    has_pairs && !must_be_even && !is_beside_rows ? 2 : 1);
  plan.column_tiles =
      decisions.number("column_tiles", {1, 2}, ceil_div(product.num_columns(), kTileRows) % 2 == 0 ? 2 : 1);
  const bool right_is_large = right_bytes > half_l2;
  const bool left_is_small = rows ? *rows * row_bytes <= half_l2 : right_is_large || product.op == kMatmul;
  // A block of rows that is laid out where it is used is still in the L1 cache there, but each is the work of one
  // thread.
  const int64_t tile_rows = plan.row_tiles * kTileRows;
  const bool has_few_blocks = !rows || *rows < cost_model::kFewestRowBlocks * tile_rows;
  plan.copies_before =
      !plan.in_place && decisions.flag("copies_before", left_is_small && (right_is_large || has_few_blocks));
  // Each row of a stored image is read for several rows of the window, during which it stays in the L1 cache beside a
  // tile of columns, if not beside all of them.
  const int64_t half_l1 = target.l1_of_core() / 2, columns = plan.column_tiles * kTileRows;
  const bool keeps_columns = product.windows && columns * row_bytes <= half_l1 && right_bytes > half_l1;
  plan.columns_first = (plan.in_place || plan.copies_before) &&
                       decisions.flag("columns_first", (right_is_large && left_is_small) || keeps_columns);
  const int64_t groups = rows ? row_groups(ceil_div(*rows, tile_rows), tile_rows * row_bytes, target) : 1;
  // A group of fewer tiles than the others would be a condition on instructions.
  plan.groups = decisions.number(
      "groups", rows ? divisors_between(1, cost_model::kMostTileGroups, ceil_div(*rows, tile_rows)) : Ints{1}, groups);
  return plan;
}

class TileSchedule {
 public:
  TileSchedule(Schedule& sch, const TileProduct& product, const TilePlan& plan)
      : sch_(sch), product_(product), plan_(plan), form_(*product.form), rv_(sch.apply(GetBlock{product.op.c_str()})) {}

  void run() {
    take_epilogue();
    if (product_.stores_image) store_image();
    if (product_.windows) widen_rows(*product_.windows);
    parts_of_depth_ = parts_of(product_.depth, product_.block->iter_vars, *operand(0));
    merge_axes();
    plan_.in_place ? read_in_place() : lay_out_left();
    lay_out_right();
    BlockRV store = sch_.apply(CacheWrite{rv_, 0, kTileScope});
    split_loops();
    move_results(store);
    load_tiles();
    multiply();
    place_copies();
    distribute();
  }

 private:
  // The axes of the product are now those of the batch, rows, columns and depth; b counts the first ones.
  size_t b() const { return product_.batch.size(); }
  // Returns the first positions, those of the batch, followed by others.
  Exprs in_batch(const Exprs& at, const Exprs& others) const {
    return one_after_another(Exprs(at.begin(), at.begin() + static_cast<long>(b())), others);
  }

  // The last block reads all sums, at the same axes.
  void take_epilogue() {
    const size_t rank = product_.block->iter_vars.size() - product_.depth.axes.size();
    Blocks found = sch_.apply(MergeEpilogue{rv_});
    const bool fits = found.size() == 1 && cast<Block>(sch_.get(found[0]))->iter_vars.size() == rank;
    epilogue_ = fits ? found[0] : sch_.apply(CacheWrite{rv_, 0, "global"});
  }

  void store_image() {
    const BlockRV image = is_made(product_, product_.left->buffer)
                              ? maker(0)
                              : sch_.apply(CacheRead{rv_, operand(0)->buffer->name.c_str(), "global"});
    if (product_.windows) extend_image(image, *product_.windows);
    const std::vector<Expr>& shape = buffer_type(write_of(image)).shape;
    const int64_t block = *as_int(shape[4]), channels = *as_int(shape[1]) * block;
    sch_.apply(TransformLayout{image, {"write", 0}, IndexMap(kRankOfBlocks, [&](const Exprs& at) {
                                 return place_in_image(at, at[1] * block + at[4], channels);
                               })});
    Loops loops = sch_.apply(GetLoops{image});
    sch_.apply(Reorder{Loops{loops[0], loops[2], loops[3], loops[1], loops[4]}});
    sch_.apply(Vectorize{loops[4]});
    fuse_parallel(sch_, {loops[0], loops[2]});
  }

  // Returns where an element is in the stored image, of so many channels.
  Exprs place_in_image(const Exprs& at, const Expr& channel, int64_t channels) const {
    if (!product_.windows) return {at[0], at[2], at[3], channel};
    const int64_t stride = product_.windows->height.stride;
    const Expr pixel = floor_div(at[2], stride) * product_.windows->columns() + at[3];
    return {at[0], floor_mod(at[2], stride), pixel * channels + channel};
  }
  void extend_image(const BlockRV& image, const Windows& windows) {
    const int64_t rows = round_up(*product_.num_rows(), plan_.row_tiles * kTileRows);
    sch_.apply(ExtendAxis{image, 2, windows.image_rows(rows)});
    sch_.apply(ExtendAxis{image, 3, windows.columns()});
  }
  // Lets each row of pixels have results beyond its width.
  void widen_rows(const Windows& windows) {
    for (const BlockRV& block : {rv_, epilogue_})
      sch_.apply(ExtendAxis{block, static_cast<int64_t>(windows.width.axis), windows.results()});
  }

  void merge_axes() {
    auto spatial = [&](const Exprs& at) {
      return one_after_another(map_each(product_.batch, [&](size_t axis) { return at[axis]; }),
                               {product_.rows.merged(at), product_.columns.merged(at)});
    };
    const size_t rank = product_.block->iter_vars.size();
    const IndexMap result(rank - product_.depth.axes.size(), spatial);
    sch_.apply(TransformBlockLayout{rv_, IndexMap(rank, [&](const Exprs& at) {
                                      return one_after_another(spatial(at), {product_.depth.merged(at)});
                                    })});
    sch_.apply(TransformBlockLayout{epilogue_, result});
    sch_.apply(TransformLayout{rv_, {"write", 0}, result});
  }

  Ref<BufferLoad> operand(size_t i) const { return operands_of(*cast<Block>(sch_.get(rv_)))[i]; }
  Buffer write_of(const BlockRV& block) const { return cast<Block>(sch_.get(block))->writes[0].buffer; }
  // Returns the block that makes an operand.
  BlockRV maker(size_t i) {
    const Buffer buffer = operand(i)->buffer;
    Blocks all = sch_.apply(GetProducers{rv_});
    return *std::ranges::find_if(all, [&](const BlockRV& block) { return same_node(write_of(block), buffer); });
  }

  void read_in_place() {
    const int64_t tile_rows = plan_.row_tiles * kTileRows;
    if (product_.windows)
      sch_.apply(ExtendAxis{rv_, static_cast<int64_t>(b()), round_up(*product_.num_rows(), tile_rows)});
    left_tiles_ = copy_left(kTileScope);
  }
  // Returns the block that copies the left operand to rows.
  BlockRV copy_left(const char* scope) {
    return sch_.apply(
        ReindexCacheRead{rv_, operand(0)->buffer->name.c_str(), scope,
                         IndexMap(b() + 3, [&](const Exprs& at) { return in_batch(at, {at[b()], at[b() + 2]}); })});
  }

  void lay_out_left() {
    BlockRV left = copy_left("global");
    if (!product_.stores_image) {
      for (const BlockRV& border : sch_.apply(GetProducers{left})) (void)sch_.try_apply(ComputeInline{border});
    }
    copies_ = {left};
  }

  void lay_out_right() {
    right_ = sch_.apply(
        ReindexCacheRead{rv_, product_.right->buffer->name.c_str(), "global",
                         IndexMap(b() + 3, [&](const Exprs& at) { return Exprs{at[b() + 1], at[b() + 2]}; })});
    pad_to_tiles();
    right_ = maker(1);
    sch_.apply(TransformLayout{right_, {"write", 0}, IndexMap(2, [&](const Exprs& at) {
                                 const int64_t group = form_.group();
                                 return Exprs{floor_div(at[0], kTileRows), floor_div(at[1], form_.depth),
                                              floor_div(floor_mod(at[1], form_.depth), group),
                                              floor_mod(at[0], kTileRows), floor_mod(at[1], group)};
                               })});
    sch_.apply(Annotate{right_, annotation<"meta_schedule.layout_rewrite_preproc">(), true});
  }

  void pad_to_tiles() {
    const Buffer result = write_of(rv_), left_rows = operand(0)->buffer, right_columns = operand(1)->buffer;
    Ints padding(b(), 1);
    padding.insert(padding.end(), {plan_.row_tiles * kTileRows, plan_.column_tiles * kTileRows, form_.depth});
    sch_.apply(PadEinsum{rv_, padding});
    if (!same_node(operand(0)->buffer, left_rows)) {
      copies_.push_back(maker(0));
      if (product_.depth_of_sum() % form_.depth == 0) {
        sch_.apply(ComputeInline{copies_[0]});
        copies_ = {copies_[1]};
      }
    }
    if (!same_node(operand(1)->buffer, right_columns)) sch_.apply(ComputeInline{right_});
    if (!same_node(write_of(rv_), result)) sch_.apply(ComputeInline{sch_.apply(GetConsumers{rv_}).at(0)});
  }

  void split_loops() {
    Loops loops = sch_.apply(GetLoops{rv_});
    batch_ = Loops(loops.begin(), loops.begin() + static_cast<long>(b()));
    rows_ = sch_.apply(Split{loops[b()], {std::nullopt, plan_.groups, plan_.row_tiles, kTileRows}});
    columns_ = sch_.apply(Split{loops[b() + 1], {std::nullopt, plan_.column_tiles, kTileRows}});
    depth_ = sch_.apply(Split{loops[b() + 2], {std::nullopt, form_.depth}});
    outer_ = {rows_[0], columns_[0]};
    if (plan_.columns_first) std::swap(outer_[0], outer_[1]);
    sch_.apply(Reorder{
        joined({batch_, outer_, {rows_[1], depth_[0], rows_[2], columns_[1], rows_[3], columns_[2], depth_[1]}})});
  }

  // Returns the loops of a block over rows and columns of a matrix, inside of a loop around all of its tiles.
  Loops loops_of_matrix(const BlockRV& block) {
    Loops loops = sch_.apply(GetLoops{block});
    return {loops.end() - 2, loops.end()};
  }

  // Moves the blocks that read the sums into the loop over tiles.
  void move_results(const BlockRV& store) {
    const LoopRV& tile = rows_[1];
    sch_.apply(ReverseComputeAt{store, tile, true});
    lay_out_in_tiles(rv_, kTileRows);
    Loops inner = loops_of_matrix(store);
    Loops rows = sch_.apply(Split{inner[0], {std::nullopt, kTileRows}});
    Loops columns = sch_.apply(Split{inner[1], {std::nullopt, kTileRows}});
    sch_.apply(Reorder{Loops{rows[0], columns[0], rows[1], columns[1]}});
    unroll(sch_, {rows[0], columns[0]});
    sch_.apply(Tensorize{rows[1], fmt::format("amx_store_{0}x{0}_{1}", kTileRows, short_name(form_.result))});

    sch_.apply(ReverseComputeAt{epilogue_, tile, true});
    Loops vectors = sch_.apply(Split{loops_of_matrix(epilogue_)[1], {std::nullopt, kTileRows}});
    keep_in_registers(sch_, {vectors[0]}, {vectors[1]});
  }
  // Lays out what a block writes, matrices, in tiles of so many columns.
  void lay_out_in_tiles(const BlockRV& block, int64_t columns) {
    sch_.apply(TransformLayout{block, {"write", 0}, IndexMap(b() + 2, [&](const Exprs& at) {
                                 const Expr &row = at[b()], &column = at[b() + 1];
                                 return in_batch(at, {floor_div(row, kTileRows), floor_div(column, columns),
                                                      floor_mod(row, kTileRows), floor_mod(column, columns)});
                               })});
  }

  void load_tiles() {
    const BlockRV left =
        plan_.in_place ? left_tiles_ : sch_.apply(CacheRead{rv_, operand(0)->buffer->name.c_str(), kTileScope});
    sch_.apply(ComputeAt{left, depth_[0], true});
    lay_out_in_tiles(left, form_.depth);
    Loops rows = sch_.apply(Split{loops_of_matrix(left)[0], {std::nullopt, kTileRows}});
    sch_.apply(Unroll{rows[0]});
    if (plan_.in_place) {  // no box of the buffer, whose dims are not those of the rows: lowering proves the distances
      sch_.apply(Annotate{rows[1], annotation<"amx">(), "load"});
    } else {
      sch_.apply(Tensorize{rows[1], fmt::format("amx_load_{}x{}_{}", kTileRows, form_.depth, short_name(form_.a))});
    }

    BlockRV right = sch_.apply(CacheRead{rv_, operand(1)->buffer->name.c_str(), kTileScope});
    sch_.apply(ComputeAt{right, depth_[0], true});
    Loops loops = sch_.apply(GetLoops{right});  // the last ones: tiles of columns and of depth, and those of a tile
    Loops tiles(loops.end() - 5, loops.end());
    sch_.apply(Unroll{tiles[0]});
    sch_.apply(
        Tensorize{tiles[2], fmt::format("amx_load_{0}x{0}x{1}_{2}", kTileRows, form_.group(), short_name(form_.b))});
  }

  void multiply() {
    BlockRV zero = sch_.apply(DecomposeReduction{rv_, depth_[0]});
    Loops loops = sch_.apply(GetLoops{zero});
    unroll(sch_, {loops.end()[-4], loops.end()[-3]});
    sch_.apply(Tensorize{loops.end()[-2], fmt::format("amx_zero_{0}x{0}_{1}", kTileRows, short_name(form_.result))});
    unroll(sch_, {rows_[2], columns_[1]});
    sch_.apply(Tensorize{rows_[3], form_.name});
  }

  // The copies of the left operand, the last of which the product reads.
  void place_copies() {
    for (size_t i = copies_.size(); i-- > 0;) {
      const BlockRV& copy = copies_[i];
      const bool reads_operand = i == 0;
      if (reads_operand && parts_of_depth_.size() > 1) split_depth(copy);
      if (!plan_.copies_before) sch_.apply(ComputeAt{copy, rows_[0], true});
      Loops loops = sch_.apply(GetLoops{copy});
      const int64_t width = extent_of(sch_, loops.back()).value_or(kTileBytes);
      Loops vectors = sch_.apply(Split{loops.back(), {std::nullopt, std::min<int64_t>(width, kTileBytes)}});
      sch_.apply(Vectorize{vectors[1]});
      if (plan_.copies_before) fuse_parallel(sch_, Loops(loops.begin(), loops.begin() + static_cast<long>(b()) + 1));
    }
  }
  void split_depth(const BlockRV& copy) {
    const std::vector<int64_t>& parts = parts_of_depth_;
    sch_.apply(TransformBlockLayout{copy, IndexMap(b() + 2, [&](const Exprs& at) {
                                      Exprs result;
                                      int64_t inside = 1;
                                      for (size_t i = parts.size(); i-- > 0;) {
                                        Expr digit = floor_div(at.back(), inside);
                                        if (i > 0) digit = floor_mod(digit, parts[i]);
                                        result.insert(result.begin(), digit);
                                        inside *= parts[i];
                                      }
                                      return one_after_another(Exprs(at.begin(), at.end() - 1), result);
                                    })});
  }

  void distribute() {
    const LoopRV shared =
        sch_.apply(Fuse{joined({batch_, plan_.in_place || plan_.copies_before ? outer_ : Loops{rows_[0]}})});
    // Only the last tile of rows tests which of them there are.
    sch_.apply(Annotate{shared, annotation<"keep_whole">(), true});
    sch_.apply(Parallel{shared});
  }

  Schedule& sch_;
  const TileProduct& product_;
  const TilePlan& plan_;
  const TileForm& form_;
  BlockRV rv_, epilogue_, left_tiles_, right_;
  std::vector<int64_t> parts_of_depth_ = {};
  Blocks copies_ = {};
  Loops batch_ = {}, rows_ = {}, columns_ = {}, depth_ = {}, outer_ = {};  // outer_: those shared by threads
};

void schedule_tiles(Schedule& sch, const TileProduct& product, const TilePlan& plan) {
  TileSchedule(sch, product, plan).run();
}

}  // namespace

ScheduleRule tiles_rule() {
  return anchored(
      {.name = "tiles",
       .doc = "a product or convolution of bytes or bfloat16 on the tiles of matrix registers (AMX)",
       .decisions =
           {{"row_tiles", "tiles of rows in registers",
             "2; 1 where few rows make an odd number, for symbolic rows of pixels, and where rows are laid out "
             "beside a right operand of at most twice L1"},
            {"column_tiles", "tiles of columns in registers", "2, or 1 of an odd number"},
            {"in_place", "the left operand is read where it lies",
             "where its rows are evenly apart there; always of windows of a stored image"},
            {"copies_before", "the left operand, unless it is read in place, is laid out before all products",
             fmt::format("where it fills at most half of L2 and the right one more, or it has fewer than {} "
                         "blocks of rows; always of a matmul of symbolic rows",
                         cost_model::kFewestRowBlocks)},
            {"columns_first", "all rows use a tile of columns before the next one",
             "where the right operand fills more than half of L2, and the left one less; of windows that are "
             "read in place where it fills more than half of L1, and a tile of its columns less"},
            {"groups", "of row tiles, for which it is laid out together otherwise",
             "a quarter of L2; 1 of symbolic rows"}}},
      find_tile_product, choose_tiles, schedule_tiles);
}

}  // namespace relaxc
