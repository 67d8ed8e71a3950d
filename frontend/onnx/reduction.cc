// Reductions, scans, arg-reductions and the softmax family.
#include <algorithm>
#include <cmath>
#include <functional>

#include "frontend/onnx/run_time_axes.h"

namespace relaxc::onnx_import {

namespace {

// Reduces for a node, over constant axes or over axes that are known at run time only.
struct Reducer {
  std::function<Expr(const char* name, const Expr& x, bool keepdims)> reduce;
  std::function<Expr(const Expr& kept)> drop;  // removes the reduced axes, which have size 1
  bool at_run_time = false;
};

Reducer over_constant_axes(Node& n, const std::vector<int64_t>& axes) {
  return {[&n, axes](const char* name, const Expr& x, bool keepdims) { return n.reduce(name, x, axes, keepdims); },
          [&n, axes](const Expr& kept) { return axes.empty() ? kept : n.op("squeeze", {kept}, AxisListAttrs{axes}); }};
}
// The operators dyn.sum and the like reduce to a shape, whose dims the run computes from the axes. `named` has 1 for
// each reduced axis, and `left` is the number of the others.
Reducer over_run_time_axes(Node& n, const Expr& x, const std::vector<Expr>& named, std::optional<size_t> left) {
  const std::vector<Expr> dims = n.shape_of(x);
  std::vector<Expr> kept = dims_with_ones(n, dims, named);
  auto drop = [&n, dims, named, left](const Expr& value) {
    if (!left)
      n.unsupported("the number of axes, and so the result's rank, is only known at run time; keepdims=1 works");
    return n.reshape(value, dims_not_named(n, dims, named, *left));
  };
  auto reduce = [&n, kept, drop](const char* name, const Expr& value, bool keepdims) {
    Expr result = n.op(fmt::format("dyn.{}", name).c_str(), {value, shape_expr(kept)});
    return keepdims ? result : drop(result);
  };
  return {reduce, drop, true};
}

Expr reduce_with(Node& n, const Expr& x, const Reducer& over, bool keepdims) {
  const std::string& op = n.op_type();
  auto plain = [&](const char* name, const Expr& value) { return over.reduce(name, value, keepdims); };
  if (op == "ReduceSum") return plain("sum", x);
  if (op == "ReduceMean") return plain("mean", x);
  if (op == "ReduceProd") return plain("prod", x);
  if (op == "ReduceL1") return plain("sum", n.op("abs", {x}));
  if (op == "ReduceSumSquare") return plain("sum", n.op("square", {x}));
  if (op == "ReduceL2") return n.op("sqrt", {plain("sum", n.op("square", {x}))});
  if (op == "ReduceLogSum") return n.op("log", {plain("sum", x)});
  if (op == "ReduceLogSumExp") {
    // Subtracts the maximum, so that exp does not overflow. Infinite maxima are not subtracted.
    Expr peak = over.reduce("max", x, true);
    Expr finite = n.op("where", {n.op("isfinite", {peak}), peak, n.scalar_like(0, peak)});
    // Operators do not broadcast a dim that is 1 at run time only.
    Expr stretched = over.at_run_time ? n.broadcast_to(finite, n.shape_of(x)) : finite;
    Expr sum = over.reduce("sum", n.op("exp", {n.sub(x, stretched)}), true);
    Expr result = n.add(n.op("log", {sum}), finite);
    return keepdims ? result : over.drop(result);
  }
  bool is_bool = n.dtype_of_tensor(x).is_bool();
  Expr value = is_bool ? n.cast(x, DType::uint(8)) : x;
  Expr result = plain(op == "ReduceMax" ? "max" : "min", value);
  return is_bool ? n.cast(result, kBool) : result;
}

Outputs reduce(Node& n) {
  Expr x = n.tensor(0);
  int64_t rank = n.rank(0);
  bool keepdims = n.attr_int("keepdims", 1) != 0;
  bool axes_input = n.opset() >= (n.op_type() == "ReduceSum" ? 13 : 18);
  bool noop = n.attr_int("noop_with_empty_axes", 0) != 0;
  std::optional<std::vector<int64_t>> axes;
  if (axes_input && n.has(1)) {
    axes = n.constant_ints(1);
    if (!axes) {
      auto count = as_int(n.length_of(n.shape(1)));
      if (count && *count > rank && !keepdims) n.fail("{} axes for rank {}", *count, rank);
      std::vector<Expr> named =
          count ? named_axes(n, read_axes(n, 1, rank), rank) : named_axes_of_any_number(n, 1, rank, !noop);
      std::optional<size_t> left;
      if (count && !keepdims) {
        require_distinct(n, named, static_cast<size_t>(*count));  // the result's rank counts each
        left = static_cast<size_t>(rank - *count);
      }
      return {n.of(reduce_with(n, x, over_run_time_axes(n, x, named, left), keepdims))};
    }
  } else if (!axes_input) {
    axes = n.attr_ints("axes");
  }
  std::vector<int64_t> chosen = axes.value_or(std::vector<int64_t>());
  for (int64_t& axis : chosen) axis = n.axis(axis, rank, "axes");
  if (chosen.empty() && !noop) chosen = n.all_axes();
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  if (chosen.empty() && n.op_type() == "ReduceLogSumExp") return {n.value(0)};
  return {n.of(reduce_with(n, x, over_constant_axes(n, chosen), keepdims))};
}

Expr arg_reduce(Node& n) {
  ArgReduceAttrs attrs{.axis = n.axis(n.attr_int("axis", 0), n.rank(0)),
                       .keepdims = n.attr_int("keepdims", 1) != 0,
                       .select_last_index = n.attr_int("select_last_index", 0) != 0};
  return n.op(n.op_type() == "ArgMax" ? "argmax" : "argmin", {n.tensor(0)}, attrs);
}

Expr cumsum(Node& n, const Expr& x) {
  int64_t rank = n.rank(0);
  ScanAttrs attrs{.exclusive = n.attr_int("exclusive", 0) != 0, .reverse = n.attr_int("reverse", 0) != 0};
  auto known = n.constant_ints(1);
  const char* name = n.op_type() == "CumSum" ? "cumsum" : "cumprod";
  auto along = [&](int64_t d) {
    attrs.axis = d;
    return n.op(name, {x}, attrs);
  };
  if (known && known->size() == 1) return along(n.axis(known->at(0), rank));
  std::vector<Expr> axes = read_axes(n, 1, rank);
  if (axes.size() != 1) n.fail("input 1 has {} elements, expected 1", axes.size());
  // The axis is read at run time: the result is computed for every axis, and one is selected.
  Expr result = along(0);
  for (int64_t d = 1; d < rank; ++d) {
    Expr named = equal(axes[0], int_imm(d));
    result = n.op("where", {n.op("scalar_to_tensor", {named}), along(d), result});
  }
  return result;
}

// Appends -inf along the axis, so that there is a largest element even where the axis is empty at run time.
Expr with_one_more(Node& n, const Expr& x, int64_t axis) {
  std::vector<Expr> width(2 * n.shape_of(x).size(), int_imm(0));
  width[static_cast<size_t>(2 * axis + 1)] = int_imm(1);
  return n.op("dyn.pad", {x, shape_expr(width), n.scalar_like(-INFINITY, x)});
}
// Before opset 13 the axes from `axis` on count as one.
Expr softmax(Node& n) {
  Expr x = n.tensor(0);
  std::vector<Expr> shape = n.shape(0);
  int64_t rank = n.rank(0);
  if (rank == 0) n.fail("the input has rank 0, expected at least 1");
  bool flattens = n.opset() < 13;
  int64_t axis = n.axis(n.attr_int("axis", flattens ? 1 : -1), std::max<int64_t>(rank, 1));
  bool reshaped = flattens && axis != rank - 1;
  if (reshaped) {
    auto middle = shape.begin() + axis;
    x = n.reshape(x, {n.simplify(product({shape.begin(), middle})), n.simplify(product({middle, shape.end()}))});
    axis = 1;
  }
  Expr result = x;
  if (n.op_type() == "Hardmax") {
    const Expr& depth = n.shape_of(x)[axis];
    DType dtype = n.dtype(0);
    // An axis without elements does not have a largest one, so there is nothing to mark.
    if (is_int(depth, 0)) return n.tensor(0);
    Expr best = n.op("argmax", {as_int(depth) ? x : with_one_more(n, x, axis)}, ArgReduceAttrs{.axis = axis});
    result = n.op("dyn.one_hot", {best, n.scalar(1, dtype), n.scalar(0, dtype), depth}, LastAxisAttrs{axis});
  } else {
    result = n.op(n.op_type() == "Softmax" ? "nn.softmax" : "nn.log_softmax", {x}, LastAxisAttrs{axis});
  }
  return reshaped ? n.reshape(result, shape) : result;
}

}  // namespace

std::vector<ConverterRow> reduction_converters() {
  // ReduceSum has got its axes as an input before the others.
  constexpr const char* kReductions =
      "ReduceMean ReduceProd ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp";
  return {
      {"ArgMax ArgMin", 1, 1, 1, arg_reduce, "axis keepdims select_last_index"},
      {"CumSum", 11, 2, 2, cumsum, "exclusive reverse"},
      {"CumProd", 26, 2, 2, cumsum, "exclusive reverse"},
      {"Softmax LogSoftmax Hardmax", 1, 1, 1, softmax, "axis"},
      {"ReduceSum", 1, 1, 1, reduce, "axes keepdims noop_with_empty_axes"},
      {"ReduceSum", 13, 1, 2, reduce, "keepdims noop_with_empty_axes"},
      {kReductions, 1, 1, 1, reduce, "axes keepdims noop_with_empty_axes"},
      {kReductions, 18, 1, 2, reduce, "keepdims noop_with_empty_axes"},
  };
}

}  // namespace relaxc::onnx_import
