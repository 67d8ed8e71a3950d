#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Unannotate {
  Place block_or_loop;
  std::string ann_key;

  static constexpr PrimitiveInfo kInfo{"unannotate", "removes an annotation"};
  static constexpr auto fields() {
    return list(required<&Unannotate::block_or_loop>("is annotated"), required<&Unannotate::ann_key>("the name"));
  }
  void apply(scheduling::Step& step) const {
    auto* node = step.place(block_or_loop);
    Attrs& annotations = node->annotations();
    if (!annotations.has(ann_key)) step.refuse({node}, "there is no annotation '{}'", ann_key);
    annotations = annotations.without(ann_key);
  }
};

}  // namespace relaxc
