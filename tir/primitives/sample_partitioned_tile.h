#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct SamplePartitionedTile {
  LoopRV loop;
  int64_t n;
  int64_t partition_pos = 0;
  int64_t innerpart_factor = 1;

  static constexpr std::string_view kName = "sample_partitioned_tile";
  static constexpr std::string_view kDoc =
      "chooses factors whose product is the loop's extent; the product of the factors from a position on is a multiple "
      "of a number";
  static constexpr auto fields() {
    return std::tuple(required("loop", &SamplePartitionedTile::loop, "to be split by them"),
                      required("n", &SamplePartitionedTile::n, "how many"),
                      defaulted("partition_pos", &SamplePartitionedTile::partition_pos, "the position"),
                      defaulted("innerpart_factor", &SamplePartitionedTile::innerpart_factor, "the number"));
  }
  Exprs apply(scheduling::Step& step) const;
};

}  // namespace relaxc
