#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Tensorize {
  Place block_or_loop;
  std::string tensor_intrin;
  bool preserve_unit_iters = true;

  static constexpr std::string_view kName = "tensorize";
  static constexpr std::string_view kDoc = "replaces the subtree by the instruction whose description it matches";
  static constexpr auto fields() {
    return std::tuple(required("block_or_loop", &Tensorize::block_or_loop, "the subtree"),
                      required("tensor_intrin", &Tensorize::tensor_intrin, "the name of the intrinsic"),
                      defaulted("preserve_unit_iters", &Tensorize::preserve_unit_iters,
                                "loops of one iteration keep their variables in the indices"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
