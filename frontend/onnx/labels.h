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
  Value at(const Expr& positions) const;
  // Returns label 1 where the condition [n] holds, else label 0; 1 and 0 where there are not two labels.
  Value binary(const Expr& condition) const;
  // Returns the labels of the highest scores in each row, the first one among equal ones.
  Value of_highest(const Expr& scores) const;

 private:
  Node& n_;
  std::vector<int64_t> ints_;
  std::vector<std::string> strings_;
};

// Returns the strings of a list at these positions, int64 from 0 on.
Value strings_at(Node& n, const std::vector<std::string>& list, const Expr& positions);
// Returns columns [first, end) of a matrix.
Expr columns_of(Node& n, const Expr& x, int64_t first, int64_t end);
// Returns the two columns (low, high) of a matrix.
Expr two_columns(Node& n, const Expr& low, const Expr& high);
// Returns PROBIT of both classes by the probability of the second one, [n, 1]: that of 1 - p is that of p with the
// other sign. (ONNX Runtime leaves the second column unwritten.)
Expr both_probits(Node& n, const Expr& probability);

}  // namespace relaxc::onnx_import
