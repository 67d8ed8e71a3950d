// Reductions over axes, arg-reductions, scans and the softmax family.
#include <algorithm>
#include <cmath>

#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

// Plans a reduction to the shape in argument 1, whose dims are the argument's or 1.
AxisFold plan_to_shape(const OpCall& op) {
  const std::vector<Expr>&from = op.shape(0), &to = op.shape(1);
  if (to.size() != from.size()) op.fail("a shape of {} dims for a tensor of rank {}", to.size(), from.size());
  AxisFold plan{.reduced = {}, .result = to, .element_at = {}, .result_at = {}};
  for (size_t d = 0; d < from.size(); ++d) {
    Expr expected = simplify(select(equal(to[d], int_imm(1)), to[d], from[d]));
    op.require_equal(to[d], expected, fmt::format("dim {} of the shape", d));
    plan.reduced.push_back(simplify(select(equal(to[d], from[d]), int_imm(1), from[d])));
  }
  // Every axis has a dim in both lists, one of which is 1.
  plan.element_at = [](Axes i, Axes r) {
    std::vector<Expr> indices;
    for (size_t d = 0; d < i.size(); ++d) indices.push_back(i[d] + r[d]);
    return indices;
  };
  return plan;
}
AxisFold plan(const OpCall& op, const std::optional<std::vector<int64_t>>& axes, bool keepdims) {
  int64_t rank = op.rank(0);
  return over_axes(op.shape(0), axes ? normalize_axes(op, *axes, rank) : int_range(0, rank), keepdims);
}
AxisFold plan(const OpCall& op) {
  if (op.size() > 1) return plan_to_shape(op);
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  return plan(op, attrs.axis, attrs.keepdims);
}

FoldedValue elements_of(const Buffer& x, DType dtype) {
  return [=](Axes, Axes element) { return cast_to(load(x, element), dtype); };
}

// The rank is known where all axes are reduced, and else follows from the argument's.
Type infer_partial_reduction(const OpCall& op) {
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  int64_t rank = known_rank(op.arg(0).type());
  if (!attrs.axis && !attrs.keepdims) rank = 0;
  if (attrs.axis && !attrs.keepdims && rank >= 0) rank -= static_cast<int64_t>(attrs.axis->size());
  if (rank == 0) return tensor_type(std::vector<Expr>(), op.first_dtype());
  return tensor_type_of_rank(rank, op.first_dtype());
}

using LowerReduction = std::function<Buffer(ComputeBuilder&, const Buffer& x, const AxisFold&)>;
OpRow reduction(const std::string& name, const char* doc, const Domain& domain, const LowerReduction& lower) {
  return {.name = "relax." + name,
          .doc = doc,
          .inputs = {{"x", "the tensor"}},
          .attrs = op_attrs<ReduceAttrs>(),
          .pattern = OpPattern::kReduction,
          .infer =
              [=](const OpCall& op) {
                domain.check(op, op.dtype(0));
                return tensor_type(plan(op).result, op.dtype(0));
              },
          .infer_partial = infer_partial_reduction,
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                Buffer out = lower(b, b.inputs_of(op)[0], plan(op));
                return b.finish({as_dtype(b, out, op.dtype(0), "T_" + name)});
              },
          .layouts = layout_without_reduced};
}

// Makes the row of a reduction by one fold. It folds 16-bit floats in float32.
OpRow simple_reduction(const std::string& name, const char* doc, const Domain& domain,
                       const ComputeBuilder::Combine& combine, Expr (*neutral)(DType)) {
  return reduction(name, doc, domain, [=](ComputeBuilder& b, const Buffer& x, const AxisFold& plan) {
    DType dtype = accumulation_dtype(buffer_type(x).dtype);
    return fold(b, "T_" + name + "_red", dtype, plan, neutral(dtype), combine, elements_of(x, dtype));
  });
}

