#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Unannotate {
  Place block_or_loop;
  std::string ann_key;

  static constexpr std::string_view kName = "unannotate";
  static constexpr std::string_view kDoc = "takes an annotation away";
  static constexpr auto fields() {
    return std::tuple(required("block_or_loop", &Unannotate::block_or_loop, "the annotated one"),
                      required("ann_key", &Unannotate::ann_key, "the name"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
