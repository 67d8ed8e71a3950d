// Sorts along an axis. A bottom-up merge sort of positions (stable; n log n; scratch of two int64 per element) gives
// the positions from which sort, argsort and topk take their results. NaN sorts as the largest value, as in numpy.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace relaxc {

namespace {

Expr is_nan(const Expr& x) { return intrinsic(ops::kScalarIsNan, {x}, kBool); }
// Returns whether b must come before a, strictly.
Expr precedes(const Expr& b, const Expr& a, bool descending) {
  Expr result = descending ? b > a : b < a;
  if (!dtype_of(a).is_float()) return result;
  return result || (descending ? is_nan(b) && !is_nan(a) : !is_nan(b) && is_nan(a));
}

// Returns the positions along `axis` in sorted order, with the shape of x.
Buffer sorted_positions(ComputeBuilder& b, const Buffer& x, int64_t axis, bool descending) {
  const std::vector<Expr>& shape = buffer_type(x).shape;
  Expr n = shape[axis];
  Buffer order = b.buffer("order", kInt64, shape), merged = b.buffer("merged", kInt64, shape);
  b.block("merge_sort", without_item(shape, axis), {}, [&](Axes i, Axes) {
    auto position = [&](const Expr& along) { return with_new_item(i, axis, along); };
    auto local = [](const char* name) { return make_buffer(name, kInt64, {int_imm(1)}, "local"); };
    auto get = [](const Buffer& scalar) { return load(scalar, {int_imm(0)}); };
    auto set = [](const Buffer& scalar, const Expr& value) { return store(scalar, value, {int_imm(0)}); };
    Buffer width = local("width"), left = local("left"), right = local("right");
    VarRef fill = make_dim("fill"), run = make_dim("run"), k = make_dim("k"), copy = make_dim("copy");
    VarRef low = make_dim("low"), middle = make_dim("middle"), high = make_dim("high");
    VarRef a = make_dim("a"), c = make_dim("c"), from_right = make_var("from_right", prim_type(kBool));
    Expr last = n - 1;
    Stmt merge_one = seq({
        make(Bind{a, load(order, position(min(get(left), last)))}),
        make(Bind{c, load(order, position(min(get(right), last)))}),
        make(Bind{from_right, get(right) < high && (get(left) >= middle ||
                                                    precedes(load(x, position(c)), load(x, position(a)), descending))}),
        store(merged, select(from_right, c, a), position(low + k)),
        make(IfThenElse{from_right, set(right, get(right) + 1), set(left, get(left) + 1)}),
    });
    Stmt merge_run = seq({
        make(Bind{low, run * 2 * get(width)}),
        make(Bind{middle, min(low + get(width), n)}),
        make(Bind{high, min(low + get(width) * 2, n)}),
        set(left, low),
        set(right, middle),
        loop(k, high - low, merge_one),
    });
    Expr runs = floor_div(n + get(width) * 2 - 1, get(width) * 2);
    Stmt pass = seq({
        loop(run, runs, merge_run),
        loop(copy, n, store(order, load(merged, position(copy)), position(copy))),
        set(width, get(width) * 2),
    });
    Stmt body = seq({
        make(AllocBuffer{width, {}}),
        make(AllocBuffer{left, {}}),
        make(AllocBuffer{right, {}}),
        loop(fill, n, store(order, fill, position(fill))),
        set(width, int_imm(1)),
        make(While{get(width) < n, pass}),
    });
    return ComputeBuilder::Bodies{std::nullopt, body};
  });
  return order;
}
// sort, argsort and topk differ in how many elements they take and in which results they give. Each is a topk; a k
// below 1 stands for all elements.
TopKAttrs sort_attrs(const OpCall& op) {
  SortAttrs attrs = op.attrs<SortAttrs>();
  return {.k = 0, .axis = attrs.axis, .ret_type = "values", .largest = attrs.descending};
}
TopKAttrs argsort_attrs(const OpCall& op) {
  ArgsortAttrs attrs = op.attrs<ArgsortAttrs>();
  return {.k = 0, .axis = attrs.axis, .ret_type = "indices", .largest = attrs.descending, .dtype = attrs.dtype};
}
// topk has k as an attribute, and dyn.topk has it as an argument.
TopKAttrs topk_attrs(const OpCall& op) {
  TopKAttrs attrs = op.attrs<TopKAttrs>();
  if (op.size() > 1) attrs.dtype = op.attrs<DynamicTopKAttrs>().dtype;
  return attrs;
}
int64_t sorted_axis(const OpCall& op, const TopKAttrs& attrs) {
  if (op.rank(0) == 0) op.fail("expected at least one axis, got a scalar");
  return normalize_axis(op, attrs.axis, op.rank(0));
}
std::vector<Expr> sorted_shape(const OpCall& op, const TopKAttrs& attrs) {
  int64_t axis = sorted_axis(op, attrs);
  const Expr& dim = op.shape(0)[axis];
  if (op.size() > 1) require_scalar(op, 1);
  Expr k = op.size() > 1 ? op.arg(1) : attrs.k < 1 ? dim : int_imm(attrs.k);
  op.require_at_most(int_imm(0), k, "k is negative");
  op.require_at_most(k, dim, fmt::format("k is larger than axis {}", axis));
  return with_item(op.shape(0), axis, k);
}
template <TopKAttrs (*attrs_of)(const OpCall&)>
Type infer_sorted(const OpCall& op) {
  TopKAttrs attrs = attrs_of(op);
  std::vector<Expr> shape = sorted_shape(op, attrs);
  Type indices = tensor_type(shape, attrs.dtype);
  if (attrs.ret_type == "indices") return indices;
  Type values = tensor_type(shape, op.dtype(0));
  return attrs.ret_type == "values" ? values : tuple_type({values, indices});
}
template <TopKAttrs (*attrs_of)(const OpCall&)>
PrimFuncRef lower_sorted(const OpCall& op) {
  TopKAttrs attrs = attrs_of(op);
  int64_t axis = sorted_axis(op, attrs);
  std::vector<Expr> shape = sorted_shape(op, attrs);
  auto [b, x] = OpProgram(op);
  Buffer order = sorted_positions(b, x[0], axis, attrs.largest);
  auto value = [&](Axes i) { return load(x[0], with_item(i, axis, at(order, i))); };
  auto index = [&](Axes i) { return cast_to(at(order, i), attrs.dtype); };
  std::vector<Buffer> results;
  if (attrs.ret_type != "indices") results.push_back(b.compute("T_values", op.dtype(0), shape, value));
  if (attrs.ret_type != "values") results.push_back(b.compute("T_indices", attrs.dtype, shape, index));
  return b.finish(results);
}

// ---- References. A NaN is the largest value, and equal elements keep their order.

using reference::Tensors, reference::element, reference::moved, reference::with_position;
using Index = reference::Index;

bool comes_before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b)) return descending ? std::isnan(a) && !std::isnan(b) : !std::isnan(a);
  return descending ? a > b : a < b;
}
template <TopKAttrs (*attrs_of)(const OpCall&)>
Tensors in_order(const ReferenceCall& c) {
  Span nowhere;
  TopKAttrs attrs = attrs_of({c.call, nowhere});
  const Tensor& x = c.x[0];
  int64_t axis = attrs.axis < 0 ? attrs.axis + x.ndim() : attrs.axis;
  Index shape = x.shape();
  int64_t dim = std::exchange(shape[axis], attrs.k < 1 ? shape[axis] : attrs.k);
  auto position = [&](const Index& i) {
    Index order(static_cast<size_t>(dim));
    auto value = [&](int64_t p) { return element(x, with_position(i, axis, p)); };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](int64_t a, int64_t b) { return comes_before(value(a), value(b), attrs.largest); });
    return order[i[axis]];
  };
  Tensor values = moved(x, shape, [&](const Index& i) { return with_position(i, axis, position(i)); });
  if (attrs.ret_type == "values") return {values};
  Tensor indices = reference::tensor_of(shape, attrs.dtype, [&](const Index& i) { return position(i); });
  return attrs.ret_type == "indices" ? Tensors{indices} : Tensors{values, indices};
}

}  // namespace

