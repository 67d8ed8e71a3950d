#include "tir/rules/convolution.h"

#include <algorithm>

#include "ir/arith.h"
#include "support/diagnostic.h"
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

// What no longer stays in the second cache beside other things.
constexpr int64_t kStreamedBytes = 1 << 20;
constexpr int64_t kGuessedPixels = 56;  // of a symbolic extent
constexpr int64_t kNarrowWindow = 3;
constexpr size_t kWindowColumns =
    7;  // the axis, behind the result's five, the channels' (or their blocks') and the rows'

// Cycles of one step of the reduction over a tile: two multiply-adds or loads at a time, of which each pixel and each
// vector of weights needs one; less than eight sums wait for each other. Vectors of weights come from the second cache.
double cycles(int64_t pixels, int64_t vectors, bool depthwise) {
  int64_t sums = pixels * vectors, loads = pixels + vectors;
  double from_far = depthwise ? 0 : 0.4 * static_cast<double>(vectors);
  return 0.5 * static_cast<double>(std::max<int64_t>({sums, loads, 8})) + 0.05 * static_cast<double>(loads) + from_far;
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
  Loops loops;  // n, filter blocks, y, x, lanes, then the window's
  bool depthwise;
  std::optional<Ref<BufferLoad>> image, weight;
  LoopRV batch() const { return loops[0]; }
  LoopRV filters() const { return loops[1]; }
  LoopRV y() const { return loops[2]; }
  LoopRV x() const { return loops[3]; }
  LoopRV lanes() const { return loops[4]; }
  std::optional<int64_t> extent(size_t axis) const { return as_int(block->iter_vars[axis].domain.extent); }
};

Anchor find_anchor(Schedule& sch, const BlockRV& rv, const Target& target) {
  Anchor anchor{cast<Block>(sch.get(rv)), sch.apply(GetLoops{rv}), false, {}, {}};
  const Block& block = *anchor.block;
  auto reject = [&](std::string_view why) { fail_to_fit(anchor.block.span(), "block '{}' {}", block.name, why); };
  const BufferStore* store = block.body.as<BufferStore>();
  if (!store || store->indices.size() != 5 || block.iter_vars.size() < 8)
    reject("is no convolution over an image in channel blocks, [N, C / b, H, W, b]");
  if (anchor.loops.size() != block.iter_vars.size()) reject("has not one loop for each axis");
  for (size_t d = 0; d < anchor.loops.size(); ++d) {
    if (!same_node(cast<For>(sch.get(anchor.loops[d]))->var, block.iter_vars[d].value))
      reject("has its loops in another order");
    if (block.iter_vars[d].kind != (d < 5 ? IterKind::kSpatial : IterKind::kReduce))
      reject("has its axes in another order");
  }
  if (anchor.extent(4) != target.vector_lanes(32)) reject("has channel blocks that are no vectors");
  if (!anchor.extent(1)) reject("has a symbolic number of filters");
  // Depthwise: the image's lanes are the filters', too.
  const VarRef& lane = block.iter_vars[4].var;
  walk(store->value, [&](const Ref<BufferLoad>& load) {
    if (same_node(load->buffer, store->buffer)) return;
    std::optional<Ref<BufferLoad>>& operand = anchor.image ? anchor.weight : anchor.image;
    operand = load;
  });
  if (!anchor.weight || !mentions((*anchor.weight)->indices.back(), lane))
    reject("has no weight with filters in its lanes");
  anchor.depthwise = mentions((*anchor.image)->indices.back(), lane);
  return anchor;
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

void schedule_convolution(Schedule& sch, const BlockRV& rv, const Target& target) {
  Anchor conv = find_anchor(sch, rv, target);
  ConvolutionTile tile =
      choose_convolution_tile(*conv.extent(1), conv.extent(2), conv.extent(3), conv.depthwise, target);
  Blocks behind = sch.apply(MergeEpilogue{rv});
  // The padding becomes conditions, of which lowering rids all but the first and last columns of the window. Wide
  // windows have too many of these, and where the image ends in a tile is only known for constant extents: they read a
  // padded copy, depthwise of the one block of channels.
  bool narrow = conv.depthwise || conv.extent(kWindowColumns).value_or(kNarrowWindow + 1) <= kNarrowWindow;
  bool by_conditions = narrow && conv.extent(2) && conv.extent(3);
  Blocks padding = sch.apply(GetProducers{rv});
  for (const BlockRV& block : padding) {
    if (by_conditions) sch.apply(ComputeInline{block});
    if (!by_conditions && !conv.depthwise) schedule_padding(sch, block, target.vector_lanes(32));
  }
  bool pads_blocks = !by_conditions && conv.depthwise && !padding.empty();
  copy_strided_pixels(sch, rv, conv);

  Loops filters = sch.apply(Split{conv.filters(), {std::nullopt, tile.vectors}});
  Loops y = sch.apply(Split{conv.y(), {std::nullopt, tile.rows}});
  Loops x = sch.apply(Split{conv.x(), {std::nullopt, tile.columns}});
  Loops window(conv.loops.begin() + 5, conv.loops.end());
  // The threads share filters and lines of pixels. Where the weights are more than the second cache holds, filters
  // alone, so that the lines of one panel of filters can fetch the next; also where the last line is cut. Where the
  // image is more than it holds and the weights are not, lines alone: a line stays close for all filters.
  int64_t weight_bytes = bytes_of((*conv.weight)->buffer, 1);
  int64_t image_bytes = bytes_of((*conv.image)->buffer, kGuessedPixels);
  bool streams_weights = weight_bytes > kStreamedBytes;
  bool whole_lines = conv.extent(2).value_or(0) % tile.rows == 0;
  bool streams_image = !streams_weights && whole_lines && !conv.depthwise && image_bytes > kStreamedBytes &&
                       weight_bytes <= kStreamedBytes / 2;
  Loops outer = {conv.batch(), filters[0], y[0], x[0]};
  if (streams_image) std::swap(outer[1], outer[2]);
  Loops order = outer;
  order.insert(order.end(), window.begin(), window.end());
  order.insert(order.end(), {y[1], x[1], filters[1], conv.lanes()});
  sch.apply(Reorder{order});
  if (!conv.extent(3)) sch.apply(Annotate{x[0], "exact_tails", true});  // symbolic lines are one by one

  if (pads_blocks) {
    sch.apply(ComputeAt{padding[0], filters[0]});
    sch.apply(Vectorize{sch.apply(GetLoops{padding[0]}).back()});
  }

  // The tile's sums live in registers; the last block behind takes them from there. Of a symbolic line there is a copy
  // for each number of pixels that may be left, in which a long block takes them one by one, from memory.
  if (behind.empty()) behind = {sch.apply(CacheWrite{rv, 0, "local"})};
  if (!conv.extent(3) && is_long(*cast<Block>(sch.get(behind[0])))) {
    take_sums(sch, sch.apply(CacheWrite{rv, 0, "local"}), x[0], true);
    take_sums(sch, behind[0], x[0], false);
  } else {
    take_sums(sch, behind[0], x[0], true);
  }
  for (const LoopRV& loop : {y[1], x[1], filters[1]}) sch.apply(Unroll{loop});
  // Not for others: pixels that neighbours share would be kept in registers that the sums need.
  if (conv.depthwise) sch.apply(Unroll{window.back()});
  sch.apply(Vectorize{conv.lanes()});
  sch.apply(DecomposeReduction{rv, window[0]});

  bool shares_both = whole_lines && !streams_weights && !streams_image && !pads_blocks;
  Loops shared(outer.begin(), outer.begin() + (shares_both ? 3 : 2));
  LoopRV parallel = sch.apply(Fuse{shared});
  if (streams_weights) sch.apply(Annotate{parallel, "prefetch", AttrList{(*conv.weight)->buffer->name}});
  sch.apply(Parallel{parallel});
}

}  // namespace

