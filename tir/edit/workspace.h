// The programs of a module while steps change them, and the nodes and numbers that random variables stand for.
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

  // Returns the editable form of a function; an empty name means the one worked on.
  Tree& tree(const std::string& function = "") const;
  void work_on(const std::string& function);
  // Returns the chosen function of a module with several. It is empty when there is one, or none was chosen.
  std::string chosen_function() const;
  // Returns the module in its present state.
  IRModule module() const;

  // Returns a random variable for a node or a number. Its name is the next result's, or a letter with a number.
  VarRef name_node(TreeNode* node, bool is_result = true) {
    return add(node->is_loop() ? "l" : "b", object_type(), is_result, node, {});
  }
  VarRef name_number(int64_t number, bool is_result) { return add("v", prim_type(kInt64), is_result, nullptr, number); }
  // Returns the node or number that a variable stands for; null or nullopt when it does not belong to this workspace. A
  // node may have left the program (is_alive).
  TreeNode* node(const VarRef& var) const;
  std::optional<int64_t> number(const VarRef& var) const;
  // Sets the names of the next step's results; the remaining ones get default names.
  void name_results(std::vector<std::string> names) { result_names_ = std::move(names); }

  std::vector<std::string> take_result_names() { return std::exchange(result_names_, {}); }

  std::mt19937_64& random() { return random_; }
  // The intrinsics that tensorize finds; null: the built-in ones.
  const TensorIntrins* intrins = nullptr;

 private:
  // Returns the function that a name means; an empty name means the one worked on.
  const std::string& resolve(const std::string& function) const;
  // Returns the program before the first step; throws when none has that name.
  PrimFuncRef program(const std::string& name) const;
  VarRef add(const char* letter, const Type& type, bool is_result, TreeNode* node, std::optional<int64_t> number);

  IRModule module_;
  std::string working_on_;
  mutable std::map<std::string, std::unique_ptr<Tree>> trees_;
  struct Meaning {
    VarRef var;  // keeps the key alive
    TreeNode* node;
    std::optional<int64_t> number;
  };
  std::unordered_map<const NodeHeader*, Meaning> meanings_;
  std::vector<std::string> result_names_;
  int num_results_ = 0;
  std::mt19937_64 random_;
};

}  // namespace relaxc::scheduling
