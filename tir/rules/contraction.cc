#include "tir/rules/contraction.h"

#include "tir/analysis/annotations.h"
#include "tir/analysis/conditions.h"
#include "tir/rules/builtin_rules.h"

namespace relaxc {

namespace {

// Copies the right operand, one matrix or one for each product of a batch.
void copy_into_panels(Schedule& sch, const BlockRV& anchor, const ContractionTile& tile) {
  Ref<Block> block = cast<Block>(sch.get(anchor));
  Ref<BufferLoad> operand = operands_of(*block)[1];
  const size_t rank = operand->indices.size(), last = rank - 1;
  const size_t column_dim = same_node(operand->indices[last], block->iter_vars[tile.column_axis].var) ? last : last - 1;
  const size_t depth_dim = column_dim == last ? last - 1 : last;
  int64_t position = 0, columns = tile.columns();
  while (!same_node(block->reads[static_cast<size_t>(position)].buffer, operand->buffer)) ++position;
  BlockRV copy = sch.apply(CacheRead{anchor, position, "global"});
  Loops loops = sch.apply(GetLoops{copy});
  sch.apply(TransformLayout{copy, {"write", 0}, IndexMap(rank, [&](const Exprs& at) {
                              Exprs result(at.begin(), at.end() - 2);
                              result.push_back(floor_div(at[column_dim], columns));
                              result.push_back(at[depth_dim]);
                              result.push_back(floor_mod(at[column_dim], columns));
                              return result;
                            })});
  Loops panels = sch.apply(Split{loops[column_dim], {std::nullopt, columns}});
  Loops shared(loops.begin(), loops.end() - 2);
  shared.push_back(panels[0]);
  sch.apply(Reorder{joined({shared, {loops[depth_dim], panels[1]}})});
  sch.apply(Vectorize{panels[1]});
  fuse_parallel(sch, shared);
  // Of a constant operand this is done once, when the program is compiled (passes/rewrite_weights.cc).
  if (rank == 2) sch.apply(Annotate{copy, annotation<"meta_schedule.layout_rewrite_preproc">(), true});
}

// Builds the schedule of a contraction. Its loops, from the outside: other axes, row blocks and column tiles, which are
// distributed over threads; row tiles; the reduction; the register tile.
class ContractionSchedule {
 public:
  ContractionSchedule(Schedule& sch, BlockRV anchor, const ContractionTile& tile)
      : sch_(sch), anchor_(std::move(anchor)), sum_(anchor_), tile_(tile), block_(cast<Block>(sch.get(anchor_))) {}

  void run() {
    if (unpacks()) prepare_unpacking();
    loop_of_ = loops_of_axes(sch_, anchor_);
    is_cell_ = tile_.bands > 1 || outputs_behind() > 1;
    epilogue_ = is_cell_ ? inline_cell() : sch_.apply(MergeEpilogue{anchor_});
    if (tile_.has_rows) num_rows_ = as_int(block_->iter_vars[tile_.row_axis].domain.extent);
    sum_in_parts();
    panel_ = panel();
    split_columns();
    split_rows();
    sort_loops();
    split_reduction();
    reorder();
    move_epilogue();
    if (!reduce_.empty()) sch_.apply(DecomposeReduction{anchor_, reduce_.front()});
    if (unpacking_) unpack_operand();
    if (!parts_.empty()) add_parts();
    if (!tile_.intrin.empty()) sch_.apply(Tensorize{columns_[2], tile_.intrin, false});
    if (const auto rest = rest_of_sums(sch_))
      sum_rest_in_tile(sch_, *rest, outer_, tile_.column_axis, tile_.lanes, tile_.intrin);
    distribute_tiles();
  }

