#include "tir/rules/convolution.h"

#include <algorithm>
#include <variant>

#include "ir/arith.h"
#include "support/diagnostic.h"
#include "tir/analysis/nests.h"
#include "tir/primitives/annotate.h"
#include "tir/primitives/cache_write.h"
#include "tir/primitives/compute_at.h"
#include "tir/primitives/compute_inline.h"
#include "tir/primitives/decompose_reduction.h"
#include "tir/primitives/fuse.h"
#include "tir/primitives/get_block.h"
#include "tir/primitives/get_loops.h"
#include "tir/primitives/get_producers.h"
#include "tir/primitives/merge_epilogue.h"
#include "tir/primitives/parallel.h"
#include "tir/primitives/reindex_cache_read.h"
#include "tir/primitives/reorder.h"
#include "tir/primitives/reverse_compute_at.h"
#include "tir/primitives/split.h"
#include "tir/primitives/unroll.h"
#include "tir/primitives/vectorize.h"
#include "tir/rules/lanes.h"

namespace relaxc {

namespace {

constexpr int64_t kGuessedPixels = 56;  // of a symbolic extent
constexpr int64_t kNarrowWindow = 3;
constexpr size_t kWindowColumns =
    7;  // the axis, behind the result's five, the channels' (or their blocks') and the rows'

struct ConvolutionTile {
  int64_t vectors;        // blocks of filters side by side; divides their number
  int64_t rows, columns;  // of pixels
};

// Cycles of one step of the reduction over a tile, each pixel and each vector of weights loaded once. Too few sums wait
// for each other. A vector of weights waits for the line of the L2 cache that it lies in, which prefetching hides by
// three fifths; a load takes a twentieth of a cycle from the multiply-adds. The two shares were fitted to measured
// tiles.
double cycles(int64_t pixels, int64_t vectors, bool depthwise, const Target& target) {
  constexpr double kShown = 0.4, kLoad = 0.05;
  auto loads = static_cast<double>(pixels + vectors), sums = static_cast<double>(pixels * vectors);
  double from_l2 = static_cast<double>(target.l2.line) / target.l2.bytes_per_cycle;
  return std::max({sums / static_cast<double>(target.fma_ports), loads / static_cast<double>(target.load_ports),
                   static_cast<double>(target.fma_latency)}) +
         kLoad * loads + (depthwise ? 0 : kShown * from_l2 * static_cast<double>(vectors));
}

// The same for all tiles of a line of pixels: full ones and the tail.
struct Line {
  int64_t full, tail;  // how many full tiles; pixels of the tail
};
Line divide(int64_t extent, int64_t tile) { return {extent / tile, extent % tile}; }

int64_t bytes_of(const Buffer& buffer, int64_t symbolic) {
  int64_t bytes = buffer_type(buffer).dtype.bytes();
  for (const Expr& dim : buffer_type(buffer).shape) bytes *= as_int(dim).value_or(symbolic);
  return bytes;
}

// What stands where in the convolution's block.
struct Anchor {
  Ref<Block> block;
  bool depthwise = false;
  std::optional<Ref<BufferLoad>> image, weight;
  std::vector<Ref<Block>> behind;
  std::optional<int64_t> extent(size_t axis) const { return as_int(block->iter_vars[axis].domain.extent); }
};

// Why the block is not a convolution of n, filter blocks, y, x, lanes and then the window's axes; nullopt: it is one.
std::optional<std::string> read_anchor(Anchor& anchor, const Target& target) {
  const Block& block = *anchor.block;
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store || store->indices.size() != 5 || block.iter_vars.size() < 8)
    return "it is not a convolution over an image in channel blocks, [N, C / b, H, W, b]";
  for (size_t d = 0; d < block.iter_vars.size(); ++d) {
    if (block.iter_vars[d].kind != (d < 5 ? IterKind::kSpatial : IterKind::kReduce))
      return "its axes stand in another order";
  }
  if (anchor.extent(4) != target.vector_lanes(32)) return "its channel blocks are not vectors";
  if (!anchor.extent(1)) return "its number of filters is symbolic";
  // Depthwise: the image's lanes are the filters', too.
  const VarRef& lane = block.iter_vars[4].var;
  walk(store->value, [&](const Ref<BufferLoad>& load) {
    if (same_node(load->buffer, store->buffer)) return;
    std::optional<Ref<BufferLoad>>& operand = anchor.image ? anchor.weight : anchor.image;
    operand = load;
  });
  if (!anchor.weight || !mentions((*anchor.weight)->indices.back(), lane))
    return "its weights have no filters in lanes";
  anchor.depthwise = mentions((*anchor.image)->indices.back(), lane);
  return std::nullopt;
}

// The padded copy of the image: whole vectors of lines over the threads, or of planes where lines are symbolic.
void schedule_padding(Schedule& sch, const BlockRV& pad, int64_t lanes) {
  Loops loops = sch.apply(GetLoops{pad});
  LoopRV inner = loops.back();
  if (loops.size() == 4) inner = sch.apply(Split{inner, {std::nullopt, lanes}})[1];
  sch.apply(Vectorize{inner});
  bool constant = as_int(cast<For>(sch.get(loops[2]))->extent).has_value();
  sch.apply(Parallel{sch.apply(Fuse{Loops(loops.begin(), loops.begin() + (constant ? 3 : 2))})});
}

// A window of one pixel with a stride: the pixels that it reads are copied close together, for all filters.
void copy_strided_pixels(Schedule& sch, const BlockRV& rv, const Anchor& conv) {
  const std::vector<IterVar>& axes = conv.block->iter_vars;
  for (size_t d = 5; d < axes.size(); ++d) {
    bool in_image =
        mentions((*conv.image)->indices[2], axes[d].var) || mentions((*conv.image)->indices[3], axes[d].var);
    if (in_image && !is_int(axes[d].domain.extent, 1)) return;
  }
  const Expr& x = (*conv.image)->indices[3];
  Expr step = simplify(substitute(x, {{axes[3].var.get(), axes[3].var + 1}}) - x);
  if (is_int(step, 1) || conv.depthwise || axes.size() != 9) return;
  IndexMap map(axes.size(), [](const Exprs& i) { return Exprs{i[0], i[5], i[2], i[3], i[8]}; });
  BlockRV copy = sch.apply(ReindexCacheRead{rv, (*conv.image)->buffer->name.c_str(), "global", map});
  Loops loops = sch.apply(GetLoops{copy});
  sch.apply(Vectorize{loops.back()});
  sch.apply(Parallel{sch.apply(Fuse{Loops(loops.begin(), loops.begin() + 3)})});
}

// Moves a block that reads the tile's sums behind them: all of them at once, or in loops over the pixels.
void take_sums(Schedule& sch, const BlockRV& taker, const LoopRV& tile, bool at_once) {
  sch.apply(ReverseComputeAt{taker, tile, true});
  Loops all = sch.apply(GetLoops{taker});
  Loops inner(all.begin() + 4, all.end());
  sch.apply(Reorder{Loops{inner[0], inner[2], inner[3], inner[1], inner[4]}});
  if (at_once) {
    sch.apply(Unroll{inner[2]});
    sch.apply(Unroll{inner[3]});
  }
  sch.apply(Unroll{inner[1]});
  sch.apply(Vectorize{inner[4]});
}

// What is decided about a convolution.
struct Plan {
  ConvolutionTile tile;
  bool padding_by_conditions, unrolls_epilogue, streams_weights, streams_image;
};

// Registers but for the weights' vectors and a pixel. Depthwise, sums share them with the pixels, which serve several
// columns of the window.
int64_t most_pixels(int64_t vectors, bool depthwise, const Target& target) {
  return std::max<int64_t>(1, (target.num_vector_registers - vectors - 2) / (depthwise ? 2 : vectors));
}
constexpr int64_t kMostRows = 4, kMostVectors = 4;

double cycles_of_image(const ConvolutionTile& tile, std::optional<int64_t> height, std::optional<int64_t> width,
                       bool depthwise, const Target& target) {
  Line across = divide(width.value_or(tile.columns), tile.columns);
  Line down = divide(height.value_or(tile.rows), tile.rows);
  double cost = 0;
  for (auto [count_y, tile_y] : {std::pair{down.full, tile.rows}, std::pair{int64_t{1}, down.tail}}) {
    for (auto [count_x, tile_x] : {std::pair{across.full, tile.columns}, std::pair{int64_t{1}, across.tail}}) {
      if (tile_y * tile_x == 0) continue;
      cost += static_cast<double>(count_y * count_x) * cycles(tile_y * tile_x, tile.vectors, depthwise, target);
    }
  }
  return cost / static_cast<double>(tile.vectors * width.value_or(tile.columns) * height.value_or(tile.rows));
}

// The tile with the fewest cycles for an image of that many pixels (nullopt: symbolic).
ConvolutionTile choose_convolution_tile(int64_t filter_blocks, std::optional<int64_t> height,
                                        std::optional<int64_t> width, bool depthwise, const Target& target) {
  ConvolutionTile best{1, 1, 1};
  double least = 0;
  for (int64_t vectors = 1; vectors <= (depthwise ? 1 : kMostVectors); ++vectors) {
    if (filter_blocks % vectors != 0) continue;
    int64_t most = most_pixels(vectors, depthwise, target);
    for (int64_t rows = 1; rows <= (height ? std::min<int64_t>(*height, kMostRows) : 1); ++rows) {
      // Cut lines need a loop that is not shared by threads; the filters are enough for them then.
      if (height && *height % rows != 0 && filter_blocks / vectors < 4) continue;
      for (int64_t columns = 1; columns * rows <= most && columns <= width.value_or(most); ++columns) {
        ConvolutionTile tile{vectors, rows, columns};
        double cost = cycles_of_image(tile, height, width, depthwise, target);
        if (least > 0 && cost >= least) continue;
        least = cost;
        best = tile;
      }
    }
  }
  return best;
}

// The padding becomes conditions, of which lowering rids all but the first and last columns of the window. Wide windows
// have too many of these, and where the image ends in a tile is only known for constant extents: they read a padded
// copy, depthwise of the one block of channels.
bool pads_by_conditions(const Anchor& conv) {
  bool narrow = conv.depthwise || conv.extent(kWindowColumns).value_or(kNarrowWindow + 1) <= kNarrowWindow;
  return narrow && conv.extent(2) && conv.extent(3);
}

// The threads share filters and lines of pixels. Where the weights are more than the L2 cache holds, filters alone, so
// that the lines of one panel of filters can fetch the next. Where the image is more than it holds and the weights are
// not, lines alone: a line stays close for all filters.
std::string shared_by_threads(const Anchor& conv, bool whole_lines, const Target& target) {
  int64_t weight_bytes = bytes_of((*conv.weight)->buffer, 1);
  int64_t image_bytes = bytes_of((*conv.image)->buffer, kGuessedPixels);
  if (weight_bytes > target.l2.bytes) return "filters";
  bool streams_image = whole_lines && !conv.depthwise && image_bytes > target.l2.bytes;
  return streams_image && weight_bytes <= target.l2.bytes / 2 ? "rows" : "both";
}

Plan decide_plan(const Anchor& conv, const Target& target, Decisions& decisions) {
  auto height = conv.extent(2), width = conv.extent(3);
  int64_t filter_blocks = *conv.extent(1);
  ConvolutionTile best = choose_convolution_tile(filter_blocks, height, width, conv.depthwise, target);
  Plan plan{best, true, true, false, false};
  plan.tile.vectors =
      decisions.number("vectors", divisors_between(1, conv.depthwise ? 1 : kMostVectors, filter_blocks), best.vectors);
  int64_t most = most_pixels(plan.tile.vectors, conv.depthwise, target);
  int64_t most_rows = height ? std::max<int64_t>(1, std::min({*height, kMostRows, most})) : 1;
  plan.tile.rows = decisions.number("rows", numbers_between(1, most_rows), std::min(best.rows, most_rows));
  int64_t most_columns = std::max<int64_t>(1, most / plan.tile.rows);
  plan.tile.columns =
      decisions.number("columns", numbers_between(1, most_columns), std::min(best.columns, most_columns));
  std::string padding = pads_by_conditions(conv) ? "conditions" : "copy";
  plan.padding_by_conditions = decisions.word("padding", {"conditions", "copy"}, padding) == "conditions";
  bool whole_lines = height.value_or(0) % plan.tile.rows == 0;
  std::string shared =
      decisions.word("shared", {"both", "filters", "rows"}, shared_by_threads(conv, whole_lines, target));
  plan.streams_weights = shared == "filters";
  plan.streams_image = shared == "rows";
  // Of a symbolic line there is a copy for each number of pixels that may be left, in which a long block takes them one
  // by one, from memory.
  bool is_long_behind =
      std::any_of(conv.behind.begin(), conv.behind.end(), [](const Ref<Block>& block) { return is_long(*block); });
  std::string epilogue = !width && is_long_behind ? "loop" : "unrolled";
  plan.unrolls_epilogue = decisions.word("epilogue", {"unrolled", "loop"}, epilogue) == "unrolled";
  return plan;
}

void schedule_convolution(Schedule& sch, const Anchor& conv, const Plan& plan, const Target& target) {
  BlockRV rv = sch.apply(GetBlock{"nn.conv2d"});
  const Loops loops = sch.apply(GetLoops{rv});  // n, filter blocks, y, x, lanes, then the window's
  const ConvolutionTile& tile = plan.tile;
  Blocks behind = sch.apply(MergeEpilogue{rv});
  Blocks padding = sch.apply(GetProducers{rv});
  for (const BlockRV& block : padding) {
    if (plan.padding_by_conditions) sch.apply(ComputeInline{block});
    if (!plan.padding_by_conditions && !conv.depthwise) schedule_padding(sch, block, target.vector_lanes(32));
  }
  bool pads_blocks = !plan.padding_by_conditions && conv.depthwise && !padding.empty();
  copy_strided_pixels(sch, rv, conv);

  Loops filters = sch.apply(Split{loops[1], {std::nullopt, tile.vectors}});
  Loops y = sch.apply(Split{loops[2], {std::nullopt, tile.rows}});
  Loops x = sch.apply(Split{loops[3], {std::nullopt, tile.columns}});
  Loops window(loops.begin() + 5, loops.end());
  bool whole_lines = conv.extent(2).value_or(0) % tile.rows == 0;
  Loops outer = {loops[0], filters[0], y[0], x[0]};
  if (plan.streams_image) std::swap(outer[1], outer[2]);
  Loops order = outer;
  order.insert(order.end(), window.begin(), window.end());
  order.insert(order.end(), {y[1], x[1], filters[1], loops[4]});
  sch.apply(Reorder{order});
  if (!conv.extent(3)) sch.apply(Annotate{x[0], "exact_tails", true});  // symbolic lines are one by one

  if (pads_blocks) {
    sch.apply(ComputeAt{padding[0], filters[0]});
    sch.apply(Vectorize{sch.apply(GetLoops{padding[0]}).back()});
  }

  // The tile's sums live in registers; the last block behind takes them from there.
  if (behind.empty()) behind = {sch.apply(CacheWrite{rv, 0, "local"})};
  if (plan.unrolls_epilogue) {
    take_sums(sch, behind[0], x[0], true);
  } else {
    take_sums(sch, sch.apply(CacheWrite{rv, 0, "local"}), x[0], true);
    take_sums(sch, behind[0], x[0], false);
  }
  for (const LoopRV& loop : {y[1], x[1], filters[1]}) sch.apply(Unroll{loop});
  // Not for others: pixels that neighbours share would be kept in registers that the sums need.
  if (conv.depthwise) sch.apply(Unroll{window.back()});
  sch.apply(Vectorize{loops[4]});
  sch.apply(DecomposeReduction{rv, window[0]});

  bool shares_both = whole_lines && !plan.streams_weights && !plan.streams_image && !pads_blocks;
  Loops shared(outer.begin(), outer.begin() + (shares_both ? 3 : 2));
  LoopRV parallel = sch.apply(Fuse{shared});
  if (plan.streams_weights) sch.apply(Annotate{parallel, "prefetch", AttrList{(*conv.weight)->buffer->name}});
  sch.apply(Parallel{parallel});
}

// The convolution of a program of plain nests, or why there is none that this rule fits.
std::variant<Anchor, std::string> find_convolution(const PrimFuncRef& program, const Target& target) {
  auto block = find_anchor(program, "nn.conv2d");
  auto nests = find_nests(program);
  if (!block || !nests) return "it is not a list of plain nests with a block of 'nn.conv2d'";
  Anchor anchor{*block, false, {}, {}, {}};
  auto at = std::find_if(nests->begin(), nests->end(), [&](const Ref<Block>& b) { return same_node(b, *block); });
  if (at == nests->end()) return "its block of 'nn.conv2d' is not a nest of its own";
  anchor.behind.assign(at + 1, nests->end());
  if (auto why = read_anchor(anchor, target)) return *why;
  return anchor;
}

}  // namespace

