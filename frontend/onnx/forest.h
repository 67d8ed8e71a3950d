// Decision trees on their way from a model's attributes to the operators trees.walk and trees.complete.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

enum class TreeMode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

// A test of a feature. A child >= 0 is a node, another one the leaf ~child.
struct TreeNode {
  TreeMode mode = TreeMode::kLeq;
  bool nan_holds = false;  // the missing value goes where the test holds
  int64_t feature = 0;
  double value = 0;
  int64_t holds = 0, fails = 0;
  std::vector<double> members = {};  // of kMember
};
struct Forest {
  std::vector<TreeNode> nodes = {};
  std::vector<int64_t> roots = {};                                   // one of each tree; ~leaf for a tree without tests
  std::vector<std::vector<std::pair<int64_t, double>>> leaves = {};  // the targets of each leaf, with their weights
  int64_t targets = 1;
  std::string aggregate = "sum";  // or "min", "max"
  bool is_double = false;         // thresholds and sums have 64 bits

  void add_weight(int64_t leaf, int64_t target, double weight);
};

// Returns what the trees give for the rows of the node's input, [n, targets] in float32 or float64; 0 for a target that
// no leaf names. Nodes may have
// several parents; one that is its own descendant is an error that names it.
Expr aggregate_trees(Node& n, const Expr& x, const Forest& forest);

// Returns the attribute post_transform, which is one of the specification's.
std::string post_transform_name(Node& n);
// Applies it to scores [n, targets].
Expr post_transform(Node& n, const Expr& scores, const std::string& name);
// Does that to one score per row, to which ONNX Runtime applies PROBIT only.
Expr post_transform_of_one(Node& n, const Expr& scores, const std::string& name);
// Returns a constant row of numbers.
Expr row_of(Node& n, const std::vector<double>& values, DType dtype);

}  // namespace relaxc::onnx_import
