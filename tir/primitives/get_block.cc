#include "tir/primitives/get_block.h"

#include "tir/analysis/annotations.h"

namespace relaxc {

using namespace scheduling;

GetBlock GetBlock::recorded(const Workspace& workspace) const {
  std::string chosen = func_name ? *func_name : workspace.chosen_function();
  return chosen.empty() ? *this : GetBlock{name, chosen};
}

BlockRV GetBlock::apply(Step& step) const {
  Tree& tree = step.workspace().tree(func_name.value_or(""));
  if (tree.root()->name() == name) return step.block_result(tree.root());
  Nodes of_that_name, of_that_op;
  std::string names = "root";
  for (TreeNode* block : tree.blocks()) {
    names += ", " + block->name();
    if (block->name() == name) of_that_name.push_back(block);
    if (block->block->annotations.get_string(annotations::kOp.name, "") == name) of_that_op.push_back(block);
  }
  Nodes& found = of_that_name.empty() ? of_that_op : of_that_name;
  if (found.size() == 1) return step.block_result(found[0]);
  if (found.empty()) step.refuse({}, "there is no block '{}'; there are: {}", name, names);
  step.refuse(found, "{} blocks have the name '{}'", found.size(), name);
}

}  // namespace relaxc
