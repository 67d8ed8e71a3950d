#include "support/diagnostic.h"
#include "tir/edit/step.h"
#include "tir/schedule/rule.h"

namespace relaxc {

using namespace scheduling;

BlockRV Schedule::get_block(std::string name, std::optional<std::string> func_name) {
  if (!func_name && module_.functions.size() > 1 && !working_on_.empty()) func_name = working_on_;  // for the trace
  Step step(*this, PrimitiveId::k_get_block, name, func_name);
  Tree& tree = step.tree_of_function(func_name.value_or(""));
  if (TreeNode* found = tree.find_block(name)) return step.block_result(found);
  std::vector<TreeNode*> of_that_name, of_that_op;
  std::string names = "root";
  for (TreeNode* block : tree.blocks()) {
    names += ", " + block->block->name;
    if (block->block->name == name) of_that_name.push_back(block);
    if (block->block->annotations.get_string(kOpAttribute, "") == name) of_that_op.push_back(block);
  }
  std::vector<TreeNode*>& found = of_that_name.empty() ? of_that_op : of_that_name;
  if (found.size() == 1) return step.block_result(found[0]);
  if (found.empty()) fail({}, "get_block: there is no block '{}'; there are: {}", name, names);
  step.refuse(found, fmt::format("{} blocks have the name '{}'", found.size(), name));
}

}  // namespace relaxc