 private:
  // The blocks after the anchor that are left, in order.
  Blocks blocks_behind() {
    Blocks all = sch_.apply(GetChildBlocks{sch_.apply(GetBlock{"root"})});
    return {std::ranges::find_if(all, [&](const BlockRV& block) { return is_anchor(block); }) + 1, all.end()};
  }
  Buffer result_of(const BlockRV& block) const { return cast<Block>(sch_.get(block))->writes[0].buffer; }
  bool is_anchor(const BlockRV& block) const { return same_node(result_of(block), result_of(anchor_)); }
  bool writes_param(const BlockRV& block) const { return sch_.tree("").is_param(result_of(block)); }
  size_t outputs_behind() {
    return static_cast<size_t>(
        std::ranges::count_if(blocks_behind(), [&](const BlockRV& b) { return writes_param(b); }));
  }
  // What follows a product in bands, or has several results, is one block for each result, and for each value that
  // several of these read and that is expensive. Returns these blocks, which run one after the other in a tile.
  Blocks inline_cell() {
    Blocks kept;
    for (const BlockRV& block : sch_.apply(GetChildBlocks{sch_.apply(GetBlock{"root"})})) {
      if (is_anchor(block) || writes_param(block)) continue;
      bool repeats = any_is_expensive({cast<Block>(sch_.get(block))}) && sch_.apply(GetConsumers{block}).size() > 1;
      if (!repeats) (void)sch_.try_apply(ComputeInline{block});
    }
    return blocks_behind();
  }

  // Each part of the reduction is a sum over a tile. The sums are added up, and the epilogue reads those of a panel.
  void sum_in_parts() {
    if (tile_.parts <= 1) return;
    if (epilogue_.size() != 1 || is_cell_) epilogue_ = {sch_.apply(CacheWrite{sum_, 0, "global"})};
    parts_ = sch_.apply(Split{loop_of_.back(), {tile_.parts, std::nullopt}});
    anchor_ = sch_.apply(Rfactor{parts_[0], 0});
    block_ = cast<Block>(sch_.get(anchor_));
    loop_of_ = loops_of_axes(sch_, anchor_);
    ++tile_.row_axis;
    ++tile_.column_axis;
  }

  // The operand comes from two blocks: the numbers as they are in the words, and these times their scale. Into a panel
  // one block stores both. In registers, the numbers of rows with one scale are multiplied and summed, and the sum is
  // multiplied by the scale.
  void prepare_unpacking() {
    const BlockRV scaled = sch_.apply(GetProducers{anchor_}).at(0);
    const Blocks unscaled = sch_.apply(GetProducers{scaled});
    unpacking_ = unscaled.empty() ? scaled : unscaled[0];  // numbers of 16 bits have no scale
    if (unscaled.empty()) return;
    if (tile_.unpacks == ContractionTile::Unpacks::kIntoPanel) {
      sch_.apply(ComputeInline{*unpacking_});
      unpacking_ = scaled;
      return;
    }
    sch_.apply(ComputeInline{scaled});
    if (tile_.sums_before_scaling) sum_before_scaling();
  }
  void sum_before_scaling() {
    Loops loops = loops_of_axes(sch_, anchor_);
    const Loops rows = sch_.apply(Split{loops.back(), {std::nullopt, tile_.scaled_rows}});
    loops.pop_back();
    sch_.apply(Reorder{joined({{rows[0]}, loops, {rows[1]}})});
    unscaled_ = sch_.apply(Rfactor{rows[0], 0});
    sch_.apply(DeferFactors{*unscaled_});
    block_ = cast<Block>(sch_.get(anchor_));
    ++tile_.row_axis;
    ++tile_.column_axis;
  }

  // Returns the name of the operand with lanes, whose panels are prefetched, or of the words that it is unpacked from.
  std::string panel() const {
    if (unpacking_) return operands_of(*cast<Block>(sch_.get(*unpacking_)))[0]->buffer->name;
    std::vector<Ref<BufferLoad>> operands = operands_of(*block_);
    for (const Ref<BufferLoad>& load : operands) {
      if (uses_var(load->indices, block_->iter_vars[tile_.column_axis].var)) return load->buffer->name;
    }
    return operands[0]->buffer->name;
  }

  void split_columns() {
    columns_ = sch_.apply(Split{loop_of_[tile_.column_axis], {std::nullopt, tile_.vectors, tile_.lanes}});
    if (tile_.panels == 1) return;
    panels_ = sch_.apply(Split{columns_[0], {std::nullopt, tile_.panels}});
    columns_[0] = panels_[0];
  }