// Returns the reference of a reduction to a shape; for the mean, the sum is divided by the number of elements.
Reference folded(double start, double (*combine)(double, double), bool is_mean = false) {
  return [=](const ReferenceCall& c) -> reference::Tensors {
    const Tensor& x = c.x[0];
    reference::Index shape = c.dims(1);
    return {reference::tensor_of(shape, x.dtype(), [&](const reference::Index& i) {
      double result = start, count = 0;
      for (int64_t k = 0; k < x.size(); ++k) {
        if (reference::broadcast_index(indices_of(k, x.shape()), shape) != i) continue;
        result = combine(result, x.as_double(k));
        ++count;
      }
      return is_mean ? result / count : result;
    })};
  };
}
double sum_of(double a, double b) { return a + b; }
double product_of(double a, double b) { return a * b; }
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

// Makes the row of the same reduction to a shape, which may be symbolic, in place of axes.
OpRow to_shape(OpRow row, Reference reference) {
  row.name = "relax.dyn." + row.name.substr(row.name.find('.') + 1);
  row.doc += ", to a shape whose dims are the tensor's or 1";
  row.inputs.push_back({"shape", "of the result"});
  row.attrs.clear();
  row.infer_partial = {};
  row.reference = std::move(reference);
  return row;
}

// Relax gives the sum of bools the type bool. It is inferred here but not lowered.
OpRow also_of_bool(OpRow row) {
  row.infer = [infer = row.infer](const OpCall& op) {
    bool is_bool = op.dtype(0).is_bool();
    return is_bool ? tensor_type(plan(op).result, kBool) : infer(op);
  };
  row.legalize = [legalize = row.legalize](const OpCall& op) {
    if (op.dtype(0).is_bool()) op.unsupported("a reduction of bool; convert with R.astype");
    return legalize(op);
  };
  return row;
}

Buffer mean_stage(ComputeBuilder& b, const Buffer& x, const AxisFold& plan) {
  DType dtype = accumulation_dtype(buffer_type(x).dtype);
  return mean_of(b, "T_mean", dtype, plan, elements_of(x, dtype));
}
Buffer variance_stage(ComputeBuilder& b, const Buffer& x, const AxisFold& plan) {
  return moments_of(b, x, accumulation_dtype(buffer_type(x).dtype), plan).variance;
}
Buffer std_stage(ComputeBuilder& b, const Buffer& x, const AxisFold& plan) {
  Buffer variance = variance_stage(b, x, plan);
  DType dtype = buffer_type(variance).dtype;
  return b.compute("T_std", dtype, plan.result,
                   [&](Axes i) { return intrinsic(ops::kScalarSqrt, {at(variance, i)}, dtype); });
}

// With one axis the result is the values and their positions; without an axis it is the value alone.
Type infer_median(const OpCall& op) {
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  Type values = tensor_type(plan(op).result, op.dtype(0));
  if (!attrs.axis) return values;
  if (attrs.axis->size() != 1) op.fail("{} axes, expected one", attrs.axis->size());
  return tuple_type({values, tensor_type(plan(op).result, kInt64)});
}

// Sorts, and takes the element in the middle: the lower one of two. A NaN is the largest value.
Expr decompose_median(const OpCall& op, Builder& b) {
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  int64_t axis = attrs.axis ? normalize_axis(op, attrs.axis->at(0), op.rank(0)) : 0;
  Expr x = attrs.axis ? op.arg(0) : b.op("flatten", {op.arg(0)});
  const Expr dim = known_shape(x.type())->at(static_cast<size_t>(axis));
  op.require_at_most(int_imm(1), dim, "the reduced axis is empty");
  Expr middle = simplify(floor_div(dim - 1, 2)), end = simplify(middle + 1);
  auto at_middle = [&](const Expr& sorted) {
    Expr one = b.op("strided_slice", {sorted, tuple({int_imm(axis)}), tuple({middle}), tuple({end})});
    return b.op("reshape", {one, shape_expr(plan(op).result)});
  };
  Expr order = b.op("argsort", {x}, ArgsortAttrs{.axis = axis, .descending = false, .dtype = kInt64});
  Expr value = at_middle(b.op("gather_elements", {x, order}, AxisAttrs{axis}));
  return attrs.axis ? tuple({value, at_middle(order)}) : value;
}

