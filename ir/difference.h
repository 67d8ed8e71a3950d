// Puts into words the difference that structural_equal finds. Internal to ir/.
#pragma once
#include "ir/visit.h"

namespace relaxc {

// One step on the way from the roots to the difference: a field, an item of a list, a binding, or two nodes.
struct DifferenceStep {
  enum class Kind : uint8_t { kField, kItem, kBinding, kNode } kind = Kind::kNode;
  std::string_view field = {};
  size_t index = 0;  // the item's number; `item` is its name when it defines or accesses a variable
  std::string_view item = {};
  const Binding *left_binding = nullptr, *right_binding = nullptr;
  const NodeHeader *left = nullptr, *right = nullptr;
  bool defines = false;  // a variable where it is defined, whose place is that of the difference
};

// Returns "binding lv2, R.sum, attribute axis: [1] and [-1]" with the places of both; `values` follows the path.
Difference describe_difference(const std::vector<DifferenceStep>& steps, std::string values);

// Writes a node or value in at most a line; `print` shows nodes (EqualOptions).
struct InWords {
  std::string (*print)(const NodeRef&);
  std::string operator()(const NodeRef& node) const;
  std::string operator()(const Binding& binding) const;
  std::string operator()(const BindingBlock& block) const;
  std::string operator()(const Tensor& tensor) const;
  std::string operator()(BinaryOp op) const;
};
// Returns "left and right". Where both print alike, the text also says how they differ.
std::string both(const Tensor& left, const Tensor& right);
std::string both(const VarRef& left, const VarRef& right);
// Returns "attribute axis: [1] and [-1]" for the first entry that differs.
std::string both(const Attrs& left, const Attrs& right, std::string_view field);

}  // namespace relaxc
