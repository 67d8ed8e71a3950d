// The formulas of convolutions.
#include <algorithm>

#include "tir/analysis/conditions.h"
#include "tir/rules/convolution.h"
#include "tir/rules/cost_model.h"

namespace relaxc {

namespace {

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

}  // namespace

bool copies_by_row(const Convolution& conv) {
  const auto height = conv.extent(conv.y), width = conv.extent(conv.x);
  return conv.group && !(height && width && *height * *width <= cost_model::kFewPixelsOfBlock);
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

}  // namespace relaxc
