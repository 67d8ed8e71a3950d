#pragma once
#include <numeric>

#include "tir/edit/tiles.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SamplePartitionedTile {
  LoopRV loop;
  int64_t n;
  int64_t partition_pos = 0;
  int64_t innerpart_factor = 1;

  static constexpr PrimitiveInfo kInfo{"sample_partitioned_tile",
                                       "chooses factors whose product is the loop's extent; the product of those from "
                                       "partition_pos on is a multiple of innerpart_factor"};
  static constexpr auto fields() {
    return list(required<&SamplePartitionedTile::loop>("to be split by them"),
                required<&SamplePartitionedTile::n>("how many"),
                defaulted<&SamplePartitionedTile::partition_pos>("the position"),
                defaulted<&SamplePartitionedTile::innerpart_factor>("the number"));
  }
  Exprs apply(scheduling::Step& step) const {
    auto* loop = step.loop(this->loop);
    if (n < 1 || n > scheduling::kMostFactors || partition_pos < 0 || partition_pos > n || innerpart_factor < 1)
      step.refuse({loop}, "position {} among {} factors, {} for the inner part", partition_pos, n, innerpart_factor);
    auto extent = known_extent(loop);
    bool is_split = partition_pos > 0 && partition_pos < n;
    if (extent && is_split && *extent % innerpart_factor != 0)
      step.refuse({loop}, "the extent of loop '{}', {}, is not a multiple of the inner part's factor {}", loop, *extent,
                  innerpart_factor);
    std::mt19937_64& random = step.workspace().random();
    constexpr int64_t kFewIterations = 16;  // at most in the innermost factor where the extent is not known
    Ints tile;
    if (!step.decision().is_none()) {
      tile = fit_tile(decided_tile(step, loop, n), loop);
      int64_t inner = std::accumulate(tile.begin() + partition_pos, tile.end(), int64_t{1}, std::multiplies());
      if (is_split && inner % innerpart_factor != 0)
        step.refuse({loop}, "the factors decided make an inner part of {}, which is not a multiple of {}", inner,
                    innerpart_factor);
    } else {
      int64_t outer = is_split ? partition_pos : n, number = extent.value_or(0) / (is_split ? innerpart_factor : 1);
      tile = extent ? scheduling::random_tile(number, outer, *extent, random)
                    : scheduling::random_inner_tile(outer, kFewIterations, random);
      Ints inner = is_split ? scheduling::random_tile(innerpart_factor, n - outer, innerpart_factor, random) : Ints();
      tile.insert(tile.end(), inner.begin(), inner.end());
    }
    step.decide(tile);
    return step.number_results(tile);
  }
};

}  // namespace relaxc
