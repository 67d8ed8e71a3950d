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
#include "tir/rules/builtin_rules.h"
#include "tir/rules/cost_model.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

struct ConvolutionTile {
  int64_t vectors;        // blocks of filters side by side; divides their number
  int64_t rows, columns;  // of pixels
};

// Returns the cycles of one step of the reduction over a tile, in which each pixel and each vector of weights is loaded
// once. With too few sums, the latency of the FMA is exposed. So is a part of the latency of weights in the L2 cache.
double cycles(int64_t pixels, int64_t vectors, bool depthwise, const Target& target) {
  auto loads = static_cast<double>(pixels + vectors), sums = static_cast<double>(pixels * vectors);
  double from_l2 = static_cast<double>(target.l2.line) / target.l2_bytes_per_cycle;
  double exposed = depthwise ? 0 : target.exposed_l2_latency * from_l2 * static_cast<double>(vectors);
  // Ports that have to load in every cycle do not: 1,008 filters of 512 channels take 1.33 ms in tiles of 26 pixels and
  // one vector, 1.13 in tiles of 9 and three.
  const double ports = static_cast<double>(target.load_ports) * (depthwise ? 1 : cost_model::kSustainedLoads);
  return std::max(
             {sums / static_cast<double>(target.fma_ports), loads / ports, static_cast<double>(target.fma_latency)}) +
         target.load_delay * loads + exposed;
}

// The convolution's block, and the roles of its axes and operands, by its layouts.
struct Convolution : Stage {
  size_t image_axis, filters, y, x, lane;  // of the result; a block of filters fills the lanes
  size_t channels, window_x;               // of the window
  std::optional<size_t> channel_lane;      // where channels are in blocks
  std::optional<size_t> group;             // of the window: the elements whose products an instruction sums
  std::vector<size_t> window;              // all axes of the window, in order
  size_t image_y, image_x;                 // dims of the image
  bool depthwise, has_border;
  Ref<BufferLoad> image, weight;
  std::string intrin = {};     // that instruction
  int constants = 0;           // vectors that it reads beside the sum and the operands
  bool copies_pixels = false;  // those that a window of one pixel reads with a stride, into dense memory
  bool is_one_row = false;     // where rows of pixels do not matter: all of them are one row, which lines divide

  bool has_known_pixels() const { return extent(y) && extent(x); }
};

// Pixels as rows of so many, of which a tile may take several.
struct Pixels {
  std::optional<int64_t> rows, columns;
  int64_t most_rows = cost_model::kMostPixelRows;
};

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

// The decisions about a convolution.
struct ConvolutionPlan {
  ConvolutionTile tile;
  Pixels pixels;
  int64_t tiles_of_line;  // of one row of unknown length; 0: it is none
  int64_t parts;          // of the channels
  bool padding_by_conditions, unrolls_epilogue, streams_weights, streams_image;
};

// Returns the most pixels of a tile. Depthwise pixels need registers, too, since several window columns reuse them.
int64_t most_pixels(const Convolution& conv, int64_t vectors, const Target& target) {
  int64_t registers = target.num_vector_registers - vectors - cost_model::kElementRegisters - conv.constants;
  return std::max<int64_t>(1, registers / (conv.depthwise ? 2 : vectors));
}

double cycles_of_image(const ConvolutionTile& tile, const Pixels& pixels, bool depthwise, const Target& target) {
  int64_t rows = pixels.rows.value_or(tile.rows), columns = pixels.columns.value_or(tile.columns);
  double cost = 0;
  for (auto [count_y, tile_y] : {std::pair{rows / tile.rows, tile.rows}, std::pair{int64_t{1}, rows % tile.rows}}) {
    for (auto [count_x, tile_x] :
         {std::pair{columns / tile.columns, tile.columns}, std::pair{int64_t{1}, columns % tile.columns}}) {
      if (tile_y * tile_x == 0) continue;
      cost += static_cast<double>(count_y * count_x) * cycles(tile_y * tile_x, tile.vectors, depthwise, target);
    }
  }
  return cost / static_cast<double>(tile.vectors * columns * rows);
}

