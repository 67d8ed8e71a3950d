// Reductions over axes, arg-reductions, scans and the softmax family.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace relaxc {

namespace {

// The dims of the argument that a reduction removes, and the shape that is left.
struct Reduction {
  std::vector<bool> is_reduced;  // per dim of the argument
  std::vector<Expr> reduced, result;
  bool keepdims;
  bool to_shape = false;  // every axis has a dim in both lists, one of which is 1

  // Returns the argument's indices from those of the result and the reduced ones.
  std::vector<Expr> indices(Axes i, Axes r) const {
    std::vector<Expr> all;
    for (size_t d = 0; to_shape && d < i.size(); ++d) all.push_back(i[d] + r[d]);
    if (to_shape) return all;
    size_t next_kept = 0, next_reduced = 0;
    for (bool gone : is_reduced) {
      if (gone) {
        all.push_back(r[next_reduced++]);
        if (keepdims) ++next_kept;
      } else {
        all.push_back(i[next_kept++]);
      }
    }
    return all;
  }
  // Returns whether a reduced dim has constant extent 0, so that no iteration would run the init.
  bool is_empty() const {
    return std::any_of(reduced.begin(), reduced.end(), [](const Expr& dim) { return is_int(dim, 0); });
  }
};

Reduction plan(const OpCall& op, const std::optional<std::vector<int64_t>>& axes, bool keepdims) {
  const std::vector<Expr>& shape = op.shape(0);
  Reduction plan{std::vector<bool>(shape.size(), !axes), {}, {}, keepdims};
  if (axes) {
    for (int64_t axis : normalize_axes(op, *axes, op.rank(0))) plan.is_reduced[axis] = true;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (plan.is_reduced[d]) plan.reduced.push_back(shape[d]);
    if (!plan.is_reduced[d]) plan.result.push_back(shape[d]);
    if (plan.is_reduced[d] && keepdims) plan.result.push_back(int_imm(1));
  }
  return plan;
}
// Plans a reduction to the shape in argument 1, whose dims are the argument's or 1.
Reduction plan_to_shape(const OpCall& op) {
  const std::vector<Expr>&from = op.shape(0), &to = op.shape(1);
  if (to.size() != from.size()) op.fail("a shape of {} dims for a tensor of rank {}", to.size(), from.size());
  Reduction plan{std::vector<bool>(from.size(), true), {}, to, true, true};
  for (size_t d = 0; d < from.size(); ++d) {
    Expr expected = simplify(select(equal(to[d], int_imm(1)), to[d], from[d]));
    op.require_equal(to[d], expected, fmt::format("dim {} of the shape", d));
    plan.reduced.push_back(simplify(select(equal(to[d], from[d]), int_imm(1), from[d])));
  }
  return plan;
}
Reduction plan(const OpCall& op) {
  if (op.size() > 1) return plan_to_shape(op);
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  return plan(op, attrs.axis, attrs.keepdims);
}

// Makes out[i] = fold of value(argument's indices). A reduction of constant extent 0 gives the neutral element.
Buffer fold(ComputeBuilder& b, const std::string& name, DType dtype, const Reduction& plan, const Expr& neutral,
            const ComputeBuilder::Combine& combine, const std::function<Expr(Axes result, Axes argument)>& value) {
  if (plan.is_empty()) return b.compute(name, dtype, plan.result, [&](Axes) { return neutral; });
  return b.reduce(name, dtype, plan.result, plan.reduced, neutral, combine,
                  [&](Axes i, Axes r) { return value(i, plan.indices(i, r)); });
}

enum class Domain : uint8_t { kAny, kNumber, kFloat };
void check_domain(const OpCall& op, Domain domain) {
  DType dtype = op.dtype(0);
  if (domain == Domain::kNumber && dtype.is_bool()) op.fail("expected a number, got bool");
  if (domain == Domain::kFloat && !dtype.is_float()) op.fail("expected a float, got {}", to_string(dtype));
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

OpRow reduction(std::string name, std::string doc, Domain domain,
                std::function<Buffer(ComputeBuilder&, const Buffer&, const Reduction&)> lower) {
  return {.name = "relax." + name,
          .doc = std::move(doc),
          .inputs = {{"x", "the tensor"}},
          .attrs = op_attrs<ReduceAttrs>(),
          .pattern = OpPattern::kReduction,
          .infer =
              [=](const OpCall& op) {
                check_domain(op, domain);
                return tensor_type(plan(op).result, op.dtype(0));
              },
          .infer_partial = infer_partial_reduction,
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                Buffer out = lower(b, x, plan(op));
                return b.finish({as_dtype(b, out, op.dtype(0), "T_" + name)});
              }};
}

// Makes the row of a reduction by one fold. It folds 16-bit floats in float32.
OpRow simple_reduction(const std::string& name, std::string doc, Domain domain, ComputeBuilder::Combine combine,
                       Expr (*neutral)(DType)) {
  return reduction(name, std::move(doc), domain, [=](ComputeBuilder& b, const Buffer& x, const Reduction& plan) {
    DType dtype = accumulation_dtype(buffer_type(x).dtype);
    return fold(b, "T_" + name + "_red", dtype, plan, neutral(dtype), combine,
                [&](Axes, Axes at_x) { return cast_to(load(x, at_x), dtype); });
  });
}

// Makes the row of the same reduction to a shape, which may be symbolic, in place of axes.
OpRow to_shape(OpRow row) {
  row.name = "relax.dyn." + row.name.substr(row.name.find('.') + 1);
  row.doc += ", to a shape whose dims are the tensor's or 1";
  row.inputs.push_back({"shape", "of the result"});
  row.attrs.clear();
  row.infer_partial = {};
  return row;
}

// Relax gives the sum of bools the type bool. It is inferred here but not lowered.
OpRow also_of_bool(OpRow row) {
  row.infer = [infer = row.infer](const OpCall& op) {
    bool is_bool = op.dtype(0).is_bool();
    return is_bool ? tensor_type(plan(op).result, kBool) : infer(op);
  };
  row.legalize = [legalize = row.legalize](const OpCall& op) {
    if (op.dtype(0).is_bool()) op.unsupported("of bool; convert with R.astype");
    return legalize(op);
  };
  return row;
}

Buffer mean_stage(ComputeBuilder& b, const Buffer& x, const Reduction& plan) {
  DType dtype = accumulation_dtype(buffer_type(x).dtype);
  Buffer sum = fold(b, "T_sum_red", dtype, plan, zero(dtype), combine_sum,
                    [&](Axes, Axes at_x) { return cast_to(load(x, at_x), dtype); });
  return b.compute("T_mean", dtype, plan.result,
                   [&](Axes i) { return divide_by_count(at(sum, i), product(plan.reduced)); });
}
// Computes the mean of the squared distances from the mean, in two passes.
Buffer variance_stage(ComputeBuilder& b, const Buffer& x, const Reduction& plan) {
  Buffer mean = mean_stage(b, x, plan);
  DType dtype = buffer_type(mean).dtype;
  Buffer sum = fold(b, "T_square_red", dtype, plan, zero(dtype), combine_sum, [&](Axes i, Axes at_x) {
    Expr distance = binary(BinaryOp::kSub, cast_to(load(x, at_x), dtype), at(mean, i));
    return binary(BinaryOp::kMul, distance, distance);
  });
  return b.compute("T_variance", dtype, plan.result,
                   [&](Axes i) { return divide_by_count(at(sum, i), product(plan.reduced)); });
}
Buffer std_stage(ComputeBuilder& b, const Buffer& x, const Reduction& plan) {
  Buffer variance = variance_stage(b, x, plan);
  DType dtype = buffer_type(variance).dtype;
  return b.compute("T_std", dtype, plan.result,
                   [&](Axes i) { return intrinsic("tir.sqrt", {at(variance, i)}, dtype); });
}

// With one axis the result is the values and their positions; without an axis it is the value alone.
Type infer_median(const OpCall& op) {
  ReduceAttrs attrs = op.attrs<ReduceAttrs>();
  Type values = tensor_type(plan(op).result, op.dtype(0));
  if (!attrs.axis) return values;
  if (attrs.axis->size() != 1) op.fail("{} axes, expected one", attrs.axis->size());
  return tuple_type({values, tensor_type(plan(op).result, kInt64)});
}

OpRow arg_reduction(std::string name, std::string doc, BinaryOp better, BinaryOp better_or_equal,
                    Expr (*neutral)(DType)) {
  auto plan_of = [](const OpCall& op, const ArgReduceAttrs& attrs) {
    std::optional<std::vector<int64_t>> axes;
    if (attrs.axis) axes = {*attrs.axis};
    Reduction result = plan(op, axes, attrs.keepdims);
    if (result.is_empty()) op.fail("the reduced axis is empty");
    for (const Expr& dim : result.reduced) op.require_at_most(int_imm(1), dim, "the reduced axis is empty");
    return result;
  };
  return {.name = "relax." + name,
          .doc = std::move(doc),
          .inputs = {{"x", "the tensor"}},
          .attrs = with_own(op_attrs<ArgReduceAttrs>(), "select_last_index"),
          .pattern = OpPattern::kReduction,
          .infer =
              [=](const OpCall& op) {
                return tensor_type(plan_of(op, op.attrs<ArgReduceAttrs>()).result, (op.dtype(0), kInt64));
              },
          .infer_partial = [](const OpCall&) { return infer_unranked(kInt64); },
          .legalize =
              [=](const OpCall& op) {
                ArgReduceAttrs attrs = op.attrs<ArgReduceAttrs>();
                Reduction plan = plan_of(op, attrs);
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                DType dtype = op.dtype(0);
                Buffer index = b.buffer("T_" + name, kInt64, plan.result),
                       best = b.buffer("T_best", dtype, plan.result);
                b.block("T_" + name + "_red", plan.result, plan.reduced, [&](Axes i, Axes r) {
                  Stmt init = seq({store(index, int_imm(0), i), store(best, neutral(dtype), i)});
                  Expr value = load(x, plan.indices(i, r)), old = at(best, i);
                  Expr wins = binary(attrs.select_last_index ? better_or_equal : better, value, old);
                  if (dtype.is_float()) {  // a NaN beats all numbers, the first one stays
                    wins = wins || (binary(BinaryOp::kNE, value, value) && binary(BinaryOp::kEQ, old, old));
                  }
                  Stmt body = seq({store(index, select(wins, flatten_index(r, plan.reduced), at(index, i)), i),
                                   store(best, select(wins, value, old), i)});
                  return ComputeBuilder::Bodies{init, body};
                });
                return b.finish({index});
              }};
}

OpRow scan(std::string name, std::string doc, ComputeBuilder::Combine combine, Expr (*neutral)(DType)) {
  auto result_dtype = [](const OpCall& op) {
    DType dtype = op.attrs<ScanAttrs>().dtype.value_or(op.dtype(0));
    if (dtype.is_bool()) op.fail("expected a number, got bool");
    return dtype;
  };
  return {.name = "relax." + name,
          .doc = std::move(doc),
          .inputs = {{"data", "the tensor"}},
          .attrs = with_own(op_attrs<ScanAttrs>(), "reverse"),
          .infer =
              [=](const OpCall& op) {
                ScanAttrs attrs = op.attrs<ScanAttrs>();
                if (!attrs.axis) return tensor_type({product(op.shape(0))}, result_dtype(op));
                normalize_axis(op, *attrs.axis, op.rank(0));
                return tensor_type(op.shape(0), result_dtype(op));
              },
          .infer_partial =
              [](const OpCall& op) {
                return infer_unranked(op.attrs<ScanAttrs>().dtype ? op.attrs<ScanAttrs>().dtype : op.first_dtype());
              },
          .legalize =
              [=](const OpCall& op) {
                ScanAttrs attrs = op.attrs<ScanAttrs>();
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                const std::vector<Expr>& shape = op.shape(0);
                DType dtype = result_dtype(op);
                int64_t axis = attrs.axis ? normalize_axis(op, *attrs.axis, op.rank(0)) : 0;
                Expr extent = attrs.axis ? shape[axis] : product(shape);
                std::vector<Expr> others, result = attrs.axis ? shape : std::vector<Expr>{extent};
                for (size_t d = 0; d < result.size(); ++d) {
                  if (static_cast<int64_t>(d) != axis) others.push_back(result[d]);
                }
                Buffer out = b.buffer("T_" + name, dtype, result);
                b.block("T_" + name, others, {}, [&](Axes i, Axes) {
                  VarRef k = make_dim("k");
                  auto at_position = [&](const Expr& position) {
                    std::vector<Expr> indices = i;
                    indices.insert(indices.begin() + axis, position);
                    return indices;
                  };
                  auto element = [&](const Expr& position) {
                    return cast_to(load(x, attrs.axis ? at_position(position) : unflatten_index(position, shape)),
                                   dtype);
                  };
                  Expr here = attrs.reverse ? extent - 1 - k : Expr(k), before = attrs.reverse ? here + 1 : here - 1;
                  Expr first = attrs.exclusive ? neutral(dtype) : element(here);
                  Expr next = combine(load(out, at_position(before)), element(attrs.exclusive ? before : here));
                  Stmt body = store(out, if_then_else(equal(k, int_imm(0)), first, next), at_position(here));
                  return ComputeBuilder::Bodies{std::nullopt, loop(k, extent, body)};
                });
                return b.finish({out});
              }};
}

// softmax and log_softmax subtract the maximum first, so that exp does not overflow.
OpRow softmax(std::string name, std::string doc, bool is_log) {
  return {.name = "relax.nn." + name,
          .doc = std::move(doc),
          .inputs = {{"data", "the tensor"}},
          .attrs = op_attrs<SoftmaxAttrs>(),
          .pattern = OpPattern::kReduction,
          .infer =
              [](const OpCall& op) {
                check_domain(op, Domain::kFloat);
                normalize_axis(op, op.attrs<SoftmaxAttrs>().axis, op.rank(0));
                return tensor_type(op.shape(0), op.dtype(0));
              },
          .legalize =
              [=](const OpCall& op) {
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                int64_t axis = normalize_axis(op, op.attrs<SoftmaxAttrs>().axis, op.rank(0));
                Reduction rows = plan(op, std::vector<int64_t>{axis}, false);
                const std::vector<Expr>& shape = op.shape(0);
                DType dtype = accumulation_dtype(op.dtype(0));
                auto row_of = [&](Axes i) {
                  std::vector<Expr> indices = i;
                  indices.erase(indices.begin() + axis);
                  return indices;
                };
                Buffer maximum = fold(b, "T_softmax_maxelem", dtype, rows, lowest(dtype), combine_max,
                                      [&](Axes, Axes at_x) { return cast_to(load(x, at_x), dtype); });
                auto shifted = [&](Axes i) {
                  return binary(BinaryOp::kSub, cast_to(at(x, i), dtype), load(maximum, row_of(i)));
                };
                auto exp = [&](const Expr& value) { return intrinsic("tir.exp", {value}, dtype); };
                if (is_log) {
                  Buffer sum = fold(b, "T_softmax_expsum", dtype, rows, zero(dtype), combine_sum,
                                    [&](Axes, Axes at_x) { return exp(shifted(at_x)); });
                  return b.finish({b.compute("T_log_softmax_norm", op.dtype(0), shape, [&](Axes i) {
                    Expr log = intrinsic("tir.log", {load(sum, row_of(i))}, dtype);
                    return cast_to(binary(BinaryOp::kSub, shifted(i), log), op.dtype(0));
                  })});
                }
                Buffer powers = b.compute("T_softmax_exp", dtype, shape, [&](Axes i) { return exp(shifted(i)); });
                Buffer sum = fold(b, "T_softmax_expsum", dtype, rows, zero(dtype), combine_sum,
                                  [&](Axes, Axes at_x) { return load(powers, at_x); });
                return b.finish({b.compute("T_softmax_norm", op.dtype(0), shape, [&](Axes i) {
                  return cast_to(binary(BinaryOp::kDiv, at(powers, i), load(sum, row_of(i))), op.dtype(0));
                })});
              }};
}

}  // namespace

