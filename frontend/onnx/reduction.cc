// Reductions, scans, arg-reductions and the softmax family.
#include <algorithm>
#include <cmath>
#include <functional>

#include "frontend/onnx/run_time_axes.h"
#include "ops/fold.h"

namespace relaxc::onnx_import {

namespace {

// Reduces for a node, over constant axes or over axes that are known at run time only.
struct Reducer {
  std::function<Expr(const char* name, const Expr& x, bool keepdims)> reduce;
  std::function<Expr(const Expr& kept)> drop;  // removes the reduced axes, which have size 1
  bool keepdims, is_identity = false, at_run_time = false;
  Expr operator()(const char* name, const Expr& x) const { return reduce(name, x, keepdims); }
};

Reducer over_constant_axes(Node& n, const std::vector<int64_t>& axes, bool keepdims) {
  return {[&n, axes](const char* name, const Expr& x, bool keepdims) { return n.reduce(name, x, axes, keepdims); },
          [&n, axes](const Expr& kept) { return n.op("squeeze", {kept}, AxisListAttrs{axes}); }, keepdims,
          axes.empty()};
}
// The operators dyn.sum and the like reduce to a shape, whose dims the run computes from the axes. `named` has 1 for
// each reduced axis, and `left` is the number of the others.
Reducer over_run_time_axes(Node& n, const Expr& x, const std::vector<Expr>& named, std::optional<size_t> left,
                           bool keepdims) {
  const std::vector<Expr> dims = n.shape_of(x);
  std::vector<Expr> kept = dims_with_ones(n, dims, named);
  auto drop = [&n, dims, named, left](const Expr& value) {
    if (!left) n.fail_open_rank(n.tensor(1), "the number of axes that keepdims=0 drops", "[2]");
    return n.reshape(value, dims_not_named(n, dims, named, *left));
  };
  auto reduce = [&n, kept, drop](const char* name, const Expr& value, bool keeps) {
    Expr result = n.op(fmt::format("dyn.{}", name), {value, shape_expr(kept)});
    return keeps ? result : drop(result);
  };
  return {.reduce = reduce, .drop = drop, .keepdims = keepdims, .at_run_time = true};
}

// Computes an operator from the reduction `op` over its axes.
using Reduction = Expr (*)(Node& n, const Expr& x, const Reducer& over, const char* op);
Expr plain(Node& n, const Expr& x, const Reducer& over, const char* op) {
  if (!n.dtype_of_tensor(x).is_bool()) return over(op, x);
  return n.cast(over(op, n.cast(x, DType::uint(8))), kBool);
}
Expr of_absolutes(Node& n, const Expr& x, const Reducer& over, const char* op) { return over(op, n.op("abs", {x})); }
Expr of_squares(Node& n, const Expr& x, const Reducer& over, const char* op) { return over(op, n.op("square", {x})); }
// Computes what has no meaning on integers in float64, and rounds the result toward zero.
template <Reduction kReduction>
Expr in_floats(Node& n, const Expr& x, const Reducer& over, const char* op) {
  const DType dtype = n.dtype_of_tensor(x);
  if (!dtype.is_integral()) return kReduction(n, x, over, op);
  return n.cast(kReduction(n, n.cast(x, kFloat64), over, op), dtype);
}
// A square of a float16 may be beyond float16, and the root within it.
Expr root_of_squares(Node& n, const Expr& x, const Reducer& over, const char* op) {
  const DType dtype = n.dtype_of_tensor(x);
  return n.cast(n.op("sqrt", {of_squares(n, n.cast(x, accumulation_dtype(dtype)), over, op)}), dtype);
}
Expr log_of(Node& n, const Expr& x, const Reducer& over, const char* op) { return n.op("log", {over(op, x)}); }
Expr log_of_exps(Node& n, const Expr& x, const Reducer& over, const char* op) {
  if (over.is_identity) return x;
  // Subtracts the maximum, so that exp does not overflow. Infinite maxima are not subtracted.
  Expr peak = over.reduce("max", x, true);
  Expr finite = n.op("where", {n.op("isfinite", {peak}), peak, n.scalar_like(0, peak)});
  // Operators do not broadcast a dim that is 1 at run time only.
  Expr stretched = over.at_run_time ? n.broadcast_to(finite, n.shape_of(x)) : finite;
  Expr sum = over.reduce(op, n.op("exp", {n.sub(x, stretched)}), true);
  Expr result = n.add(n.op("log", {sum}), finite);
  return over.keepdims ? result : over.drop(result);
}
// Reads the axes, which are an input or an attribute, as the node's row says.
template <Reduction kReduction>
Expr reduce(Node& n, const Expr& x, const char* op) {
  int64_t rank = n.rank(0);
  bool keepdims = n.attr_int("keepdims", 1) != 0;
  bool axes_input = n.row().most_inputs == 2;
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
      if (auto result = n.output_rank(0); !count && !keepdims && result && *result <= rank) {
        Expr total = int_imm(0);
        for (const Expr& is_named : named) total = total + is_named;
        n.require_equal(total, int_imm(rank - *result), "number of different axes, as the ranks tell it");
        left = static_cast<size_t>(*result);
      }
      return kReduction(n, x, over_run_time_axes(n, x, named, left, keepdims), op);
    }
  } else if (!axes_input) {
    axes = n.attr_ints("axes");
  }
  std::vector<int64_t> chosen = axes.value_or(std::vector<int64_t>());
  for (int64_t& axis : chosen) axis = n.axis(axis, rank, "axes");
  if (chosen.empty() && !noop) chosen = n.all_axes();
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return kReduction(n, x, over_constant_axes(n, chosen, keepdims), op);
}