std::vector<OpRow> sort_ops() {
  return {
      {.name = "relax.sort",
       .doc = "elements in order along an axis; stable, NaN last in ascending order",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<SortAttrs>(),
       .infer = infer_sorted<sort_attrs>,
       .legalize = lower_sorted<sort_attrs>,
       .reference = in_order<sort_attrs>},
      {.name = "relax.argsort",
       .doc = "the positions that sort an axis; stable",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<ArgsortAttrs>(),
       .infer = infer_sorted<argsort_attrs>,
       .infer_partial = infer_stated_dtype,
       .legalize = lower_sorted<argsort_attrs>,
       .reference = in_order<argsort_attrs>},
      {.name = "relax.topk",
       .doc = "the k largest (or smallest) elements of an axis in order, and their positions",
       .inputs = {{"data", "the tensor"}},
       .attrs = with_choices(op_attrs<TopKAttrs>(), "ret_type", {"both", "values", "indices"}),
       .infer = infer_sorted<topk_attrs>,
       .infer_partial = infer_unknown,
       .legalize = lower_sorted<topk_attrs>,
       .reference = in_order<topk_attrs>},
      {.name = "relax.dyn.topk",
       .doc = "topk of a k that may be symbolic",
       .inputs = {{"data", "the tensor"}, {"k", "int64 scalar"}},
       .attrs = op_attrs<DynamicTopKAttrs>(),
       .infer = infer_sorted<topk_attrs>,
       .infer_partial = infer_unknown,
       .legalize = lower_sorted<topk_attrs>},
  };
}

}  // namespace relaxc
