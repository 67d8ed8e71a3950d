#include "ops/fold.h"

namespace relaxc {

DType accumulation_dtype(DType dtype) { return dtype.is_float() && dtype.bits <= 16 ? kFloat32 : dtype; }

Buffer as_dtype(ComputeBuilder& b, const Buffer& value, DType dtype, const std::string& name) {
  const BufferType& type = buffer_type(value);
  if (type.dtype == dtype) return value;
  return b.compute(name, dtype, type.shape, [&](Axes i) { return cast_to(at(value, i), dtype); });
}

Expr divide_by_count(const Expr& sum, Expr count) {
  DType dtype = dtype_of(sum);
  if (!dtype.is_float()) count = max(count, int_imm(1));
  auto known = as_int(count);
  return binary(BinaryOp::kDiv, sum, known ? scalar_imm(static_cast<double>(*known), dtype) : cast_to(count, dtype));
}

AxisFold over_axes(const std::vector<Expr>& shape, const std::vector<int64_t>& axes, bool keepdims) {
  std::vector<bool> is_reduced(shape.size());
  for (int64_t axis : axes) is_reduced[axis] = true;
  AxisFold plan;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (is_reduced[d]) plan.reduced.push_back(shape[d]);
    if (!is_reduced[d] || keepdims) plan.result.push_back(is_reduced[d] ? int_imm(1) : shape[d]);
  }
  plan.element_at = [=](Axes i, Axes r) {
    std::vector<Expr> indices;
    auto kept = i.begin(), reduced = r.begin();
    for (bool removed : is_reduced) {
      indices.push_back(removed ? *reduced++ : *kept);
      if (!removed || keepdims) ++kept;
    }
    return indices;
  };
  plan.result_at = [=](Axes element) {
    std::vector<Expr> indices;
    for (size_t d = 0; d < is_reduced.size(); ++d) {
      if (!is_reduced[d] || keepdims) indices.push_back(is_reduced[d] ? int_imm(0) : element[d]);
    }
    return indices;
  };
  return plan;
}

// A reduction of constant extent 0 is the neutral element without a loop, so that evaluate() can compute it.
Buffer fold(ComputeBuilder& b, const std::string& name, DType dtype, const AxisFold& plan, const Expr& neutral,
            const ComputeBuilder::Combine& combine, const FoldedValue& value) {
  bool is_empty = std::ranges::any_of(plan.reduced, [](const Expr& dim) { return is_int(dim, 0); });
  if (is_empty) return b.compute(name, dtype, plan.result, [&](Axes) { return neutral; });
  return b.reduce(name, dtype, plan.result, plan.reduced, neutral, combine,
                  [&](Axes i, Axes r) { return value(i, plan.element_at(i, r)); });
}
Buffer mean_of(ComputeBuilder& b, const std::string& name, DType dtype, const AxisFold& plan,
               const FoldedValue& value) {
  Buffer sum = fold(b, name + "_sum", dtype, plan, zero(dtype), combine_sum, value);
  return b.compute(name, dtype, plan.result,
                   [&](Axes i) { return divide_by_count(at(sum, i), product(plan.reduced)); });
}
Moments moments_of(ComputeBuilder& b, const Buffer& x, DType dtype, const AxisFold& plan) {
  auto element_of_x = [&](Axes element) { return cast_to(load(x, element), dtype); };
  Buffer mean = mean_of(b, "mean", dtype, plan, [&](Axes, Axes element) { return element_of_x(element); });
  Buffer variance = mean_of(b, "variance", dtype, plan, [&](Axes i, Axes element) {
    Expr distance = element_of_x(element) - at(mean, i);
    return distance * distance;
  });
  return {mean, variance};
}

}  // namespace relaxc
