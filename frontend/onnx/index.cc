// Gathers, scatters, sorts and other operators on positions.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

int64_t axis_of(Node& n) { return n.axis(n.attr_int("axis", 0), n.rank(0)); }
Expr gather(Node& n) { return n.op("take", n.tensors(), TakeAttrs{.axis = axis_of(n)}); }
Expr gather_elements(Node& n) { return n.op("gather_elements", n.tensors(), AxisAttrs{axis_of(n)}); }
Expr gather_nd(Node& n) { return n.op("gather_nd", n.tensors(), GatherNdAttrs{n.attr_int("batch_dims", 0)}); }
std::string reduction_of(Node& n) {
  std::string reduction = n.attr_string("reduction", "none");
  return reduction == "none" ? "update" : reduction;
}
Expr scatter(Node& n) { return n.op("scatter_elements", n.tensors(), ScatterElementsAttrs{.axis = axis_of(n)}); }
Expr scatter_elements(Node& n) {
  return n.op("scatter_elements", n.tensors(), ScatterElementsAttrs{.axis = axis_of(n), .reduction = reduction_of(n)});
}
Expr scatter_nd(Node& n) { return n.op("scatter_nd", n.tensors(), ScatterNdAttrs{reduction_of(n)}); }

Outputs one_hot(Node& n) {
  Expr indices = n.tensor(0), values = n.tensor(2);
  if (n.rank(2) != 1) n.fail("values have rank {}, expected 1", n.rank(2));
  n.require_equal(n.dim(2, 0), int_imm(2), "number of values");
  if (n.dtype(0).is_float()) indices = n.cast(indices, kInt64);
  auto pick = [&](int64_t i) { return n.reshape(n.slice(values, 0, int_imm(i), int_imm(i + 1)), {}); };
  Expr depth = n.scalar_int(1), off = pick(0), on = pick(1);
  int64_t axis = n.axis(n.attr_int("axis", -1), n.rank(0) + 1);
  return {n.of(n.op("dyn.one_hot", {indices, on, off, depth}, LastAxisAttrs{axis}))};
}

Outputs topk(Node& n) {
  DynamicTopKAttrs attrs{.axis = n.axis(n.attr_int("axis", -1), n.rank(0)), .largest = n.attr_int("largest", 1) != 0};
  Expr k = n.opset() < 10 ? int_imm(n.required_int("k")) : n.scalar_int(1);
  return n.items_of(n.op("dyn.topk", {n.tensor(0), k}, attrs), 2);
}

Outputs reverse_sequence(Node& n) {
  if (n.rank(1) != 1) n.fail("lengths have rank {}, expected 1", n.rank(1));
  int64_t time = n.axis(n.attr_int("time_axis", 0), n.rank(0), "time_axis");
  ReverseSequenceAttrs attrs{.time_axis = time, .batch_axis = n.attr_int("batch_axis", 1)};
  // Lengths are between 0 and the size of the time axis.
  auto extreme = [&](const char* name) {
    return n.ints_of(n.of(n.reduce(name, n.cast(n.tensor(1), kInt64), {0}, false))).at(0);
  };
  Expr longest = extreme("max"), shortest = extreme("min");
  n.require_equal(min(longest, n.shape(0)[time]), longest, "longest sequence");
  n.require_equal(max(shortest, int_imm(0)), shortest, "shortest sequence");
  return {n.of(n.op("reverse_sequence", n.tensors(), attrs))};
}

// Returns the positions of true or non-zero elements, which are counted first: their number is a dim of the result.
Expr positions(Node& n, const Expr& x) {
  Expr flags = n.dtype_of_tensor(x).is_bool() ? x : n.op("not_equal", {x, n.scalar_like(0, x)});
  Expr ones = n.cast(flags, kInt64);
  Expr sum = n.shape_of(x).empty() ? ones : n.op("sum", {ones}, ReduceAttrs());
  return n.op("dyn.nonzero", {flags, n.ints_of(n.of(sum)).at(0)});
}
Expr nonzero(Node& n) {
  Expr x = n.tensor(0);
  if (n.rank(0) == 0) x = n.reshape(x, {int_imm(1)});
  return positions(n, x);
}
Expr compress(Node& n) {
  if (n.rank(1) != 1) n.fail("the condition has rank {}, expected 1", n.rank(1));
  Expr x = n.tensor(0), condition = n.tensor(1);
  int64_t axis = n.has_attr("axis") ? axis_of(n) : 0;
  if (!n.has_attr("axis")) x = n.reshape(x, {n.simplify(product(n.shape(0)))});
  Expr found = positions(n, condition);
  return n.op("take", {x, n.reshape(found, {n.shape_of(found)[1]})}, TakeAttrs{.axis = axis});
}

}  // namespace

std::vector<ConverterRow> index_converters() {
  return {
      {"Gather", 1, 2, 2, gather, "axis"},
      {"GatherElements", 11, 2, 2, gather_elements, "axis"},
      {"GatherND", 11, 2, 2, gather_nd, "batch_dims"},
      {"Scatter", 9, 3, 3, scatter, "axis"},
      {"ScatterElements", 11, 3, 3, scatter_elements, "axis reduction"},
      {"ScatterND", 11, 3, 3, scatter_nd, "reduction"},
      {"OneHot", 9, 3, 3, one_hot, "axis"},
      {"TopK", 1, 1, 1, topk, "axis k largest sorted"},
      {"TopK", 10, 2, 2, topk, "axis largest sorted"},
      {"ReverseSequence", 10, 2, 2, reverse_sequence, "batch_axis time_axis"},
      {"NonZero", 9, 1, 1, nonzero},
      {"Compress", 9, 2, 2, compress, "axis"},
  };
}

}  // namespace relaxc::onnx_import
