#include "frontend/onnx/labels.h"

namespace relaxc::onnx_import {

Labels::Labels(Node& n, const char* ints, const char* strings)
    : n_(n), ints_(n.attr_ints(ints).value_or(std::vector<int64_t>())), strings_(n.attr_strings(strings)) {
  if (ints_.empty() == strings_.empty())
    n.fail("expected labels in one of the attributes '{}' and '{}'", ints, strings);
  if (!strings_.empty()) n.unsupported("labels that are strings");
}

Expr Labels::at(const Expr& positions) const {
  Expr labels = constant(Tensor::of<int64_t>({std::ssize(ints_)}, kInt64, ints_), n_.span());
  return n_.op("take", {labels, positions}, TakeAttrs{.axis = 0, .mode = "clip"});
}
Expr Labels::binary(const Expr& condition) const {
  if (size() == 2) return at(n_.cast(condition, kInt64));
  return n_.cast(condition, kInt64);
}
Expr Labels::of_highest(const Expr& scores) const { return at(n_.op("argmax", {scores}, ArgReduceAttrs{.axis = 1})); }

Expr columns_of(Node& n, const Expr& x, int64_t first, int64_t end) {
  if (first == 0 && is_int(n.dim_of(x, 1), end)) return x;
  return n.slice(x, 1, int_imm(first), int_imm(end));
}
Expr two_columns(Node& n, const Expr& low, const Expr& high) {
  return n.op("concat", {tuple({low, high})}, ConcatAttrs{1});
}

}  // namespace relaxc::onnx_import
