#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Annotate {
  Place block_or_loop;
  std::string ann_key;
  Note ann_val;

  static constexpr PrimitiveInfo kInfo{
      "annotate", "sets an annotation of a block or a loop, which later passes read (tir/analysis/annotations.h)"};
  static constexpr auto fields() {
    return std::tuple(required<&Annotate::block_or_loop>("is annotated"), required<&Annotate::ann_key>("the name"),
                      required<&Annotate::ann_val>("the value"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