  void split_rows() {
    if (!tile_.has_rows) return;
    LoopRV row_loop = loop_of_[tile_.row_axis];
    if (tile_.row_tiles > 0) {
      row_blocks_ = sch_.apply(Split{row_loop, {std::nullopt, tile_.row_tiles * tile_.rows}});
      row_loop = row_blocks_[1];
    }
    rows_ = sch_.apply(Split{row_loop, {std::nullopt, tile_.rows}});
  }

  bool is_row(size_t axis) const { return tile_.has_rows && axis == tile_.row_axis; }

  // Orders the outer loops so that neighbouring row tiles reuse a panel of columns.
  void sort_loops() {
    for (size_t a = 0; a < loop_of_.size(); ++a) {
      if (block_->iter_vars[a].kind == IterKind::kReduce) {
        reduce_.push_back(loop_of_[a]);
      } else if (a == tile_.band_axis) {
        bands_ = {loop_of_[a]};
      } else if (a != tile_.column_axis && !is_row(a) && (parts_.empty() || a > 0)) {
        shared_.push_back(loop_of_[a]);
      }
    }
    if (!row_blocks_.empty()) shared_.push_back(row_blocks_[0]);
    shared_.insert(tile_.columns_first ? shared_.begin() : shared_.end(), columns_[0]);
    outer_ = shared_;
    if (!parts_.empty()) outer_.push_back(parts_[0]);
    if (tile_.has_rows) outer_.push_back(rows_[0]);
  }

  void split_reduction() {
    if (tile_.group > 1) {
      group_ = sch_.apply(Split{reduce_.back(), {std::nullopt, tile_.group}});
      reduce_.back() = group_[0];
      group_.erase(group_.begin());
    }
    const std::optional<int64_t> depth = extent_of(sch_, reduce_.back());
    if (depth && !unscaled_ && tile_.unpacks_scaled_rows(*depth)) {
      Loops blocks = sch_.apply(Split{reduce_.back(), {std::nullopt, tile_.scaled_rows}});
      reduce_.back() = blocks[0];
      reduce_.push_back(blocks[1]);
    }
    if (tile_.step == 1 || unscaled_) return;
    steps_ = sch_.apply(Split{reduce_.back(), {std::nullopt, tile_.step}});
    reduce_.back() = steps_[0];
    reduce_.push_back(steps_[1]);
  }

  void reorder() {
    Loops order = joined({outer_, reduce_});
    if (tile_.has_rows) order.push_back(rows_[1]);
    if (!panels_.empty()) order.push_back(panels_[1]);
    sch_.apply(Reorder{joined({order, bands_, {columns_[1], columns_[2]}, group_})});
    unroll(sch_, bands_);
    if (!steps_.empty()) sch_.apply(Unroll{steps_[1]});
    if (!panels_.empty()) sch_.apply(Unroll{panels_[1]});
    if (tile_.has_rows && !num_rows_) sch_.apply(Annotate{rows_[0], annotation<"exact_tails">(), true});
  }

  // The result stays in registers (a buffer of a tile, once lowered) until the last block or the sum of parts reads it.
  void move_epilogue() {
    if (epilogue_.size() != 1 && (!is_cell_ || epilogue_.empty()))
      epilogue_ = {sch_.apply(CacheWrite{anchor_, 0, "local"})};
    const bool loops = parts_.empty() && !tile_.unrolls_epilogue;
    if (loops) move_into_tile(sch_.apply(CacheWrite{anchor_, 0, "local"}), Rows::kAtOnce);
    for (const BlockRV& block : parts_.empty() ? epilogue_ : Blocks{sum_})
      move_into_tile(block, loops ? Rows::kOneByOne : Rows::kAtOnce);
    unroll_tile(tile_.has_rows ? &rows_[1] : nullptr, columns_[1], columns_[2]);
  }
  enum class Rows { kAtOnce, kOneByOne };
  void move_into_tile(const BlockRV& reader, Rows rows) {
    sch_.apply(ReverseComputeAt{reader, outer_.back(), true});
    Loops inner = loops_inside(sch_, reader, outer_.size()), inside;
    // The loops are in the order of its axes, which are the anchor's spatial axes, without that of bands behind these.
    size_t column = 0, row = 0, spatial = 0;
    std::optional<size_t> band;
    const bool has_bands = inner.size() == axes_of(*block_, IterKind::kSpatial).size();
    for (size_t a = 0; a < block_->iter_vars.size(); ++a) {
      if (block_->iter_vars[a].kind != IterKind::kSpatial || (a == tile_.band_axis && !has_bands)) continue;
      if (a == tile_.band_axis) band = spatial;
      if (a == tile_.column_axis) column = spatial;
      if (is_row(a)) row = spatial;
      ++spatial;
    }
    if (inner.size() != spatial) return;
    Loops vectors = sch_.apply(Split{inner[column], {std::nullopt, tile_.vectors, tile_.lanes}});
    sch_.apply(Unroll{vectors[0]});
    if (band) sch_.apply(Unroll{inner[*band]});
    for (size_t d = 0; d < spatial; ++d) {
      if (d != column && !(tile_.has_rows && d == row)) inside.push_back(inner[d]);
    }
    if (tile_.has_rows) inside.push_back(inner[row]);
    sch_.apply(Reorder{joined({inside, vectors})});
    unroll_tile(tile_.has_rows && rows == Rows::kAtOnce ? &inner[row] : nullptr, vectors[1], vectors[2]);
  }
  void unroll_tile(const LoopRV* row, const LoopRV& vector, const LoopRV& lane) {
    if (row) sch_.apply(Unroll{*row});
    keep_in_registers(sch_, {vector}, tile_.lanes > 1 ? Loops{lane} : Loops());
  }

