// Reductions, scans, arg-reductions and the softmax family.
#include <algorithm>
#include <unordered_map>

#include "frontend/onnx/node.h"

namespace relaxc::onnx_import {

namespace {

Attrs one_attr(const char* name, AttrValue value) {
  Attrs attrs;
  attrs.set(name, std::move(value));
  return attrs;
}

Expr reduce_over(Node& n, const Expr& x, const std::vector<int64_t>& axes, bool keepdims) {
  const std::string& op = n.op_type();
  auto plain = [&](const char* name, const Expr& value) { return n.reduce(name, value, axes, keepdims); };
  if (op == "ReduceSum") return plain("sum", x);
  if (op == "ReduceMean") return plain("mean", x);
  if (op == "ReduceProd") return plain("prod", x);
  if (op == "ReduceL1") return plain("sum", n.op("abs", {x}));
  if (op == "ReduceSumSquare") return plain("sum", n.op("square", {x}));
  if (op == "ReduceL2") return n.op("sqrt", {plain("sum", n.op("square", {x}))});
  if (op == "ReduceLogSum") return n.op("log", {plain("sum", x)});
  if (op == "ReduceLogSumExp") {
    if (axes.empty()) return x;
    // Shifted by the maximum, so that exp does not overflow; infinite maxima are not subtracted.
    Expr peak = n.reduce("max", x, axes, true);
    Expr finite = n.op("where", {n.op("isfinite", {peak}), peak, n.like(0, peak)});
    Expr sum = n.reduce("sum", n.op("exp", {n.sub(x, finite)}), axes, true);
    Expr result = n.add(n.op("log", {sum}), finite);
    return keepdims ? result : n.op("squeeze", {result}, one_attr("axis", axes));
  }
  bool flags = n.dtype_of_tensor(x).is_bool();
  Expr value = flags ? n.cast(x, DType::uint(8)) : x;
  Expr result = plain(op == "ReduceMax" ? "max" : "min", value);
  return flags ? n.cast(result, kBool) : result;
}

// Axes read at run time: every choice of that many axes that gives the declared output shape is computed, and the one
// that the axes name is taken.
Expr reduce_at_run_time(Node& n, const Expr& x, const std::vector<Expr>& axes, bool keepdims) {
  std::vector<Expr> dims = n.shape_of(x);
  auto declared = n.declared_shape(0);
  if (!declared || dims.size() > 6)
    n.unsupported("axes are only known at run time, and the output's shape is not declared");
  std::optional<Expr> result;
  for (uint32_t mask = 1; mask < (1u << dims.size()); ++mask) {
    if (static_cast<size_t>(__builtin_popcount(mask)) != axes.size()) continue;
    std::vector<int64_t> chosen;
    std::vector<Expr> shape;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (mask >> d & 1) {
        chosen.push_back(static_cast<int64_t>(d));
        if (keepdims) shape.push_back(int_imm(1));
      } else {
        shape.push_back(dims[d]);
      }
    }
    bool fits = shape.size() == declared->size();
    for (size_t d = 0; fits && d < shape.size(); ++d) fits = is_int(shape[d], (*declared)[d]);
    if (!fits) continue;
    Expr reduced = reduce_over(n, x, chosen, keepdims);
    if (!result) {
      result = reduced;
      continue;
    }
    Expr named = bool_imm(true);
    for (int64_t axis : chosen) {
      Expr any = bool_imm(false);
      for (const Expr& given : axes) {
        any = any || equal(given, int_imm(axis)) || equal(given, int_imm(axis - static_cast<int64_t>(dims.size())));
      }
      named = named && any;
    }
    result = n.op("where", {n.op("scalar_to_tensor", {named}), reduced, *result});
  }
  if (!result) n.fail("no axes give the declared output shape [{}]", fmt::join(*declared, ", "));
  return *result;
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
      std::vector<Expr> runtime = n.ints(1);
      if (!runtime.empty()) return {n.of(reduce_at_run_time(n, x, runtime, keepdims))};
      axes.emplace();
    }
  } else if (!axes_input) {
    axes = n.attr_ints("axes");
  }
  std::vector<int64_t> chosen;
  if (axes && !axes->empty()) {
    for (int64_t axis : *axes) chosen.push_back(n.axis(axis, rank, "axes"));
  } else if (!noop) {
    for (int64_t d = 0; d < rank; ++d) chosen.push_back(d);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return {n.of(reduce_over(n, x, chosen, keepdims))};
}

