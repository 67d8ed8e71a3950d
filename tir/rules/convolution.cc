// The schedule of convolutions over images in channel blocks (ops/convolution_layouts.cc) as primitives: a register
// tile of pixels x filters, filters in vector lanes; the elementwise blocks that follow are applied to each tile.
//
// Extents need not be multiples of the tile: rows and columns of pixels that do not fill one form smaller tiles, also
// where the image's extents are symbolic. A block of channels fills a vector. Where an instruction sums several
// products in each lane, these are of neighbouring channels, or, with one filter for each channel, of a row of the
// window.
#include <algorithm>
#include <variant>

#include "ir/op_names.h"
#include "support/lists.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/block_layouts.h"
#include "tir/analysis/conditions.h"
#include "tir/intrin/tensor_intrin.h"
#include "tir/program.h"
#include "tir/rules/builtin_rules.h"
#include "tir/rules/convolution.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

// Returns whether the window is one pixel.
bool is_pointwise(const Convolution& conv) {
  const std::vector<IterVar>& axes = conv.block->iter_vars;
  const Expr &y = conv.image->indices[conv.image_y], &x = conv.image->indices[conv.image_x];
  return std::ranges::none_of(conv.window, [&](size_t d) {
    return (uses_var(y, axes[d].var) || uses_var(x, axes[d].var)) && !is_int(axes[d].domain.extent, 1);
  });
}

bool copies_strided_pixels(const Convolution& conv) {
  const Expr& x = conv.image->indices[conv.image_x];
  const bool is_dense = is_int(simplify(stepped(x, conv.block->iter_vars[conv.x].var) - x), 1);
  return is_pointwise(conv) && !is_dense && !conv.depthwise && conv.channel_lane;
}

// Returns whether pixels are as good as one row: each reads one of the image, and all blocks take them one by one.
bool is_one_row(const Convolution& conv, const Analyzer& facts) {
  auto takes_one_row = [&](const Ref<Block>& block) { return takes_as_one(*block, conv.y, facts); };
  return conv.x == conv.y + 1 && is_pointwise(conv) && !conv.has_border && !conv.depthwise &&
         (conv.copies_pixels || takes_one_row(conv.block)) && std::ranges::all_of(conv.epilogue, takes_one_row);
}

// Returns a program's convolution, whose filters are in blocks of a vector, or why there is none.
std::variant<Convolution, std::string> find_convolution(const PrimFuncRef& program, const Target& target, Decisions&) {
  auto stage = find_stage(program, ops::short_name(ops::kConv2d));
  if (!stage) return fmt::format("it is not a list of plain nests with a block of '{}'", ops::short_name(ops::kConv2d));
  const Block& block = *stage->block;
  const std::optional<BlockLayouts> layouts = layouts_of(block);
  std::vector<Ref<BufferLoad>> operands = operands_of(block);
  const bool is_known = layouts && layouts->operands.size() == 2 && operands.size() >= 2 &&
                        layouts->spatial.axes() == "NCHW" && layouts->reduced.axes() == "IHW" &&
                        layouts->operands[0].axes() == "NCHW" && layouts->operands[1].axes() == "OIHW";
  if (!is_known) return "it is not a convolution over an image in channel blocks, [N, C / b, H, W, b]";
  const auto lane = layouts->lane_of_spatial('C');
  if (!lane || stage->extent(*lane) != target.vector_lanes(32)) return "its channel blocks do not fill one vector";
  Convolution conv{*stage,
                   layouts->spatial_axis('N'),
                   layouts->spatial_axis('C'),
                   layouts->spatial_axis('H'),
                   layouts->spatial_axis('W'),
                   *lane,
                   layouts->reduced_axis('I'),
                   layouts->reduced_axis('W'),
                   layouts->lane_of_reduced('I'),
                   std::nullopt,
                   {},
                   layouts->operands[0].outer_of(2),
                   layouts->operands[0].outer_of(3),
                   false,
                   false,
                   operands[0],
                   operands.back()};
  if (!stage->extent(conv.filters)) return "its number of filters is symbolic";
  const VarRef& filter = block.iter_vars[*lane].var;
  std::vector<Layout::Dim> weight = layouts->operands[1].dims();
  for (size_t d = layouts->spatial.dims().size(); d < block.iter_vars.size(); ++d) conv.window.push_back(d);
  if (weight.back().axis != 0 && weight.back().block > 0) {
    const DotForm* form = dot_form_of(block, dtype_of(conv.image), dtype_of(conv.weight), target);
    if (!form || form->group != weight.back().block)
      return fmt::format("the target has no instruction that sums {} products in each lane", weight.back().block);
    conv.intrin = form->name;
    conv.constants = form->constants;
    conv.group = conv.window.back();
    conv.window.pop_back();
    weight.pop_back();
  }
  const Expr& place = conv.weight->indices[weight.size() - 1];
  if (weight.back().axis != 0 || weight.back().block == 0 || !uses_var(place, filter))
    return "its weights do not have filters in the last dim";
  // Depthwise: the image's lanes are the filters', too.
  conv.depthwise = uses_var(conv.image->indices.back(), filter);
  conv.has_border = stores_to(program->body, conv.image->buffer);
  conv.copies_pixels = copies_strided_pixels(conv);
  conv.is_one_row = is_one_row(conv, facts_of_params(program));
  return conv;
}