  // Makes the operand as each row of it is read, or before the row tiles.
  bool unpacks() const { return tile_.unpacks != ContractionTile::Unpacks::kNothing; }
  void unpack_operand() {
    const bool in_registers = tile_.unpacks == ContractionTile::Unpacks::kInRegisters;
    Loops around = joined({shared_, parts_.empty() ? Loops() : Loops{parts_[0]}});
    if (in_registers) around = joined({outer_, reduce_});
    if (unscaled_) around.push_back(sum_unscaled(around));
    sch_.apply(ComputeAt{*unpacking_, around.back(), true});
    if (in_registers) sch_.apply(SetScope{*unpacking_, 0, "local"});
    Loops inside = loops_inside(sch_, *unpacking_, around.size());
    const int lanes = in_registers ? tile_.unpacked_lanes : tile_.lanes;
    // Rows in one word are taken from a register.
    if (!in_registers && tile_.unpacked_rows > 1)
      sch_.apply(Unroll{sch_.apply(Split{inside[inside.size() - 2], {std::nullopt, tile_.unpacked_rows}})[1]});
    Loops vectors = sch_.apply(Split{inside.back(), {std::nullopt, lanes}});
    keep_in_registers(sch_, {vectors[0]}, lanes > 1 ? Loops{vectors[1]} : Loops());
    // A row at a time: more prefetches at once would wait for the core's line fill buffers.
    if (unscaled_ && tile_.rows_ahead.value_or(0) > 0)
      sch_.apply(Annotate{around.back(), annotation<"prefetch_ahead">(), AttrList{panel_, *tile_.rows_ahead}});
  }
  // Sums the products of rows with one scale, in registers. Returns the loop over these rows.
  LoopRV sum_unscaled(const Loops& around) {
    sch_.apply(ComputeAt{*unscaled_, around.back(), true});
    sch_.apply(SetScope{*unscaled_, 0, "local"});
    Loops loops = loops_inside(sch_, *unscaled_, around.size());  // of its axes, the reduction last
    const LoopRV depth = loops.back(), column = loops[tile_.column_axis];
    loops.pop_back();
    const Loops vectors = sch_.apply(Split{column, {std::nullopt, tile_.lanes}});
    loops.erase(loops.begin() + static_cast<ptrdiff_t>(tile_.column_axis));
    sch_.apply(Reorder{joined({{depth}, loops, vectors})});
    if (tile_.has_rows)
      sch_.apply(Unroll{loops[tile_.row_axis < tile_.column_axis ? tile_.row_axis : tile_.row_axis - 1]});
    keep_in_registers(sch_, {vectors[0]}, tile_.lanes > 1 ? Loops{vectors[1]} : Loops());
    sch_.apply(DecomposeReduction{*unscaled_, depth});
    return depth;
  }