// Returns whether the padding becomes conditions, which lowering removes except in the first and last columns of the
// window, or in tiles at the border of an image of unknown size. Wide windows have too many of these, but in such an
// image a dilated one may reach beyond it everywhere, and tests beside the sums need registers. Of a picture, an image
// with few channels, each step of the sum would test them. Other convolutions read a padded copy of the image,
// depthwise ones a padded copy of one block of channels.
bool pads_by_conditions(const Convolution& conv, const Target& target) {
  if (conv.group) return false;  // the instruction's description has none
  const auto columns = conv.extent(conv.window_x);
  const bool is_narrow = conv.depthwise || (columns && *columns <= cost_model::kNarrowWindow);
  if (conv.has_known_pixels()) return is_narrow;
  const Expr &x = conv.image->indices[conv.image_x], tap = conv.block->iter_vars[conv.window_x].var;
  const bool is_dilated = !is_int(simplify(stepped(x, tap) - x), 1);
  const bool is_tested = is_dilated || (is_narrow && target.num_vector_registers >= cost_model::kManyRegisters);
  return conv.depthwise || (conv.channel_lane && is_tested);
}

// Returns whether tiles test whether they reach beyond an image of unknown size.
bool has_open_border(const Convolution& conv, const Target& target) {
  return conv.has_border && !conv.has_known_pixels() && pads_by_conditions(conv, target);
}

// Returns whether a padded copy of one block of channels is made of the rows of pixels that a tile reads, each time
// again: they stay in the L1 cache, and threads share the rows. Of a few pixels it is made once.
bool copies_by_row(const Convolution& conv) {
  const auto height = conv.extent(conv.y), width = conv.extent(conv.x);
  return conv.group && !(height && width && *height * *width <= cost_model::kFewPixelsOfBlock);
}

// Returns how many blocks of filters a tile may have. The last tile may have fewer, except where one instruction sums
// several products, and in groups, whose filters read different channels.
std::vector<int64_t> possible_vectors(const Convolution& conv) {
  const int64_t blocks = *conv.extent(conv.filters), most = conv.depthwise ? 1 : cost_model::kMostFilterVectors;
  const bool has_groups = uses_var(conv.image->indices, conv.block->iter_vars[conv.filters].var);
  return conv.group || has_groups ? divisors_between(1, most, blocks) : numbers_between(1, std::min(most, blocks));
}

// A tile, and the cycles of a step of the sum for all filters, divided by the number of pixels.
struct TileOfPixels {
  ConvolutionTile tile;
  double cycles;
};

// Returns the tile with the fewest cycles for all filters and pixels; their number may be symbolic.
TileOfPixels choose_tile(const Convolution& conv, const Pixels& pixels, const Target& target) {
  using namespace cost_model;
  const int64_t filter_blocks = *conv.extent(conv.filters);
  const auto [height, width, most_rows] = pixels;
  // Of a tile of fewer blocks, and of all of them.
  auto cycles_of_blocks = [&](ConvolutionTile tile, int64_t vectors) {
    tile.vectors = vectors;
    return vectors == 0 ? 0.0 : cycles_of_image(tile, pixels, conv.depthwise, target) * static_cast<double>(vectors);
  };
  auto cycles_of = [&](const ConvolutionTile& tile) {
    return static_cast<double>(filter_blocks / tile.vectors) * cycles_of_blocks(tile, tile.vectors) +
           cycles_of_blocks(tile, filter_blocks % tile.vectors);
  };
  TileOfPixels best{{1, 1, 1}, 0};
  for (int64_t vectors : possible_vectors(conv)) {
    int64_t most = most_pixels(conv, vectors, target);
    for (int64_t rows = 1; rows <= (height ? std::min(*height, most_rows) : 1); ++rows) {
      // A partial tile of rows keeps threads from sharing the rows, so there must be enough filters for them.
      if (height && *height % rows != 0 && filter_blocks / vectors < kFilterPanels) continue;
      const int64_t widest = width.value_or(kMostSymbolicColumns);
      for (int64_t columns = 1; columns * rows <= most && columns <= widest; ++columns) {
        ConvolutionTile tile{vectors, rows, columns};
        double cost = cycles_of(tile);
        if (best.cycles > 0 && cost >= best.cycles) continue;
        best = {tile, cost};
      }
    }
  }
  return best;
}

// Returns the bytes of all channels of a pixel.
int64_t bytes_of_pixel(const Convolution& conv) {
  const int64_t lanes = conv.channel_lane ? *conv.extent(*conv.channel_lane) : 1;
  return conv.extent(conv.channels).value_or(1) * lanes * dtype_of(conv.image).bytes();
}

Pixels pixels_of(const Convolution& conv) { return {conv.extent(conv.y), conv.extent(conv.x)}; }

