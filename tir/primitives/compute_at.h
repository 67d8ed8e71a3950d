#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;

  static constexpr std::string_view kName = "compute_at";
  static constexpr std::string_view kDoc =
      "moves a producer into its consumers' loop, where it makes the part that one iteration reads";
  static constexpr auto fields() {
    return std::tuple(
        required("block", &ComputeAt::block, "the producer"),
        required("loop", &ComputeAt::loop, "around all of its consumers"),
        defaulted("preserve_unit_loops", &ComputeAt::preserve_unit_loops, "its loops of one iteration stay"),
        defaulted("index", &ComputeAt::index,
                  "the position among the statements of the loop; -1: the last possible; -2: the first"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