  void add_parts() {
    sch_.apply(DecomposeReduction{sum_, parts_[0]});
    sch_.apply(ReverseComputeAt{epilogue_[0], columns_[0], true});
    Loops lanes = sch_.apply(Split{sch_.apply(GetLoops{epilogue_[0]}).back(), {std::nullopt, tile_.lanes}});
    if (tile_.lanes > 1) sch_.apply(Vectorize{lanes[1]});
  }

  void distribute_tiles() {
    LoopRV parallel = fused(sch_, shared_);
    // Panels are prefetched: the next panel during the current one or, where a panel is read once, some rows ahead.
    if (tile_.rows_ahead) {
      if (*tile_.rows_ahead > 0 && !unscaled_)
        sch_.apply(Annotate{reduce_[0], annotation<"prefetch_ahead">(), AttrList{panel_, *tile_.rows_ahead}});
    } else {
      sch_.apply(Annotate{parallel, annotation<"prefetch">(), AttrList{panel_}});
      if (!parts_.empty()) sch_.apply(Annotate{parts_[0], annotation<"prefetch">(), AttrList{panel_}});
      // Stores of the last block that miss the cache would delay the next tile's loads. LLVM spills for symbolic rows.
      const std::string result = result_of(epilogue_[0])->name;
      if (num_rows_)
        sch_.apply(Annotate{parts_.empty() ? rows_[0] : parallel, annotation<"prefetch_current">(), AttrList{result}});
    }
    // The row loop has exact tails; separate code for full blocks would only double it.
    if (tile_.has_rows && !num_rows_) sch_.apply(Annotate{parallel, annotation<"keep_whole">(), true});
    sch_.apply(Parallel{parallel});
  }

  Schedule& sch_;
  BlockRV anchor_, sum_;  // the block of the products, and the block of the whole sum
  std::optional<BlockRV> unpacking_ = {};
  std::optional<BlockRV> unscaled_ = {};  // sums of rows with one scale, without it
  ContractionTile tile_;
  Ref<Block> block_;  // the anchor as it was before its loops were split
  std::optional<int64_t> num_rows_;
  std::string panel_;
  bool is_cell_ = false;  // several blocks follow the sum in a tile, or they combine bands
  Blocks epilogue_;       // the blocks that follow the sum
  Loops loop_of_;         // by axis
  Loops columns_, panels_, bands_, row_blocks_, rows_, parts_, group_, steps_;  // as they were split, outermost first
  Loops shared_, outer_, reduce_;  // distributed over threads; around the reduction; of the reduction
};

struct Contraction {
  Stage product;
  ContractionTile tile;
};
std::variant<Contraction, std::string> find_contraction(const PrimFuncRef& program, const Target& target,
                                                        Decisions& decisions) {
  auto product = find_stage(program, "matmul");
  if (!product) return "it is not a list of plain nests with a block of 'matmul'";
  ContractionMatch match = match_contraction(*product, target, decisions);
  if (auto* tile = std::get_if<ContractionTile>(&match)) return Contraction{*product, *tile};
  return std::get<std::string>(match);
}

ContractionTile choose_tile_and_versions(const Contraction& found, const Target& target, Decisions& decisions) {
  ContractionTile tile = choose_contraction(found.product, found.tile, target, decisions);
  tile.versions = choose_specialized_rows(found.product, tile, target, decisions);
  return tile;
}

void follow_contraction(Schedule& sch, const Contraction&, const ContractionTile& tile) {
  schedule_contraction(sch, sch.apply(GetBlock{"matmul"}), tile);
}

}  // namespace

void schedule_contraction(Schedule& sch, BlockRV anchor, const ContractionTile& tile) {
  if (tile.copies_operand) copy_into_panels(sch, anchor, tile);
  ContractionSchedule(sch, std::move(anchor), tile).run();
}

ScheduleRule contraction_rule() {
  std::vector<DecisionRow> decisions = contraction_decisions();
  decisions.push_back({kSpecialize, "symbolic rows that have separate code",
                       "1, and those just above a tile; none where an operand is copied that is not constant"});
  return anchored(
      {.name = "contraction",
       .op = "matmul",
       .doc = "a product of matrices whose right operand lies in panels, is unpacked or is worth copying into panels",
       .decisions = std::move(decisions)},
      find_contraction, choose_tile_and_versions, follow_contraction);
}

}  // namespace relaxc