// Returns the pixels as lines whose channels fill at most half of L2, where there is work for all threads, so that they
// stay there for all filters; those with the fewest cycles. Lines that are no longer than rows are as good as these.
Pixels choose_lines(const Convolution& conv, const Target& target) {
  const int64_t rows = *conv.extent(conv.y), columns = *conv.extent(conv.x), all = rows * columns;
  const int64_t pixel_bytes = bytes_of_pixel(conv), l2 = target.l2_of_core();
  const int64_t weight_bytes = bytes_of(conv.weight->buffer, 1), blocks = *conv.extent(conv.filters);
  Pixels best = pixels_of(conv);
  double least = 0;
  for (int64_t line : divisors_between(1, all, all)) {
    const Pixels pixels{all / line, line, 1};
    const auto [tile, cycles] = choose_tile(conv, pixels, target);
    const bool has_work = ceil_div(blocks, tile.vectors) * all / line >= assumed_cores(target);
    const bool is_image = line == all && !conv.copies_pixels;  // read as it lies
    const bool fits = line * pixel_bytes <= (is_image ? l2 * cost_model::kImageEighthsOfL2 / 8 : l2 / 2);
    if (line > columns && (!fits || !has_work)) continue;
    // All weights are read again for each line, from the next cache where they do not stay.
    const double bytes = weight_bytes > l2 / 2 ? static_cast<double>(blocks * target.vector_bytes()) : 0;
    const double cost = cycles + bytes * cost_model::kL2OverL3 / target.l2_bytes_per_cycle / static_cast<double>(line);
    if (least > 0 && cost > least) continue;
    least = cost;
    best = pixels;
  }
  return best;
}

// Returns the tiles of a line of a row of unknown length: the channels of its pixels stay in L2, beside weights that
// do, and a picture has enough lines for all threads.
int64_t choose_tiles_of_line(const Convolution& conv, const ConvolutionTile& tile, const Target& target) {
  using namespace cost_model;
  const int64_t l2 = target.l2_of_core(), panels = ceil_div(*conv.extent(conv.filters), tile.vectors);
  const bool keeps_weights = bytes_of(conv.weight->buffer, 1) <= l2 / 2;
  const int64_t fit = (keeps_weights ? l2 / 4 : l2 * kImageEighthsOfL2 / 8) / bytes_of_pixel(conv);
  const int64_t shared = kGuessedPixels * kGuessedPixels * panels / assumed_cores(target);
  return std::clamp(std::min(fit, shared) / tile.columns, int64_t{1}, kMostRowTiles);
}

// Returns a tile of few columns, each of which has a branch at the border, of as many filters as leave several columns.
ConvolutionTile tile_at_open_border(const Convolution& conv, int64_t filter_blocks, const Target& target) {
  using namespace cost_model;
  ConvolutionTile tile{1, 1, 1};
  for (int64_t vectors : divisors_between(1, kMostFilterVectors, filter_blocks)) {
    const int64_t columns = std::min(kMostColumnsOfOpenBorder, most_pixels(conv, vectors, target));
    if (vectors == 1 || columns >= kFewestColumnsOfOpenBorder) tile = {vectors, 1, columns};
  }
  return tile;
}

// Returns the loops that are distributed over threads, by default filters and rows of pixels, in that order. It is
// filters only if the weights exceed the L2 cache, so that the rows of one panel of filters can prefetch the next. It
// is rows first if the image exceeds the L2 cache and the weights do not, so that a row stays in the cache for all
// filters, and if rows are lines of an image that exceeds half of it.
std::string shared_by_threads(const Convolution& conv, bool whole_rows, const Target& target) {
  int64_t weight_bytes = bytes_of(conv.weight->buffer, 1), l2 = target.l2_of_core();
  int64_t image_bytes = bytes_of(conv.image->buffer, cost_model::kGuessedPixels);
  if (conv.is_one_row &&
      (!conv.has_known_pixels() || bytes_of_pixel(conv) * *conv.extent(conv.y) * *conv.extent(conv.x) > l2 / 2))
    return "rows";
  if (weight_bytes > l2) return "filters";
  bool streams_image = whole_rows && !conv.depthwise && image_bytes > l2;
  return streams_image && weight_bytes <= l2 * cost_model::kSharedWeightHalvesOfL2 / 2 ? "rows" : "both";
}