ConvolutionTile choose_convolution_tile(int64_t filter_blocks, std::optional<int64_t> height,
                                        std::optional<int64_t> width, bool depthwise, const Target& target) {
  ConvolutionTile best{1, 1, 1};
  double least = 0;
  for (int64_t vectors = 1; vectors <= (depthwise ? 1 : 4); ++vectors) {
    if (filter_blocks % vectors != 0) continue;
    // Registers but for the weights' vectors and a pixel. Depthwise, sums share them with the pixels, which serve
    // several columns of the window.
    int64_t free = (target.num_vector_registers - vectors - 2) / (depthwise ? 2 : vectors);
    int64_t most = std::max<int64_t>(1, free);
    for (int64_t rows = 1; rows <= (height ? std::min<int64_t>(*height, 4) : 1); ++rows) {
      // Cut lines need a loop that is not shared by threads; the filters are enough for them then.
      if (height && *height % rows != 0 && filter_blocks / vectors < 4) continue;
      for (int64_t columns = 1; columns * rows <= most && columns <= width.value_or(most); ++columns) {
        Line across = divide(width.value_or(columns), columns), down = divide(height.value_or(rows), rows);
        double cost = 0;
        for (auto [count_y, tile_y] : {std::pair{down.full, rows}, std::pair{int64_t{1}, down.tail}}) {
          for (auto [count_x, tile_x] : {std::pair{across.full, columns}, std::pair{int64_t{1}, across.tail}}) {
            if (tile_y * tile_x == 0) continue;
            cost += static_cast<double>(count_y * count_x) * cycles(tile_y * tile_x, vectors, depthwise);
          }
        }
        cost /= static_cast<double>(vectors * width.value_or(columns) * height.value_or(rows));
        if (least > 0 && cost >= least) continue;
        least = cost;
        best = {vectors, rows, columns};
      }
    }
  }
  return best;
}

ScheduleRule convolution_rule(const Target& target) {
  auto apply = [target](Schedule& sch) { schedule_convolution(sch, sch.apply(GetBlock{"nn.conv2d"}), target); };
  return {"convolution", "", "nn.conv2d", {}, apply};
}

}  // namespace relaxc