AxisFold plan_arg_reduction(const OpCall& op) {
  ArgReduceAttrs attrs = op.attrs<ArgReduceAttrs>();
  std::optional<std::vector<int64_t>> axes;
  if (attrs.axis) axes = {*attrs.axis};
  AxisFold result = plan(op, axes, attrs.keepdims);
  for (const Expr& dim : result.reduced) op.require_at_most(int_imm(1), dim, "the reduced axis is empty");
  return result;
}
// Finds the best element by one fold, and its position by another: both are of a kind that runs on vectors.
OpRow arg_reduction(const std::string& name, const char* doc, const ComputeBuilder::Combine& combine,
                    Expr (*neutral)(DType)) {
  auto lower = [=](const OpCall& op) {
    bool is_last = op.attrs<ArgReduceAttrs>().select_last_index;
    AxisFold plan = plan_arg_reduction(op);
    auto [b, x] = OpProgram(op);
    DType dtype = accumulation_dtype(op.dtype(0));
    Buffer best = fold(b, "T_best", dtype, plan, neutral(dtype), combine, elements_of(x[0], dtype));
    auto count = as_int(simplify(product(plan.reduced)));
    DType narrow = count && *count <= INT32_MAX ? kInt32 : kInt64;
    Expr none = is_last ? lowest(narrow) : highest(narrow);
    Buffer position = b.reduce("T_" + name + "_red", narrow, plan.result, plan.reduced, none,
                               is_last ? combine_max : combine_min, [&](Axes i, Axes r) {
                                 Expr value = cast_to(load(x[0], plan.element_at(i, r)), dtype);
                                 Expr is_best = equal(value, at(best, i));
                                 if (dtype.is_float()) is_best = is_best || not_equal(value, value);  // a NaN is best
                                 return select(is_best, cast_to(flatten_index(r, plan.reduced), narrow), none);
                               });
    return b.finish({as_dtype(b, position, kInt64, "T_" + name)});
  };
  return {.name = "relax." + name,
          .doc = doc,
          .inputs = {{"x", "the tensor"}},
          .attrs = with_extension(op_attrs<ArgReduceAttrs>(), "select_last_index"),
          .pattern = OpPattern::kReduction,
          .infer = [](const OpCall& op) { return tensor_type(plan_arg_reduction(op).result, (op.dtype(0), kInt64)); },
          .infer_partial = [](const OpCall&) { return infer_unranked(kInt64); },
          .legalize = lower};
}