// Schedules the padded copy of the image, with rows distributed over threads, or planes where rows are symbolic.
void schedule_padding(Schedule& sch, const BlockRV& pad, int64_t lanes) {
  Loops loops = sch.apply(GetLoops{pad});
  LoopRV inner = loops.back();
  if (loops.size() == 4) inner = sch.apply(Split{inner, {std::nullopt, lanes}})[1];
  sch.apply(Vectorize{inner});
  fuse_parallel(sch, Loops(loops.begin(), loops.begin() + (extent_of(sch, loops[2]) ? 3 : 2)));
}

// Copies the pixels that a window of one pixel reads with a stride into dense memory, once for all filters.
void copy_strided_pixels(Schedule& sch, const BlockRV& rv, const Convolution& conv) {
  IndexMap map(conv.block->iter_vars.size(), [&](const Exprs& i) {
    VarMap at;
    for (size_t d = 0; d < i.size(); ++d) at.emplace(conv.block->iter_vars[d].var.get(), i[d]);
    return Exprs{i[conv.image_axis], i[conv.channels], i[conv.y], i[conv.x],
                 substitute(conv.image->indices.back(), at)};
  });
  BlockRV copy = sch.apply(ReindexCacheRead{rv, conv.image->buffer->name.c_str(), "global", map});
  Loops loops = sch.apply(GetLoops{copy});
  sch.apply(Vectorize{loops.back()});
  fuse_parallel(sch, Loops(loops.begin(), loops.begin() + 3));
}

// Makes rows of so many pixels of what is one row, or only one where it has no line: quotients and remainders cancel in
// the places of elements.
void divide_into_lines(Schedule& sch, const BlockRV& rv, const BlockRV& epilogue, const Convolution& conv,
                       std::optional<int64_t> line) {
  auto as_row = [&](const Exprs& at) {
    Exprs result = at;
    result[conv.y] = at[conv.y] * conv.block->iter_vars[conv.x].domain.extent + at[conv.x];
    result.erase(result.begin() + static_cast<long>(conv.x));
    return result;
  };
  auto as_lines = [&](const Exprs& at) {
    Exprs result = at;
    result[conv.y] = line ? floor_div(at[conv.y], *line) : int_imm(0);
    result.insert(result.begin() + static_cast<long>(conv.x), line ? floor_mod(at[conv.y], *line) : at[conv.y]);
    return result;
  };
  const size_t all_axes = conv.block->iter_vars.size(), axes_of_result = conv.lane + 1;
  const std::optional<BlockRV> rest = rest_of_sums(sch);
  auto step = [&](size_t fewer, const auto& map) {
    const IndexMap of_result(axes_of_result - fewer, map);
    sch.apply(TransformBlockLayout{rv, IndexMap(all_axes - fewer, map)});
    sch.apply(TransformBlockLayout{epilogue, of_result});
    sch.apply(TransformLayout{rv, {"write", 0}, of_result});
    if (!rest) return;
    constexpr size_t kAxesOfRest = 2;  // a list of steps, and a group
    sch.apply(TransformBlockLayout{*rest, IndexMap(axes_of_result + kAxesOfRest - fewer, map)});
    sch.apply(TransformLayout{*rest, {"write", 0}, of_result});
  };
  step(0, as_row);
  step(1, as_lines);
}

void vectorize_lanes(Schedule& sch, const BlockRV& block) { sch.apply(Vectorize{sch.apply(GetLoops{block}).back()}); }

// Moves a block that reads the tile's sums into the tile, the last of these loops: unrolled, or in loops over the
// pixels.
void move_into_tile(Schedule& sch, const BlockRV& reader, const Loops& around, bool unrolled) {
  sch.apply(ReverseComputeAt{reader, around.back(), true});
  Loops inner = loops_inside(sch, reader, around.size());
  inner.erase(inner.begin(), inner.end() - 5);  // a part of the sum is the first one
  sch.apply(Reorder{Loops{inner[0], inner[2], inner[3], inner[1], inner[4]}});
  if (unrolled) unroll(sch, {inner[2], inner[3]});
  keep_in_registers(sch, {inner[1]}, {inner[4]});
}

