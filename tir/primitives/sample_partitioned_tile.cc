#include "tir/primitives/sample_partitioned_tile.h"

#include "tir/edit/tiles.h"

namespace relaxc {

using namespace scheduling;

namespace {
constexpr int64_t kFewIterations = 16;  // at most in the innermost factor where the extent is not known
}

Exprs SamplePartitionedTile::apply(Step& step) const {
  TreeNode* loop = step.loop(this->loop);
  if (n < 1 || n > kMostFactors || partition_pos < 0 || partition_pos > n || innerpart_factor < 1)
    step.refuse({loop}, "position {} among {} factors, {} for the inner part", partition_pos, n, innerpart_factor);
  auto extent = as_int(loop->loop->extent);
  bool known = extent && *extent > 0, is_split = partition_pos > 0 && partition_pos < n;
  if (known && is_split && *extent % innerpart_factor != 0)
    step.refuse({loop}, "the extent of loop '{}', {}, is no multiple of the inner part's factor {}", loop, *extent,
                innerpart_factor);
  Ints tile;
  if (!step.decision().is_none()) {
    step.require(decided_tile(step.decision(), n, known, tile), loop);
    if (known) {
      tile = fit_tile(tile, *extent);
    } else {
      tile[0] = 0;
    }
    int64_t inner = 1;
    for (int64_t i = partition_pos; i < n; ++i) inner *= tile[static_cast<size_t>(i)];
    if (is_split && inner % innerpart_factor != 0)
      step.refuse({loop}, "the factors decided make an inner part of {}, no multiple of {}", inner, innerpart_factor);
  } else if (is_split) {
    tile = known ? random_tile(*extent / innerpart_factor, partition_pos, *extent, step.workspace().random())
                 : random_inner_tile(partition_pos, kFewIterations, step.workspace().random());
    Ints inner = random_tile(innerpart_factor, n - partition_pos, innerpart_factor, step.workspace().random());
    tile.insert(tile.end(), inner.begin(), inner.end());
  } else {
    tile = known ? random_tile(*extent, n, *extent, step.workspace().random())
                 : random_inner_tile(n, kFewIterations, step.workspace().random());
  }
  step.decide(tile);
  return step.number_results(tile);
}

}  // namespace relaxc