// A scan of the flattened tensor has no axis.
Type infer_scan(const OpCall& op) {
  ScanAttrs attrs = op.attrs<ScanAttrs>();
  DType dtype = attrs.dtype.value_or(op.dtype(0));
  kNumbers.check(op, dtype);
  if (attrs.axis) normalize_axis(op, *attrs.axis, op.rank(0));
  return tensor_type(attrs.axis ? op.shape(0) : std::vector<Expr>{product(op.shape(0))}, dtype);
}
// How a scan reads and writes one row: where each step is, the element there, and the result.
struct Row {
  std::function<Expr(const Expr& step)> position;
  std::function<Expr(const Expr& position)> element;
  std::function<Stmt(const Expr& position, const Expr& value)> set;
  std::function<Expr(const Expr& position)> get;
};
// Scans with a result in memory, so that vectors run through many scans side by side.
Stmt scan_columns(const Row& row, const Expr& extent, const ComputeBuilder::Combine& combine, const Expr& neutral,
                  bool is_exclusive) {
  VarRef k = make_dim("k");
  Expr here = row.position(k), before = row.position(k - 1);
  Expr first = is_exclusive ? neutral : row.element(here);
  Expr next = combine(row.get(before), row.element(is_exclusive ? before : here));
  return loop(k, extent, row.set(here, if_then_else(equal(k, int_imm(0)), first, next)));
}
// Scans with the result in a register, four elements at a time: they are combined among themselves, so that each waits
// for one operation on the result and not for four.
Stmt scan_row(const Row& row, const Expr& extent, DType dtype, const ComputeBuilder::Combine& combine,
              const Expr& neutral, bool is_exclusive) {
  constexpr int64_t kStep = 4;
  LocalScalar running("running", dtype);
  auto named = [&](const char* name) { return make_var(name, prim_type(dtype)); };
  VarRef group = make_dim("group"), rest = make_dim("rest"), before = named("before"), own = named("own");
  std::vector<Stmt> step = {make(Bind{before, running.get()})};
  auto bound = [&](const char* name, const Expr& value) -> Expr {
    VarRef var = named(name);
    step.push_back(make(Bind{var, value}));
    return var;
  };
  std::vector<Expr> x, sums;
  auto position = [&](int64_t k) { return row.position(group * kStep + k); };
  for (int64_t k = 0; k < kStep; ++k) x.push_back(bound("element", row.element(position(k))));
  Expr pair = bound("pair", combine(x[2], x[3]));
  sums = {x[0], bound("sum", combine(x[0], x[1]))};
  sums.push_back(bound("sum", combine(sums[1], x[2])));
  sums.push_back(bound("sum", combine(sums[1], pair)));
  for (Expr& sum : sums) sum = bound("result", combine(before, sum));
  for (int64_t k = 0; k < kStep; ++k)
    step.push_back(row.set(position(k), !is_exclusive ? sums[k] : k == 0 ? Expr(before) : sums[k - 1]));
  step.push_back(running.set(sums.back()));
  const Expr groups = floor_div(extent, kStep), last = row.position(groups * kStep + rest);
  Stmt one = seq({make(Bind{own, combine(running.get(), row.element(last))}),
                  row.set(last, is_exclusive ? running.get() : Expr(own)), running.set(own)});
  return seq({running.declared(), running.set(neutral), loop(group, groups, seq(step)),
              loop(rest, extent - groups * kStep, one)});
}
OpRow scan(const std::string& name, const char* doc, const ComputeBuilder::Combine& combine, Expr (*neutral)(DType)) {
  auto lower = [=](const OpCall& op) {
    ScanAttrs attrs = op.attrs<ScanAttrs>();
    Type type = infer_scan(op);
    DType dtype = *tensor_dtype(type);
    const std::vector<Expr>&shape = op.shape(0), &result = *known_shape(type);
    int64_t axis = attrs.axis ? normalize_axis(op, *attrs.axis, op.rank(0)) : 0;
    Expr extent = result[axis];
    auto [b, x] = OpProgram(op);
    Buffer out = b.buffer("T_" + name, dtype, result);
    b.block("T_" + name, without_item(result, axis), {}, [&](Axes i, Axes) {
      auto at_position = [&](const Expr& position) { return with_new_item(i, axis, position); };
      Row row{[&](const Expr& k) { return attrs.reverse ? extent - 1 - k : k; },
              [&](const Expr& position) {
                return cast_to(load(x[0], attrs.axis ? at_position(position) : unflatten_index(position, shape)),
                               dtype);
              },
              [&](const Expr& position, const Expr& value) { return store(out, value, at_position(position)); },
              [&](const Expr& position) { return load(out, at_position(position)); }};
      const bool is_row = axis + 1 == std::ssize(result);  // vectors do not run along other axes
      Stmt body = is_row ? scan_row(row, extent, dtype, combine, neutral(dtype), attrs.exclusive)
                         : scan_columns(row, extent, combine, neutral(dtype), attrs.exclusive);
      return ComputeBuilder::Bodies{std::nullopt, body};
    });
    return b.finish({out});
  };
  return {.name = "relax." + name,
          .doc = doc,
          .inputs = {{"data", "the tensor"}},
          .attrs = with_extension(op_attrs<ScanAttrs>(), "reverse"),
          .infer = infer_scan,
          .infer_partial = infer_stated_dtype,
          .legalize = lower};
}