Expr arg_reduce(Node& n, const Expr& x, const char* op) {
  ArgReduceAttrs attrs{.axis = n.axis(n.attr_int("axis", 0), n.rank(0)),
                       .keepdims = n.attr_int("keepdims", 1) != 0,
                       .select_last_index = n.attr_int("select_last_index", 0) != 0};
  return n.op(op, {x}, attrs);
}

Expr scan_along(Node& n, const Expr& x, const char* op) {
  int64_t rank = n.rank(0);
  ScanAttrs attrs{.exclusive = n.attr_int("exclusive", 0) != 0, .reverse = n.attr_int("reverse", 0) != 0};
  auto known = n.constant_ints(1);
  auto along = [&](int64_t d) {
    attrs.axis = d;
    return n.op(op, {x}, attrs);
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
// Applies the function along the node's axis. Before opset 13 the axes from `axis` on count as one.
Expr along_axis(Node& n, const Expr& input, const std::function<Expr(const Expr& x, int64_t axis)>& fn) {
  Expr x = input;
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
  Expr result = fn(x, axis);
  return reshaped ? n.reshape(result, shape) : result;
}
Expr softmax(Node& n, const Expr& input, const char* op) {
  return along_axis(n, input, [&](const Expr& x, int64_t axis) { return n.op(op, {x}, LastAxisAttrs{axis}); });
}
Expr hardmax(Node& n, const Expr& input) {
  return along_axis(n, input, [&](const Expr& x, int64_t axis) {
    const Expr& depth = n.dim_of(x, axis);
    DType dtype = n.dtype(0);
    // An axis without elements does not have a largest one, so there is nothing to mark.
    if (is_int(depth, 0)) return x;
    Expr best = n.op("argmax", {as_int(depth) ? x : with_one_more(n, x, axis)}, ArgReduceAttrs{.axis = axis});
    return n.op("dyn.one_hot", {best, n.scalar(1, dtype), n.scalar(0, dtype), depth}, LastAxisAttrs{axis});
  });
}

}  // namespace

std::vector<ConverterRow> reduction_converters() {
  std::vector<ConverterRow> rows = {
      {"ArgMax", 1, 1, 1, {arg_reduce, "argmax"}, "axis keepdims select_last_index"},
      {"ArgMin", 1, 1, 1, {arg_reduce, "argmin"}, "axis keepdims select_last_index"},
      {"CumSum", 11, 2, 2, {scan_along, "cumsum"}, "exclusive reverse"},
      {"CumProd", 26, 2, 2, {scan_along, "cumprod"}, "exclusive reverse"},
      {"Softmax", 1, 1, 1, {softmax, "nn.softmax"}, "axis"},
      {"LogSoftmax", 1, 1, 1, {softmax, "nn.log_softmax"}, "axis"},
      {"Hardmax", 1, 1, 1, hardmax, "axis"},
  };
  // ReduceSum has got its axes as an input before the others.
  const std::tuple<const char*, Converter, int64_t> kReductions[] = {
      {"ReduceSum", {reduce<plain>, "sum"}, 13},
      {"ReduceMean", {reduce<in_floats<plain>>, "mean"}, 18},
      {"ReduceProd", {reduce<plain>, "prod"}, 18},
      {"ReduceMax", {reduce<plain>, "max"}, 18},
      {"ReduceMin", {reduce<plain>, "min"}, 18},
      {"ReduceL1", {reduce<of_absolutes>, "sum"}, 18},
      {"ReduceL2", {reduce<in_floats<root_of_squares>>, "sum"}, 18},
      {"ReduceSumSquare", {reduce<of_squares>, "sum"}, 18},
      {"ReduceLogSum", {reduce<in_floats<log_of>>, "sum"}, 18},
      {"ReduceLogSumExp", {reduce<in_floats<log_of_exps>>, "sum"}, 18},
  };
  for (const auto& [name, convert, since] : kReductions) {
    rows.push_back({name, 1, 1, 1, convert, "axes keepdims noop_with_empty_axes"});
    rows.push_back({name, since, 1, 2, convert, "keepdims noop_with_empty_axes"});
  }
  return rows;
}

}  // namespace relaxc::onnx_import