std::vector<OpRow> reduction_ops() {
  std::vector<OpRow> rows = {
      also_of_bool(simple_reduction("sum", "sum of the elements along the axes", Domain::kNumber, combine_sum, zero)),
      also_of_bool(
          simple_reduction("prod", "product of the elements along the axes", Domain::kNumber, combine_prod, one)),
      simple_reduction("max", "largest element along the axes; NaN if any is", Domain::kAny, combine_max, lowest),
      simple_reduction("min", "smallest element along the axes; NaN if any is", Domain::kAny, combine_min, highest),
      reduction("mean", "sum / count along the axes; integers truncate", Domain::kNumber, mean_stage),
      reduction("variance", "mean of squared distances from the mean (population)", Domain::kFloat, variance_stage),
      reduction("std", "square root of the variance", Domain::kFloat, std_stage),
      arg_reduction("argmax", "position (int64) of the largest element; the first NaN if there is one", BinaryOp::kGT,
                    BinaryOp::kGE, lowest),
      arg_reduction("argmin", "position (int64) of the smallest element; the first NaN if there is one", BinaryOp::kLT,
                    BinaryOp::kLE, highest),
      {.name = "relax.median",
       .doc = "the lower median along an axis, and its position (int64); of all elements without one",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<ReduceAttrs>(),
       .infer = infer_median,
       .infer_partial = infer_unknown},
      scan("cumsum", "running sum along the axis", combine_sum, zero),
      scan("cumprod", "running product along the axis", combine_prod, one),
      softmax("softmax", "exp(x) / sum of exp(x) along the axis", false),
      softmax("log_softmax", "log of the softmax along the axis", true),
  };
  for (size_t i = 0; i < 5; ++i) rows.push_back(to_shape(rows[i]));  // sum, prod, max, min, mean
  return rows;
}

}  // namespace relaxc
