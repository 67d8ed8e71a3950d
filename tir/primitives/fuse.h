#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Fuse {
  Variadic loops;
  bool preserve_unit_iters = true;

  static constexpr std::string_view kName = "fuse";
  static constexpr std::string_view kDoc = "makes a perfect nest one loop";
  static constexpr auto fields() {
    return std::tuple(required("loops", &Fuse::loops, "the nest, outermost first"),
                      defaulted("preserve_unit_iters", &Fuse::preserve_unit_iters,
                                "loops of one iteration keep their variables in the indices"));
  }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
