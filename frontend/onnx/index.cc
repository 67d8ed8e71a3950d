// Gathers, scatters, sorts and other operators on positions.
#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

Outputs gather(Node& n) {
  int64_t axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  return {n.of(n.op("take", {n.tensor(0), n.tensor(1)}, {{"axis", axis}}))};
}
Outputs gather_elements(Node& n) {
  int64_t axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  return {n.of(n.op("gather_elements", {n.tensor(0), n.tensor(1)}, {{"axis", axis}}))};
}
Outputs gather_nd(Node& n) {
  return {n.of(n.op("gather_nd", {n.tensor(0), n.tensor(1)}, {{"batch_dims", n.attr_int("batch_dims", 0)}}))};
}
Outputs scatter_along_axis(Node& n, const std::string& reduction) {
  Attrs attrs;
  attrs.set("axis", n.axis(n.attr_int("axis", 0), n.rank(0)));
  attrs.set("reduction", reduction == "none" ? "update" : reduction);
  return {n.of(n.op("scatter_elements", {n.tensor(0), n.tensor(1), n.tensor(2)}, attrs))};
}
Outputs scatter(Node& n) { return scatter_along_axis(n, "none"); }
Outputs scatter_elements(Node& n) { return scatter_along_axis(n, n.attr_string("reduction", "none")); }
Outputs scatter_nd(Node& n) {
  std::string reduction = n.attr_string("reduction", "none");
  return {n.of(n.op("scatter_nd", {n.tensor(0), n.tensor(1), n.tensor(2)},
                    {{"reduction", reduction == "none" ? "update" : reduction}}))};
}

Outputs one_hot(Node& n) {
  Expr indices = n.tensor(0), values = n.tensor(2);
  if (n.rank(2) != 1) n.fail("values have rank {}, expected 1", n.rank(2));
  n.require_equal(n.dim(2, 0), int_imm(2), "number of values");
  if (n.dtype(0).is_float()) indices = n.cast(indices, kInt64);
  auto pick = [&](int64_t i) { return n.reshape(n.slice(values, 0, int_imm(i), int_imm(i + 1)), {}); };
  Expr depth = n.scalar_int(1), off = pick(0), on = pick(1);
  int64_t axis = n.axis(n.attr_int("axis", -1), n.rank(0) + 1);
  return {n.of(n.op("dyn.one_hot", {indices, on, off, depth}, {{"axis", axis}}))};
}

Outputs topk(Node& n) {
  Expr x = n.tensor(0);
  Attrs attrs;
  attrs.set("axis", n.axis(n.attr_int("axis", -1), n.rank(0)));
  attrs.set("largest", n.attr_int("largest", 1) != 0);
  Expr k = n.opset() < 10 ? int_imm(n.required_int("k")) : n.scalar_int(1);
  Expr both = n.op("dyn.topk", {x, k}, attrs);
  return {n.of(n.builder().emit(tuple_get(both, 0))), n.of(n.builder().emit(tuple_get(both, 1)))};
}

Outputs reverse_sequence(Node& n) {
  if (n.rank(1) != 1) n.fail("lengths have rank {}, expected 1", n.rank(1));
  Attrs attrs;
  int64_t time = n.axis(n.attr_int("time_axis", 0), n.rank(0), "time_axis");
  attrs.set("time_axis", time);
  attrs.set("batch_axis", n.attr_int("batch_axis", 1));
  // Lengths are between 0 and the size of the time axis.
  auto extreme = [&](const char* name) {
    return n.ints_of(n.of(n.reduce(name, n.cast(n.tensor(1), kInt64), {0}, false))).at(0);
  };
  Expr longest = extreme("max"), shortest = extreme("min");
  n.require_equal(min(longest, n.shape(0)[static_cast<size_t>(time)]), longest, "longest sequence");
  n.require_equal(max(shortest, int_imm(0)), shortest, "shortest sequence");
  return {n.of(n.op("reverse_sequence", {n.tensor(0), n.tensor(1)}, attrs))};
}

// Returns the positions of true or non-zero elements. They are counted first, because their number is a dim of the
// result.
Expr positions(Node& n, const Expr& x) {
  Expr flags = n.dtype_of_tensor(x).is_bool() ? x : n.op("not_equal", {x, n.like(0, x)});
  Expr ones = n.cast(flags, kInt64);
  Attrs all;
  all.set("keepdims", false);
  Expr sum = n.shape_of(x).empty() ? ones : n.op("sum", {ones}, all);
  Expr count = n.ints_of(n.of(sum)).at(0);
  return n.op("dyn.nonzero", {flags, count});
}
Outputs nonzero(Node& n) {
  Expr x = n.tensor(0);
  if (n.rank(0) == 0) x = n.reshape(x, {int_imm(1)});
  return {n.of(positions(n, x))};
}
Outputs compress(Node& n) {
  if (n.rank(1) != 1) n.fail("the condition has rank {}, expected 1", n.rank(1));
  Expr x = n.tensor(0), condition = n.tensor(1);
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    axis = n.axis(n.attr_int("axis", 0), n.rank(0));
  } else {
    Expr size = int_imm(1);
    for (const Expr& dim : n.shape(0)) size = size * dim;
    x = n.reshape(x, {n.simplify(size)});
  }
  Expr found = positions(n, condition);
  Expr indices = n.reshape(found, {n.shape_of(found)[1]});
  return {n.of(n.op("take", {x, indices}, {{"axis", axis}}))};
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
