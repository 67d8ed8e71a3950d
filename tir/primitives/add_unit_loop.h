#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct AddUnitLoop {
  Place block_or_loop;

  static constexpr PrimitiveInfo kInfo{"add_unit_loop", "puts a loop of extent 1 around a block or a loop"};
  static constexpr auto fields() { return std::tuple(required<&AddUnitLoop::block_or_loop>("what it goes around")); }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
