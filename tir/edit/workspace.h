// The programs of a module while steps change them, and what the random variables of these steps stand for.
#pragma once
#include <map>
#include <random>

#include "tir/edit/tree.h"

namespace relaxc {
class TensorIntrins;
}

namespace relaxc::scheduling {

class Workspace {
 public:
  explicit Workspace(IRModule module, uint64_t seed = 0);

  // The editable form of a function; empty: the one worked on.
  Tree& tree(const std::string& function = "") const;
  void work_on(const std::string& function);
  // The function that an empty name means, where the module has others; empty: there is no choice.
  std::string chosen_function() const;
  // The module as it is now.
  IRModule module() const;

  // A random variable for a node, and for a number, under a name of the next result, or a letter with a number.
  VarRef name_node(TreeNode* node, bool is_result = true);
  VarRef name_number(int64_t number, bool is_result);
  // The node or number that a variable stands for; null, nullopt: it is not one of this workspace. A node may have left
  // the program (is_alive).
  TreeNode* node(const VarRef& var) const;
  std::optional<int64_t> number(const VarRef& var) const;
  // The names that results of the next step get, as far as given.
  void name_results(std::vector<std::string> names) { result_names_ = std::move(names); }

  std::vector<std::string> take_result_names() { return std::exchange(result_names_, {}); }

  std::mt19937_64& random() { return random_; }
  // The intrinsics that tensorize finds; null: none.
  const TensorIntrins* intrins = nullptr;

 private:
  // The function meant by a name; empty: the one worked on.
  const std::string& resolve(const std::string& function) const;
  // As it was before the first step; throws when there is none of that name.
  PrimFuncRef program(const std::string& name) const;
  std::string next_name(const char* letter, bool is_result);

  IRModule module_;
  std::string working_on_;
  mutable std::map<std::string, std::unique_ptr<Tree>> trees_;
  std::unordered_map<const NodeHeader*, TreeNode*> nodes_;
  std::unordered_map<const NodeHeader*, int64_t> numbers_;
  std::vector<VarRef> kept_;  // keeps the keys alive
  std::vector<std::string> result_names_;
  int num_results_ = 0;
  std::mt19937_64 random_;
};

}  // namespace relaxc::scheduling