// Makes the border and the pixels that are read. Returns the blocks of the border.
Blocks prepare_image(Schedule& sch, const BlockRV& sums, const Convolution& conv, const ConvolutionPlan& plan) {
  Blocks padding = sch.apply(GetProducers{sums});
  for (const BlockRV& block : padding) {
    if (plan.padding_by_conditions) sch.apply(ComputeInline{block});
    if (!plan.padding_by_conditions && !conv.depthwise) schedule_padding(sch, block, *conv.extent(conv.lane));
  }
  if (conv.copies_pixels) copy_strided_pixels(sch, sums, conv);
  return padding;
}

// Sums the products of a group by the instruction for these, also those of the second sum.
void sum_groups(Schedule& sch, const Convolution& conv, const Loops& around, const LoopRV& lane) {
  sch.apply(Tensorize{lane, conv.intrin, false});
  if (const auto rest = rest_of_sums(sch))
    sum_rest_in_tile(sch, *rest, around, conv.lane, *conv.extent(conv.lane), conv.intrin);
}

// Runs the loops on all threads. `rows`: the loop over rows of tiles where tiles may reach over an open border.
void share_loops(Schedule& sch, const Convolution& conv, const ConvolutionPlan& plan, const Loops& shared,
                 const std::optional<LoopRV>& rows) {
  LoopRV parallel = sch.apply(Fuse{shared});
  // Rows of the window that a condition leaves out are not worth copies of the tile and its tails.
  const bool shares_rows = plan.streams_image || shared.size() == 3;  // beside images and filters
  if (plan.tiles_of_line > 0) sch.apply(Annotate{parallel, annotation<"keep_whole">(), true});
  if (rows) sch.apply(Annotate{shares_rows ? parallel : *rows, annotation<"keep_whole">(), true});
  // The lines of a part that may be smaller are not known.
  const bool streams_weights = plan.streams_weights || (plan.streams_image && conv.is_one_row);
  if (streams_weights && *conv.extent(conv.filters) % plan.tile.vectors == 0)
    sch.apply(Annotate{parallel, annotation<"prefetch">(), AttrList{conv.weight->buffer->name}});
  sch.apply(Parallel{parallel});
}

// Returns the loops over rows and columns: those over tiles, or over lines and their tiles, and those in a tile.
std::pair<Loops, Loops> split_pixels(Schedule& sch, const Loops& loops, const Convolution& conv,
                                     const ConvolutionPlan& plan) {
  if (plan.tiles_of_line > 0) {
    const Loops lines = sch.apply(Split{loops[conv.x], {std::nullopt, plan.tiles_of_line, plan.tile.columns}});
    return {{lines[0], loops[conv.y]}, {lines[1], lines[2]}};
  }
  const Loops y = sch.apply(Split{loops[conv.y], {std::nullopt, plan.tile.rows}});
  return {y, sch.apply(Split{loops[conv.x], {std::nullopt, plan.tile.columns}})};
}