Outputs arg_reduce(Node& n) {
  Attrs attrs;
  attrs.set("axis", n.axis(n.attr_int("axis", 0), n.rank(0)));
  attrs.set("keepdims", n.attr_int("keepdims", 1) != 0);
  if (n.attr_int("select_last_index", 0)) attrs.set("select_last_index", true);
  return {n.of(n.op(n.op_type() == "ArgMax" ? "argmax" : "argmin", {n.tensor(0)}, attrs))};
}

Outputs cumsum(Node& n) {
  Expr x = n.tensor(0);
  int64_t rank = n.rank(0);
  Attrs attrs;
  attrs.set("exclusive", n.attr_int("exclusive", 0) != 0);
  attrs.set("reverse", n.attr_int("reverse", 0) != 0);
  Expr axis = n.scalar_int(1);
  const char* name = n.op_type() == "CumSum" ? "cumsum" : "cumprod";
  auto along = [&](int64_t d) { return n.op(name, {x}, attrs.with("axis", d)); };
  if (auto known = as_int(axis)) return {n.of(along(n.axis(*known, rank)))};
  // An axis read at run time: all are computed, one is taken.
  Expr result = along(0);
  for (int64_t d = 1; d < rank; ++d) {
    Expr named = equal(axis, int_imm(d)) || equal(axis, int_imm(d - rank));
    result = n.op("where", {n.op("scalar_to_tensor", {named}), along(d), result});
  }
  return {n.of(result)};
}

// Before opset 13 the axes from `axis` on count as one.
Outputs softmax(Node& n) {
  Expr x = n.tensor(0);
  std::vector<Expr> shape = n.shape(0);
  int64_t rank = n.rank(0);
  bool flattens = n.opset() < 13;
  int64_t axis = n.axis(n.attr_int("axis", flattens ? 1 : -1), std::max<int64_t>(rank, 1));
  bool reshaped = flattens && axis != rank - 1;
  if (reshaped) {
    Expr rows = int_imm(1), columns = int_imm(1);
    for (int64_t d = 0; d < rank; ++d) (d < axis ? rows : columns) = (d < axis ? rows : columns) * shape[d];
    x = n.reshape(x, {n.simplify(rows), n.simplify(columns)});
    axis = 1;
  }
  Expr result = x;
  if (n.op_type() == "Hardmax") {
    const Expr& depth = n.shape_of(x)[static_cast<size_t>(axis)];
    DType dtype = n.dtype(0);
    Attrs attrs;
    attrs.set("axis", axis);
    Expr best = n.op("argmax", {x}, attrs);
    result = n.op("dyn.one_hot", {best, n.scalar(1, dtype), n.scalar(0, dtype), depth}, attrs);
  } else {
    result = n.op(n.op_type() == "Softmax" ? "nn.softmax" : "nn.log_softmax", {x}, one_attr("axis", axis));
  }
  return {n.of(reshaped ? n.reshape(result, shape) : result)};
}

}  // namespace

std::vector<ConverterRow> reduction_converters() {
  std::vector<ConverterRow> rows = {
      {"ArgMax", 1, 1, 1, arg_reduce}, {"ArgMin", 1, 1, 1, arg_reduce}, {"CumSum", 11, 2, 2, cumsum},
      {"CumProd", 26, 2, 2, cumsum},   {"Softmax", 1, 1, 1, softmax},   {"LogSoftmax", 1, 1, 1, softmax},
      {"Hardmax", 1, 1, 1, softmax},
  };
  for (const char* name : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                           "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
    rows.push_back({name, 1, 1, 1, reduce});
    rows.push_back({name, std::string_view(name) == "ReduceSum" ? 13 : 18, 1, 2, reduce});
  }
  return rows;
}

}  // namespace relaxc::onnx_import
