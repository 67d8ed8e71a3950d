#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct AddUnitLoop {
  Place block_or_loop;

  static constexpr std::string_view kName = "add_unit_loop";
  static constexpr std::string_view kDoc = "puts a loop of extent 1 around a block or a loop";
  static constexpr auto fields() {
    return std::tuple(required("block_or_loop", &AddUnitLoop::block_or_loop, "what it goes around"));
  }
  LoopRV apply(scheduling::Step& step) const;
};

}  // namespace relaxc
