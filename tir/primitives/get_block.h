#pragma once
#include "support/joined.h"
#include "tir/analysis/annotations.h"
#include "tir/primitives/primitive.h"

namespace relaxc {

struct GetBlock {
  std::string name;
  std::optional<std::string> func_name = {};

  static constexpr PrimitiveInfo kInfo{"get_block",
                                       "finds the block of that name, of that operator, or of that tensor program "
                                       "before fusion, in the program worked on "
                                       "or named"};
  static constexpr auto fields() {
    return list(required<&GetBlock::name>("the block's name, an operator such as nn.conv2d, or a tensor program"),
                defaulted<&GetBlock::func_name>("the tensor program; None: the one worked on"));
  }
  BlockRV apply(scheduling::Step& step) const {
    auto& tree = step.workspace().tree(func_name.value_or(""));
    if (tree.root()->name() == name) return step.block_result(tree.root());
    scheduling::Nodes of_that_name, of_that_op;
    std::string names = "root";
    for (auto* block : tree.blocks()) {
      names += ", " + block->name();
      if (block->name() == name) of_that_name.push_back(block);
      auto is = [&](const char* mark) { return block->block->annotations.get_string(mark, "") == name; };
      if (is(annotation<"op">()) || is(annotation<"program">())) of_that_op.push_back(block);
    }
    scheduling::Nodes& found = of_that_name.empty() ? of_that_op : of_that_name;
    if (found.size() == 1) return step.block_result(found[0]);
    if (found.empty()) step.refuse({}, "there is no block '{}'; there are: {}", name, names);
    if (of_that_name.empty())
      step.refuse(found, "{} blocks are of '{}': {}; give the name of one", found.size(), name,
                  joined(found, [](const auto* block) { return block->name(); }));
    step.refuse(found, "{} blocks have the name '{}'", found.size(), name);
  }
  // In a module of several programs a trace says which one.
  GetBlock recorded(const scheduling::Workspace& workspace) const {
    std::string chosen = func_name ? *func_name : workspace.chosen_function();
    return chosen.empty() ? *this : GetBlock{name, chosen};
  }
};

}  // namespace relaxc
