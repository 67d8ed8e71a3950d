#include "tir/schedule/rules/convolution.h"

#include <algorithm>

#include "ir/arith.h"
#include "support/diagnostic.h"

namespace relaxc {

namespace {

// Weights that no longer stay in the second cache beside an image.
constexpr int64_t kStreamedBytes = 1 << 20;

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

// What stands where in the convolution's block.
struct Anchor {
  Ref<Block> block;
  Loops loops;  // n, filter blocks, y, x, lanes, then the window's
  bool depthwise;
  std::optional<Buffer> weight;
  LoopRV batch() const { return loops[0]; }
  LoopRV filters() const { return loops[1]; }
  LoopRV y() const { return loops[2]; }
  LoopRV x() const { return loops[3]; }
  LoopRV lanes() const { return loops[4]; }
  std::optional<int64_t> extent(size_t axis) const { return as_int(block->iter_vars[axis].domain.extent); }
};

bool mentions(const Expr& index, const VarRef& var) {
  bool found = false;
  walk(index, [&](const Ref<Var>& at) { found = found || same_node(at, var); });
  return found;
}

Anchor find_anchor(Schedule& sch, const BlockRV& rv, const Target& target) {
  Anchor anchor{cast<Block>(sch.get(rv)), sch.get_loops(rv), false, {}};
  const Block& block = *anchor.block;
  auto reject = [&](std::string_view why) { fail(anchor.block.span(), "block '{}' {}", block.name, why); };
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
  // Depthwise: the image's lanes are the filters'.
  const VarRef& lane = block.iter_vars[4].var;
  int operands_with_lanes = 0;
  walk(store->value, [&](const BufferLoad& load) {
    if (same_node(load.buffer, store->buffer) || !mentions(load.indices.back(), lane)) return;
    ++operands_with_lanes;
    anchor.weight = load.buffer;  // the last operand
  });
  if (!anchor.weight) reject("has no operand with filters in its lanes");
  anchor.depthwise = operands_with_lanes == 2;
  return anchor;
}

void schedule_convolution(Schedule& sch, const BlockRV& rv, const Target& target) {
  Anchor conv = find_anchor(sch, rv, target);
  ConvolutionTile tile =
      choose_convolution_tile(*conv.extent(1), conv.extent(2), conv.extent(3), conv.depthwise, target);
  Blocks behind = sch.merge_epilogue(rv);
  // The padding becomes conditions, of which lowering rids the tiles inside of the image.
  for (const BlockRV& producer : sch.get_producers(rv)) sch.compute_inline(producer);

  Loops filters = sch.split(conv.filters(), {std::nullopt, tile.vectors});
  Loops y = sch.split(conv.y(), {std::nullopt, tile.rows});
  Loops x = sch.split(conv.x(), {std::nullopt, tile.columns});
  Loops window(conv.loops.begin() + 5, conv.loops.end());
  Loops order = {conv.batch(), filters[0], y[0], x[0]};
  order.insert(order.end(), window.begin(), window.end());
  order.insert(order.end(), {y[1], x[1], filters[1], conv.lanes()});
  sch.reorder(order);
  for (auto [axis, loop] : {std::pair{2, y[0]}, std::pair{3, x[0]}}) {
    if (!conv.extent(static_cast<size_t>(axis))) sch.annotate(loop, "exact_tails", true);
  }

  // The tile's sums live in registers; the last block behind takes them from there.
  if (behind.empty()) behind = {sch.cache_write(rv, 0, "local")};
  sch.reverse_compute_at(behind[0], x[0], true);
  Loops all = sch.get_loops(behind[0]);
  Loops inner(all.begin() + 4, all.end());
  sch.reorder(Loops{inner[0], inner[2], inner[3], inner[1], inner[4]});
  for (size_t d : {2, 3, 1}) sch.unroll(inner[d]);
  sch.vectorize(inner[4]);
  for (const LoopRV& loop : {y[1], x[1], filters[1]}) sch.unroll(loop);
  // Not for others: pixels that neighbours share would be kept in registers that the sums need.
  if (conv.depthwise) sch.unroll(window.back());
  sch.vectorize(conv.lanes());
  sch.decompose_reduction(rv, window[0]);

  // The threads share filters and lines of pixels. Where the weights are more than the second cache holds, filters
  // alone, so that the lines of one panel of filters can fetch the next; also where the last line is cut.
  const Buffer& weight = *conv.weight;
  int64_t weight_bytes = buffer_type(weight).dtype.bytes();
  for (const Expr& dim : buffer_type(weight).shape) weight_bytes *= as_int(dim).value_or(1);
  bool streams_weights = weight_bytes > kStreamedBytes;
  Loops shared = {conv.batch(), filters[0]};
  if (!streams_weights && conv.extent(2).value_or(0) % tile.rows == 0) shared.push_back(y[0]);
  LoopRV parallel = sch.fuse(shared);
  if (streams_weights) sch.annotate(parallel, "prefetch", AttrList{weight->name});
  sch.parallel(parallel);
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
  auto apply = [target](Schedule& sch) { schedule_convolution(sch, sch.get_block("nn.conv2d"), target); };
  return {"convolution", "", "nn.conv2d", {}, apply};
}

}  // namespace relaxc
