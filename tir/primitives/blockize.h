#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Blockize {
  Subtree target;
  bool preserve_unit_iters = true;

  static constexpr std::string_view kName = "blockize";
  static constexpr std::string_view kDoc = "puts a block around a subtree";
  static constexpr auto fields() {
    return std::tuple(required("target", &Blockize::target, "a loop, a block, or blocks side by side"),
                      defaulted("preserve_unit_iters", &Blockize::preserve_unit_iters,
                                "loops of one iteration keep their variables in the indices"));
  }
  BlockRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
