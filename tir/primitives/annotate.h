#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Annotate {
  Place block_or_loop;
  std::string ann_key;
  Note ann_val;

  static constexpr std::string_view kName = "annotate";
  static constexpr std::string_view kDoc =
      "sets an annotation of a block or a loop, which later passes read (tir/analysis/annotations.h)";
  static constexpr auto fields() {
    return std::tuple(required("block_or_loop", &Annotate::block_or_loop, "the annotated one"),
                      required("ann_key", &Annotate::ann_key, "the name"),
                      required("ann_val", &Annotate::ann_val, "the value"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