// softmax and log_softmax subtract the maximum first, so that exp does not overflow.
PrimFuncRef lower_softmax(const OpCall& op, bool is_log) {
  auto [b, x] = OpProgram(op);
  int64_t axis = normalize_axis(op, op.attrs<LastAxisAttrs>().axis, op.rank(0));
  AxisFold rows = over_axes(op.shape(0), {axis});
  const std::vector<Expr>& shape = op.shape(0);
  DType dtype = accumulation_dtype(op.dtype(0));
  auto row_value = [&](const Buffer& statistic, Axes i) { return load(statistic, rows.result_at(i)); };
  Buffer maximum = fold(b, "T_softmax_maxelem", dtype, rows, lowest(dtype), combine_max, elements_of(x[0], dtype));
  auto shifted = [&](Axes i) { return cast_to(at(x[0], i), dtype) - row_value(maximum, i); };
  auto power = [&](Axes i) { return power_in_softmax(shifted(i), least_normal_power(dtype)); };
  if (is_log) {
    Buffer sum = fold(b, "T_softmax_expsum", dtype, rows, zero(dtype), combine_sum,
                      [&](Axes, Axes at_x) { return power(at_x); });
    return b.finish({b.compute("T_log_softmax_norm", op.dtype(0), shape, [&](Axes i) {
      return cast_to(shifted(i) - intrinsic("tir.log", {row_value(sum, i)}, dtype), op.dtype(0));
    })});
  }
  Buffer powers = b.compute("T_softmax_exp", dtype, shape, power);
  Buffer sum = fold(b, "T_softmax_expsum", dtype, rows, zero(dtype), combine_sum, elements_of(powers, dtype));
  return b.finish({b.compute("T_softmax_norm", op.dtype(0), shape, [&](Axes i) {
    // A row has one division.
    Expr inverse = binary(BinaryOp::kDiv, float_imm(1, dtype), row_value(sum, i));
    return cast_to(at(powers, i) * inverse, op.dtype(0));
  })});
}
Type infer_softmax(const OpCall& op) {
  kFloats.check(op, op.dtype(0));
  normalize_axis(op, op.attrs<LastAxisAttrs>().axis, op.rank(0));
  return infer_like_first(op);
}
OpRow softmax(const char* name, const char* doc, bool is_log) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"data", "the tensor"}},
          .attrs = op_attrs<LastAxisAttrs>(),
          .pattern = OpPattern::kReduction,
          .infer = infer_softmax,
          .legalize = [=](const OpCall& op) { return lower_softmax(op, is_log); }};
}

}  // namespace

std::vector<OpRow> reduction_ops() {
  std::vector<OpRow> rows = {
      also_of_bool(simple_reduction("sum", "sum of the elements along the axes", kNumbers, combine_sum, zero)),
      also_of_bool(simple_reduction("prod", "product of the elements along the axes", kNumbers, combine_prod, one)),
      simple_reduction("max", "largest element along the axes; NaN if any is", kAnyDType, combine_max, lowest),
      simple_reduction("min", "smallest element along the axes; NaN if any is", kAnyDType, combine_min, highest),
      reduction("mean", "sum / count along the axes; integers truncate", kNumbers, mean_stage),
      reduction("variance", "mean of squared distances from the mean (population)", kFloats, variance_stage),
      reduction("std", "square root of the variance", kFloats, std_stage),
      arg_reduction("argmax",
                    "position (int64) of the largest element, or of a NaN if there is one: the first, or last",
                    combine_max, lowest),
      arg_reduction("argmin",
                    "position (int64) of the smallest element, or of a NaN if there is one: the first, or last",
                    combine_min, highest),
      {.name = "relax.median",
       .doc = "the lower median along an axis, and its position (int64); of all elements without one",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<ReduceAttrs>(),
       .infer = infer_median,
       .infer_partial = infer_unknown,
       .decompose = decompose_median},
      scan("cumsum", "running sum along the axis", combine_sum, zero),
      scan("cumprod", "running product along the axis", combine_prod, one),
      softmax("relax.nn.softmax", "exp(x) / sum of exp(x) along the axis", false),
      softmax("relax.nn.log_softmax", "log of the softmax along the axis", true),
  };
  const Reference references[] = {folded(0, sum_of), folded(1, product_of), folded(-INFINITY, larger),
                                  folded(INFINITY, smaller), folded(0, sum_of, true)};
  for (size_t i = 0; i < std::size(references); ++i) rows.push_back(to_shape(rows[i], references[i]));
  return rows;
}

}  // namespace relaxc