ScheduleRule convolution_rule() {
  return {.name = "convolution",
          .op = "nn.conv2d",
          .apply =
              [](Schedule& sch, const Target& target, Decisions& decisions) {
                auto found = find_convolution(sch.function(), target);
                if (const std::string* why = std::get_if<std::string>(&found)) fail_to_fit({}, "{}", *why);
                const Anchor& conv = std::get<Anchor>(found);
                schedule_convolution(sch, conv, decide_plan(conv, target, decisions), target);
              },
          .fits = [](const PrimFuncRef& program, const Target& target) -> std::optional<std::string> {
            auto found = find_convolution(program, target);
            const std::string* why = std::get_if<std::string>(&found);
            return why ? std::optional(*why) : std::nullopt;
          },
          .space =
              [](const PrimFuncRef& program, const Target& target, Decisions& decisions) {
                auto found = find_convolution(program, target);
                if (const Anchor* conv = std::get_if<Anchor>(&found)) decide_plan(*conv, target, decisions);
              },
          .doc = "a direct convolution over an image in channel blocks",
          .decisions = {{"vectors", "blocks of filters in a register tile", "the fewest cycles for the whole image"},
                        {"rows", "rows of pixels in a register tile", "the fewest cycles for the whole image"},
                        {"columns", "columns of pixels in a register tile", "the fewest cycles for the whole image"},
                        {"padding", "the border is \"conditions\" in the loops or in a \"copy\" of the image",
                         "\"conditions\" for windows of up to 3 columns over images of constant size"},
                        {"shared", "threads share \"filters\", \"rows\" of pixels, or \"both\"",
                         "\"filters\": weights above L2; \"rows\": image above L2, weights below half of it"},
                        {"epilogue", "the blocks behind are \"unrolled\" in the tile, or a \"loop\" over its pixels",
                         "\"loop\" where rows of pixels are symbolic and the blocks are long"}}};
}

}  // namespace relaxc
