#pragma once
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
    return std::tuple(required<&SamplePartitionedTile::loop>("to be split by them"),
                      required<&SamplePartitionedTile::n>("how many"),
                      defaulted<&SamplePartitionedTile::partition_pos>("the position"),
                      defaulted<&SamplePartitionedTile::innerpart_factor>("the number"));
  }
  Exprs apply(scheduling::Step& step) const;
};

}  // namespace relaxc
