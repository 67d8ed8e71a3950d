#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct Split {
  LoopRV loop;
  Factors factors;
  bool preserve_unit_iters = true;
  bool disable_predication = false;

  static constexpr PrimitiveInfo kInfo{"split",
                                       "replaces a loop by a nest whose extents are the factors. They need not divide "
                                       "its extent: a tail gets a predicate"};
  static constexpr auto fields() {
    return list(required<&Split::loop>("the loop that is replaced"),
                required<&Split::factors>("the extents, outermost first; one may be None"),
                defaulted<&Split::preserve_unit_iters>("loops of one iteration keep their variables in the indices"),
                defaulted<&Split::disable_predication>(
                    "the factors must divide the extent; for factors of vscale that is trusted"));
  }
  Loops apply(scheduling::Step& step) const;
};

}  // namespace relaxc
