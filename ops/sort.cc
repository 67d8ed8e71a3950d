// Sorts along an axis. A bottom-up merge sort of positions (stable; n log n; scratch of two int64 per element) gives
// the positions from which sort, argsort and topk take their results. NaN sorts as the largest value, as in numpy.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace relaxc {

namespace {

Expr is_nan(const Expr& x) { return intrinsic("tir.isnan", {x}, kBool); }
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
  std::vector<Expr> outer = shape;
  outer.erase(outer.begin() + axis);
  b.block("merge_sort", outer, {}, [&](Axes i, Axes) {
    auto position = [&](const Expr& along) {
      std::vector<Expr> indices = i;
      indices.insert(indices.begin() + axis, along);
      return indices;
    };
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
Buffer values_at(ComputeBuilder& b, const char* name, const Buffer& x, const Buffer& order, int64_t axis,
                 const std::vector<Expr>& shape) {
  return b.compute(name, buffer_type(x).dtype, shape, [&](Axes i) {
    std::vector<Expr> source = i;
    source[axis] = at(order, i);
    return load(x, source);
  });
}
Buffer positions_as(ComputeBuilder& b, const char* name, const Buffer& order, DType dtype,
                    const std::vector<Expr>& shape) {
  return b.compute(name, dtype, shape, [&](Axes i) { return cast_to(at(order, i), dtype); });
}
int64_t checked_axis(const OpCall& op, int64_t axis) {
  if (op.rank(0) == 0) op.fail("expected at least one axis, got a scalar");
  return normalize_axis(op, axis, op.rank(0));
}

Type infer_sort(const OpCall& op) {
  checked_axis(op, op.attrs<SortAttrs>().axis);
  return infer_like_first(op);
}
PrimFuncRef lower_sort(const OpCall& op) {
  SortAttrs attrs = op.attrs<SortAttrs>();
  int64_t axis = checked_axis(op, attrs.axis);
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  Buffer order = sorted_positions(b, x, axis, attrs.descending);
  return b.finish({values_at(b, "T_sort", x, order, axis, op.shape(0))});
}
Type infer_argsort(const OpCall& op) {
  ArgsortAttrs attrs = op.attrs<ArgsortAttrs>();
  checked_axis(op, attrs.axis);
  return tensor_type(op.shape(0), attrs.dtype);
}
PrimFuncRef lower_argsort(const OpCall& op) {
  ArgsortAttrs attrs = op.attrs<ArgsortAttrs>();
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  Buffer order = sorted_positions(b, x, checked_axis(op, attrs.axis), attrs.descending);
  return b.finish({positions_as(b, "T_argsort", order, attrs.dtype, op.shape(0))});
}

// topk has k as an attribute, of which a value below 1 stands for all; dyn.topk has it as an argument.
TopKAttrs topk_attrs(const OpCall& op) {
  TopKAttrs attrs = op.attrs<TopKAttrs>();
  if (op.size() > 1) attrs.dtype = op.attrs<DynamicTopKAttrs>().dtype;
  return attrs;
}
std::vector<Expr> topk_shape(const OpCall& op, const TopKAttrs& attrs) {
  int64_t axis = checked_axis(op, attrs.axis);
  std::vector<Expr> shape = op.shape(0);
  if (op.size() > 1) require_scalar(op, 1);
  Expr k = op.size() > 1 ? op.arg(1) : attrs.k < 1 ? shape[axis] : int_imm(attrs.k);
  op.require_at_most(int_imm(0), k, "k is negative");
  op.require_at_most(k, shape[axis], fmt::format("k is larger than axis {}", axis));
  shape[axis] = k;
  return shape;
}
Type infer_topk(const OpCall& op) {
  TopKAttrs attrs = topk_attrs(op);
  std::vector<Expr> shape = topk_shape(op, attrs);
  Type values = tensor_type(shape, op.dtype(0)), indices = tensor_type(shape, attrs.dtype);
  return attrs.ret_type == "both" ? tuple_type({values, indices}) : attrs.ret_type == "values" ? values : indices;
}
PrimFuncRef lower_topk(const OpCall& op) {
  TopKAttrs attrs = topk_attrs(op);
  int64_t axis = checked_axis(op, attrs.axis);
  std::vector<Expr> shape = topk_shape(op, attrs);
  ComputeBuilder b;
  Buffer x = b.inputs_of(op)[0];
  Buffer order = sorted_positions(b, x, axis, attrs.largest);
  std::vector<Buffer> results;
  if (attrs.ret_type != "indices") results.push_back(values_at(b, "T_values", x, order, axis, shape));
  if (attrs.ret_type != "values") results.push_back(positions_as(b, "T_indices", order, attrs.dtype, shape));
  return b.finish(results);
}

}  // namespace

std::vector<OpRow> sort_ops() {
  return {
      {.name = "relax.sort",
       .doc = "elements in order along an axis; stable, NaN last in ascending order",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<SortAttrs>(),
       .infer = infer_sort,
       .legalize = lower_sort},
      {.name = "relax.argsort",
       .doc = "the positions that sort an axis; stable",
       .inputs = {{"data", "the tensor"}},
       .attrs = op_attrs<ArgsortAttrs>(),
       .infer = infer_argsort,
       .infer_partial = [](const OpCall& op) { return infer_unranked(op.attrs<ArgsortAttrs>().dtype); },
       .legalize = lower_argsort},
      {.name = "relax.topk",
       .doc = "the k largest (or smallest) elements of an axis in order, and their positions",
       .inputs = {{"data", "the tensor"}},
       .attrs = with_choices(op_attrs<TopKAttrs>(), "ret_type", {"both", "values", "indices"}),
       .infer = infer_topk,
       .infer_partial = infer_unknown,
       .legalize = lower_topk},
      {.name = "relax.dyn.topk",
       .doc = "topk of a k that may be symbolic",
       .inputs = {{"data", "the tensor"}, {"k", "int64 scalar"}},
       .attrs = op_attrs<DynamicTopKAttrs>(),
       .infer = infer_topk,
       .infer_partial = infer_unknown,
       .legalize = lower_topk},
  };
}

}  // namespace relaxc
