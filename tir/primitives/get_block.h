#pragma once
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetBlock {
  std::string name;
  std::optional<std::string> func_name = {};

  static constexpr PrimitiveInfo kInfo{
      "get_block", "finds the block of that name, or of that operator, in the program worked on or named"};
  static constexpr auto fields() {
    return std::tuple(required<&GetBlock::name>("the block's name, or an operator such as nn.conv2d"),
                      defaulted<&GetBlock::func_name>("the tensor program; None: the one worked on"));
  }
  BlockRV apply(scheduling::Step& step) const;
  // In a module of several programs a trace says which one.
  GetBlock recorded(const scheduling::Workspace& workspace) const;
};

}  // namespace relaxc