void schedule_convolution(Schedule& sch, const Convolution& conv, const ConvolutionPlan& plan) {
  BlockRV sums = sch.apply(GetBlock{ops::short_name(ops::kConv2d)});
  const ConvolutionTile& tile = plan.tile;
  const bool has_parts = plan.parts > 1;
  Blocks epilogue = sch.apply(MergeEpilogue{sums});
  const Blocks padding = prepare_image(sch, sums, conv, plan);
  const bool pads_channels = !plan.padding_by_conditions && conv.depthwise && !padding.empty();
  const bool pads_rows = pads_channels && copies_by_row(conv), pads_blocks = pads_channels && !pads_rows;
  if (epilogue.empty()) epilogue = {sch.apply(CacheWrite{sums, 0, has_parts ? "global" : "local"})};
  if (plan.pixels.columns != conv.extent(conv.x) || plan.tiles_of_line > 0)
    divide_into_lines(sch, sums, epilogue[0], conv, plan.pixels.columns);

  const BlockRV sum_of_parts = sums;
  Loops loops = sch.apply(GetLoops{sums}), part;
  if (has_parts) {
    sums = sch.apply(Rfactor{sch.apply(Split{loops[conv.channels], {plan.parts, std::nullopt}})[0], 0});
    loops = loops_of_axes(sch, sums);
    part = {loops.front()};
    loops.erase(loops.begin());
  }
  if (!padding.empty()) sch.apply(Annotate{sums, annotation<"skips_zeros">(), true});
  Loops filters = sch.apply(Split{loops[conv.filters], {std::nullopt, tile.vectors}});
  const auto [y, x] = split_pixels(sch, loops, conv, plan);
  const Loops window = map_each(conv.window, [&](size_t axis) { return loops[axis]; });
  const bool shares_both = plan.pixels.rows.value_or(0) % tile.rows == 0 && !plan.streams_weights && !pads_blocks;
  Loops shared = {loops[conv.image_axis], filters[0]}, inside = {x[0]};
  shared.insert(plan.streams_image ? shared.begin() + 1 : shared.end(), y[0]);
  if (!shares_both) {
    inside.insert(inside.begin(), shared.back());
    shared.pop_back();
  }
  const Loops around = joined({shared, part, inside});  // a tile
  const Loops group = conv.group ? Loops{loops[*conv.group]} : Loops();
  sch.apply(Reorder{joined({around, window, {y[1], x[1], filters[1], loops[conv.lane]}, group})});
  if (!conv.extent(conv.x)) sch.apply(Annotate{x[0], annotation<"exact_tails">(), true});
  const bool is_open = !conv.has_known_pixels() && plan.padding_by_conditions && !padding.empty();
  if (is_open) sch.apply(Annotate{x[0], annotation<"keep_whole">(), true});

  if (pads_channels) sch.apply(ComputeAt{padding[0], pads_rows ? y[0] : filters[0]});
  if (pads_channels) vectorize_lanes(sch, padding[0]);

  // The tile's sums stay in registers until the last block of the epilogue, or the sum of parts, reads them.
  if (has_parts) {
    move_into_tile(sch, sum_of_parts, around, true);
    vectorize_lanes(sch, sch.apply(DecomposeReduction{sum_of_parts, part[0]}));
    sch.apply(ReverseComputeAt{epilogue[0], shared.back(), true});
    vectorize_lanes(sch, epilogue[0]);
  } else {
    if (!plan.unrolls_epilogue) move_into_tile(sch, sch.apply(CacheWrite{sums, 0, "local"}), around, true);
    move_into_tile(sch, epilogue[0], around, plan.unrolls_epilogue);
  }
  unroll(sch, {y[1], x[1], filters[1]});
  // Other windows are not unrolled: LLVM would keep pixels that neighbours share in registers that the sums need.
  if (conv.depthwise) sch.apply(Unroll{window.back()});
  if (!conv.group) sch.apply(Vectorize{loops[conv.lane]});
  sch.apply(DecomposeReduction{sums, window[0]});
  if (conv.group) sum_groups(sch, conv, around, loops[conv.lane]);

  share_loops(sch, conv, plan, shared, is_open || pads_rows ? std::optional(y[0]) : std::nullopt);
}

}  // namespace

ScheduleRule convolution_rule() {
  return anchored(
      {.name = "convolution",
       .op = ops::short_name(ops::kConv2d),
       .doc = "a direct convolution over an image in channel blocks",
       .decisions =
           {{"line", "pixels that a window of one pixel takes as a row, whatever the rows of the image are",
             "the fewest cycles; at most half of L2, and as many as leave work for all threads"},
            {"line_tiles", "register tiles of a line where such a row has an unknown length",
             fmt::format(
                 "at most a quarter of L2, or {}/8 beside weights that exceed half of it; lines of a picture leave "
                 "work for all threads",
                 cost_model::kImageEighthsOfL2)},
            {"vectors", "blocks of filters in a register tile", "the fewest cycles for the whole image"},
            {"rows", "rows of pixels in a register tile", "the fewest cycles for the whole image"},
            {"columns", "columns of pixels in a register tile",
             fmt::format("the fewest cycles for the whole image; up to {} of symbolic rows of pixels, {} with a "
                         "border of conditions",
                         cost_model::kMostSymbolicColumns, cost_model::kMostColumnsOfOpenBorder)},
            {"reduction_parts", "parts of the channels, which are summed one after the other",
             fmt::format(
                 "the fewest whose weights for a tile of at most {} pixels fill half of L1, of {} steps or more, "
                 "which {} or more tiles read there; else 1",
                 cost_model::kMostPixelsOfPart, cost_model::kFewestDepthOfPart, cost_model::kFewestTilesOfPart)},
            {"padding", "the border is \"conditions\" in the loops or in a \"copy\" of the image",
             fmt::format(
                 "\"conditions\" for windows of up to {} columns, and of one filter for each channel; of an image of "
                 "unknown size, without dilation, only with {} registers",
                 cost_model::kNarrowWindow, cost_model::kManyRegisters)},
            {"shared", "threads share \"filters\", \"rows\" of pixels, or \"both\"",
             fmt::format(
                 "\"filters\": weights above L2; \"rows\": image above L2, weights up to {}/2 L2, or lines of an image "
                 "above 1/2 L2",
                 cost_model::kSharedWeightHalvesOfL2)},
            {"epilogue", "the blocks that follow are \"unrolled\" in the tile, or a \"loop\" over its pixels",
             "\"loop\" where rows of pixels are symbolic and the blocks call functions such as exp"}}},
      find_convolution, choose_convolution, schedule_convolution);
}

}  // namespace relaxc