// Returns how many parts of the channels may be summed one after the other.
std::vector<int64_t> possible_parts(const Convolution& conv) {
  const auto channels = conv.extent(conv.channels);
  const bool has_parts =
      channels && conv.channel_lane && !conv.depthwise && !conv.group && (conv.has_known_pixels() || conv.is_one_row);
  return has_parts ? divisors_between(1, *channels, *channels) : std::vector<int64_t>{1};
}

// Returns the fewest parts whose panel of weights fills at most half of L1, where several tiles of few pixels read it
// there. Weights of all channels come from L2 for each tile: 512 filters of 2,048 channels take 1.4 times as long.
int64_t choose_parts(const Convolution& conv, const ConvolutionPlan& plan, const std::vector<int64_t>& possible,
                     const Target& target) {
  using namespace cost_model;
  if (possible.size() == 1 || plan.tile.rows * plan.tile.columns > kMostPixelsOfPart) return 1;
  const auto [rows, columns, most_rows] = plan.pixels;
  const int64_t tiles = plan.tiles_of_line > 0 ? plan.tiles_of_line
                                               : ceil_div(*columns, plan.tile.columns) *
                                                     (plan.streams_weights ? ceil_div(*rows, plan.tile.rows) : 1);
  int64_t depth = 1;
  for (size_t d : conv.window) depth *= conv.extent(d).value_or(1);
  const int64_t most = target.l1_of_core() / 2 / (plan.tile.vectors * target.vector_bytes());
  auto found = std::ranges::find_if(possible, [&](int64_t parts) { return depth / parts <= most; });
  const bool is_worth = found != possible.end() && depth / *found >= kFewestDepthOfPart && tiles >= kFewestTilesOfPart;
  return is_worth ? *found : 1;
}

ConvolutionPlan choose_convolution(const Convolution& conv, const Target& target, Decisions& decisions) {
  Pixels pixels = pixels_of(conv);
  const bool is_long_row = conv.is_one_row && !conv.has_known_pixels();
  if (is_long_row) {
    pixels = {1, std::nullopt, 1};
  } else if (conv.is_one_row) {
    const int64_t all = *pixels.rows * *pixels.columns;
    const int64_t line = decisions.number("line", divisors_between(1, all, all), *choose_lines(conv, target).columns);
    pixels = {all / line, line, 1};
  }
  const auto [height, width, most_rows] = pixels;
  int64_t filter_blocks = *conv.extent(conv.filters);
  ConvolutionTile best = has_open_border(conv, target) && !conv.depthwise
                             ? tile_at_open_border(conv, filter_blocks, target)
                             : choose_tile(conv, pixels, target).tile;
  ConvolutionPlan plan{best, pixels, 0, 1, true, true, false, false};
  auto choose = [&](const char* name, int64_t most, int64_t formula) {
    most = std::max<int64_t>(1, most);
    return decisions.number(name, numbers_between(1, most), std::min(formula, most));
  };
  plan.tile.vectors = decisions.number("vectors", possible_vectors(conv), best.vectors);
  int64_t most = most_pixels(conv, plan.tile.vectors, target);
  plan.tile.rows = choose("rows", height ? std::min({*height, most_rows, most}) : 1, best.rows);
  plan.tile.columns = choose("columns", most / plan.tile.rows, best.columns);
  if (is_long_row)
    plan.tiles_of_line = decisions.number("line_tiles", numbers_between(1, cost_model::kMostRowTiles),
                                          choose_tiles_of_line(conv, plan.tile, target));
  std::string padding = pads_by_conditions(conv, target) ? "conditions" : "copy";
  const AttrList paddings = conv.group ? AttrList{"copy"} : AttrList{"conditions", "copy"};
  plan.padding_by_conditions = decisions.word("padding", paddings, padding) == "conditions";
  bool whole_rows = height.value_or(0) % plan.tile.rows == 0;
  std::string shared =
      decisions.word("shared", {"both", "filters", "rows"}, shared_by_threads(conv, whole_rows, target));
  plan.streams_weights = shared == "filters";
  plan.streams_image = shared == "rows";
  const std::vector<int64_t> parts = possible_parts(conv);
  plan.parts = decisions.number("reduction_parts", parts, choose_parts(conv, plan, parts, target));
  // A symbolic row has a copy of the tile for each number of pixels left. An expensive block is a loop in these copies.
  std::string epilogue = !width && any_is_expensive(conv.epilogue) ? "loop" : "unrolled";
  plan.unrolls_epilogue = decisions.word("epilogue", {"unrolled", "loop"}, epilogue) == "unrolled";
  return plan;
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
