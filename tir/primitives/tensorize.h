#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Tensorize {
  Place block_or_loop;
  std::string tensor_intrin;
  bool preserve_unit_iters = true;

  static constexpr PrimitiveInfo kInfo{"tensorize",
                                       "replaces the subtree by the instruction whose description it matches"};
  static constexpr auto fields() {
    return list(
        required<&Tensorize::block_or_loop>("the subtree"),
        required<&Tensorize::tensor_intrin>("the name of the intrinsic"),
        defaulted<&Tensorize::preserve_unit_iters>("loops of one iteration keep their variables in the indices"));
  }
  void apply(scheduling::Step& step) const;
};

}  // namespace relaxc
