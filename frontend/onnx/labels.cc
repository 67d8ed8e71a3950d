#include "frontend/onnx/labels.h"

#include "frontend/onnx/forest.h"

namespace relaxc::onnx_import {

Labels::Labels(Node& n, const char* ints, const char* strings)
    : n_(n), ints_(n.attr_ints(ints).value_or(std::vector<int64_t>())), strings_(n.attr_strings(strings)) {
  if (ints_.empty() == strings_.empty())
    n.fail("expected labels in one of the attributes '{}' and '{}'", ints, strings);
}

Value Labels::at(const Expr& positions) const {
  if (!strings_.empty()) return strings_at(n_, strings_, positions);
  Expr labels = constant(Tensor::of<int64_t>({std::ssize(ints_)}, kInt64, ints_), n_.span());
  return n_.of(n_.op("take", {labels, positions}, TakeAttrs{.axis = 0, .mode = "clip"}));
}
Value Labels::binary(const Expr& condition) const {
  Expr positions = n_.cast(condition, kInt64);
  if (size() == 2) return at(positions);
  return strings_.empty() ? n_.of(positions) : strings_at(n_, {"0", "1"}, positions);
}
Value Labels::of_highest(const Expr& scores) const { return at(n_.op("argmax", {scores}, ArgReduceAttrs{.axis = 1})); }

Value strings_at(Node& n, const std::vector<std::string>& list, const Expr& positions) {
  Expr pool = constant(Tensor::strings({std::ssize(list)}, list), n.span());
  return make_value({.strings = MovedStrings{n.of(positions), pool}, .home = &n.builder()});
}
Expr columns_of(Node& n, const Expr& x, int64_t first, int64_t end) {
  if (first == 0 && is_int(n.dim_of(x, 1), end)) return x;
  return n.slice(x, 1, int_imm(first), int_imm(end));
}
Expr two_columns(Node& n, const Expr& low, const Expr& high) {
  return n.op("concat", {tuple({low, high})}, ConcatAttrs{1});
}
Expr both_probits(Node& n, const Expr& probability) {
  Expr second = post_transform(n, probability, "PROBIT");
  return two_columns(n, n.op("negative", {second}), second);
}

}  // namespace relaxc::onnx_import
