// The classes of a classifier: labels that are integers or strings, and the scores beside them.
#pragma once
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

class Labels {
 public:
  // Reads the two attributes, of which the model gives one.
  Labels(Node& n, const char* ints, const char* strings);
  int64_t size() const { return std::max(std::ssize(ints_), std::ssize(strings_)); }
  // Returns the labels with these positions in the list.
  Expr at(const Expr& positions) const;
  // Returns label 1 where the condition [n] holds, else label 0; 1 and 0 where there are not two labels.
  Expr binary(const Expr& condition) const;
  // Returns the labels of the highest scores in each row, the first one among equal ones.
  Expr of_highest(const Expr& scores) const;

 private:
  Node& n_;
  std::vector<int64_t> ints_;
  std::vector<std::string> strings_;
};

// Returns columns [first, end) of a matrix.
Expr columns_of(Node& n, const Expr& x, int64_t first, int64_t end);
// Returns the two columns (low, high) of a matrix.
Expr two_columns(Node& n, const Expr& low, const Expr& high);

}  // namespace relaxc::onnx_import
