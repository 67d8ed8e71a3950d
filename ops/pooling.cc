// Pooling over one to three spatial dims: max, average, sum, Lp, adaptive average, and max with the positions.
#include <algorithm>
#include <functional>

#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/layouts.h"
#include "ops/ops.h"
#include "ops/window.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

struct PoolLayouts {
  Layout data, out;
  std::vector<Expr> plain_shape(const OpCall& op) const {
    if (op.rank(0) != data.rank()) op.fail("data has rank {}, expected {}", op.rank(0), data.rank());
    return data.to_plain(op.shape(0));
  }
};
template <int N, class A>
PoolLayouts layouts_of(const OpCall& op, const A& attrs) {
  return {read_layout(op, attrs.layout, data_layout_of(N), "layout"),
          result_layout(op, attrs.out_layout, attrs.layout, data_layout_of(N))};
}

// A checked call.
struct Pool {
  size_t spatial;
  std::vector<int64_t> size, strides, dilation;
  Padding padding;
  bool ceil_mode, partial_window;
  std::vector<Expr> in, result;  // [N, C, spatial...] of the data and of the result
  PoolLayouts layouts;           // the order of these dims in the tensors
  bool counts_padding = false;   // an average includes the padding
  // Returns the position in the padded data at which window `o` reads its k-th element of spatial dim d.
  Expr position(size_t d, const Expr& o, const Expr& k) const { return o * strides[d] + k * dilation[d]; }
  // Returns one past the last position that any window reads.
  Expr reach(size_t d) const { return (result[d + 2] - 1) * strides[d] + (dilation[d] * (size[d] - 1) + 1); }
  Type type(const OpCall& op) const { return tensor_type(dims_in(op, layouts.out, result), op.dtype(0)); }
  // Returns whether all windows lie inside the data.
  bool is_inside() const {
    for (size_t d = 0; (ceil_mode || partial_window) && d < spatial; ++d) {
      auto known = as_int(reach(d)), extent = as_int(in[d + 2]);
      if (!known || !extent || *known > *extent) return false;
    }
    return !padding.any();
  }
};

// Returns the number of windows with ceil_mode, where the last one starts inside the data or the padding before it.
Expr ceil_count(const OpCall& op, const Expr& extent, int64_t before, int64_t after, int64_t size, int64_t stride,
                int64_t dilation) {
  int64_t window = dilation * (size - 1) + 1;
  auto known = as_int(extent);
  if (known && stride <= window - (*known + before + after))
    op.fail("the window of {} is larger than the padded input of {}", window, *known + before + after);
  Expr windows = floor_div(extent + (before + after - window + 2 * stride - 1), stride);
  return min(windows, floor_div(extent + (before + stride - 1), stride));
}

// Returns the number of windows without ceil_mode where data that is smaller than the window by less than a stride has
// one: ONNX Runtime's division rounds towards zero, so small images pass through many pools.
Expr partial_count(const OpCall& op, const Expr& extent, int64_t padding, int64_t size, int64_t stride,
                   int64_t dilation) {
  int64_t whole = dilation * (size - 1) + 1 - padding, least = std::max<int64_t>(whole - stride + 1, 1);
  if (least >= whole) return window_count(op, extent, padding, int_imm(size), stride, dilation);
  op.require_at_most(int_imm(least), extent, "size of the data and the least that has a window");
  return max(floor_div(extent + (stride - whole), stride), int_imm(1));
}

template <class A>
Pool check_pool(const OpCall& op, const A& attrs, const PoolLayouts& layouts) {
  std::vector<Expr> shape = layouts.plain_shape(op);
  if (shape.size() < 3) op.fail("data has rank {}, expected at least 3", shape.size());
  size_t n = shape.size() - 2;
  kNumbers.check(op, op.dtype(0));
  Pool pool{.spatial = n,
            .size = per_dim(op, attrs.pool_size, n, "pool_size", 1),
            .strides = per_dim(op, attrs.strides, n, "strides", 1),
            .dilation = per_dim(op, attrs.dilation, n, "dilation", 1),
            .padding = read_padding(op, attrs.padding, n),
            .ceil_mode = attrs.ceil_mode,
            .partial_window = attrs.partial_window,
            .in = shape,
            .result = {shape[0], shape[1]},
            .layouts = layouts};
  for (size_t d = 0; d < n; ++d) {
    int64_t before = pool.padding.before[d], after = pool.padding.after[d];
    int64_t size = pool.size[d], stride = pool.strides[d], dilation = pool.dilation[d];
    Expr extent = shape[d + 2];
    pool.result.push_back(pool.ceil_mode ? ceil_count(op, extent, before, after, size, stride, dilation)
                          : pool.partial_window
                              ? partial_count(op, extent, before + after, size, stride, dilation)
                              : window_count(op, extent, before + after, int_imm(size), stride, dilation));
  }
  return pool;
}
// Checks a call whose data is [N, C, spatial...].
template <class A>
Pool check_plain_pool(const OpCall& op) {
  const Layout plain = Layout::of_rank(op.shape(0).size());
  return check_pool(op, op.attrs<A>(), {plain, plain});
}
template <int N>
Pool check_window_pool(const OpCall& op) {
  auto attrs = op.attrs<PoolAttrs<N>>();
  Pool pool = check_pool(op, attrs, layouts_of<N>(op, attrs));
  pool.counts_padding = attrs.count_include_pad;
  return pool;
}

template <int N, class A>
Type infer_partial_pool(const OpCall& op) {
  return tensor_type_of_rank(layouts_of<N>(op, op.attrs<A>()).out.rank(), op.first_dtype());
}

// Returns whether windows are folded along their last dim after the others, so that neighbouring windows share what
// they have in common. It costs the fold of columns that lie between windows, and a border of its own, which takes
// longer where sizes are not known. Elements that lie apart take a vector twice as long as neighbours do.
bool folds_columns_apart(const Pool& pool) {
  constexpr int kFewestWindows = 20;  // in a row: those of fewer leave much of two vectors empty
  if (!pool.layouts.data.is_plain() || !pool.layouts.out.is_plain()) return false;
  double rows = 1;
  bool is_known = as_int(pool.in.back()).has_value();
  for (size_t d = 0; d + 1 < pool.spatial; ++d) {
    rows *= static_cast<double>(pool.size[d]);
    is_known = is_known && as_int(pool.in[d + 2]);
  }
  const auto columns = static_cast<double>(pool.size.back()), stride = static_cast<double>(pool.strides.back());
  const double cost = stride > 1 ? 2 : 1, together = rows * columns * cost, apart = stride * rows + columns * cost;
  if (!is_known) return 2 * apart <= together;
  return 4 * apart < 3 * together && *as_int(pool.result.back()) >= kFewestWindows;
}

// Pads the data wherever windows read outside of it, then folds each window. The result is in its layout.
Buffer window_fold(
    ComputeBuilder& b, const OpCall& op, const Pool& pool, const char* name, DType dtype, Expr (*neutral)(DType),
    const ComputeBuilder::Combine& combine,
    const std::function<Expr(const Expr&)>& value = [](const Expr& element) { return element; }) {
  Buffer source = b.inputs_of(op)[0];
  std::vector<Expr> dims = pool.in;
  // Folds windows along `count` dims from the first one given.
  auto fold = [&](const char* stage, size_t first, size_t count, auto value_of) {
    if (!pool.is_inside()) {
      std::vector<int64_t> before(pool.spatial);
      for (size_t d = first; d < first + count; ++d) {
        dims[d + 2] = pool.reach(d);
        before[d] = pool.padding.before[d];
      }
      source = pad_stage(b, op, source, pool.layouts.data, before, dims, neutral(buffer_type(source).dtype));
    }
    for (size_t d = first; d < first + count; ++d) dims[d + 2] = pool.result[d + 2];
    std::vector<Expr> result = dims_in(op, pool.layouts.out, dims);
    const auto size = pool.size.begin() + static_cast<long>(first);
    const std::vector<int64_t> sizes(size, size + static_cast<long>(count));
    return b.reduce(stage, dtype, result, int_imms(sizes), neutral(dtype), combine, [&](Axes axes, Axes r) {
      std::vector<Expr> indices = pool.layouts.out.to_plain_index(axes);
      for (size_t d = first; d < first + count; ++d) indices[d + 2] = pool.position(d, indices[d + 2], r[d - first]);
      indices = pool.layouts.data.from_plain_index(indices, facts_of_axes(axes, result));
      return value_of(cast_to(load(source, indices), dtype));
    });
  };
  if (!folds_columns_apart(pool)) return fold(name, 0, pool.spatial, value);
  source = fold("pool_rows", 0, pool.spatial - 1, value);
  return fold(name, pool.spatial - 1, 1, std::identity());
}

PrimFuncRef lower_max_pool(const OpCall& op, const Pool& pool) {
  ComputeBuilder b;
  return b.finish({window_fold(b, op, pool, "pool_max", op.dtype(0), lowest, combine_max)});
}

// Returns how many positions of window `o` along dim d count: those in the data, or those in the data and its padding.
Expr counted_positions(const Pool& pool, size_t d, const Expr& o) {
  bool padded = pool.counts_padding;
  int64_t before = pool.padding.before[d], after = pool.padding.after[d];
  Expr start = o * pool.strides[d];
  Expr end = pool.in[d + 2] + (padded ? before + after : before);
  Expr first = padded ? int_imm(0) : max(ceil_div(int_imm(before) - start, pool.dilation[d]), int_imm(0));
  Expr last = min(ceil_div(end - start, pool.dilation[d]), int_imm(pool.size[d]));
  return max(last - first, int_imm(0));
}
// Makes the stage of the sums divided by the number of elements in each window, the product of its count along each
// dim. Vectors have no products of integers of 64 bits.
Buffer average(ComputeBuilder& b, const OpCall& op, const char* name, const Buffer& sum, const Layout& out,
               size_t spatial, const std::function<Expr(size_t d, Axes i)>& count_along) {
  return b.compute(name, op.dtype(0), buffer_type(sum).shape, [&](Axes axes) {
    const DType dtype = buffer_type(sum).dtype;
    Expr constant = int_imm(1), count = scalar_imm(1, dtype);
    for (size_t d = 0; d < spatial; ++d) {
      Expr along = max(count_along(d, out.to_plain_index(axes)), int_imm(1));
      if (!as_int(along)) count = count * cast_to(dtype.is_float() ? cast_to(along, kInt32) : along, dtype);
      if (as_int(along)) constant = constant * along;
    }
    count = count * scalar_imm(static_cast<double>(*as_int(simplify(constant))), dtype);
    return cast_to(binary(BinaryOp::kDiv, at(sum, axes), simplify(count)), op.dtype(0));
  });
}
PrimFuncRef lower_avg_pool(const OpCall& op, const Pool& pool) {
  ComputeBuilder b;
  Buffer sum = window_fold(b, op, pool, "pool_sum", accumulation_dtype(op.dtype(0)), zero, combine_sum);
  bool is_constant = pool.is_inside() || (pool.counts_padding && !pool.ceil_mode && !pool.partial_window);
  return b.finish({average(b, op, "pool_avg", sum, pool.layouts.out, pool.spatial, [&](size_t d, Axes i) {
    return is_constant ? int_imm(pool.size[d]) : counted_positions(pool, d, i[d + 2]);
  })});
}

// Sums of bytes are int32.
DType dtype_of_sums(DType data) { return data.is_integral() && data.bits < 32 ? kInt32 : data; }
template <int N>
OpRow sum_pool(const OpRow& avg_pool) {
  OpRow row = avg_pool;
  row.name = fmt::format("relax.nn.sum_pool{}d", N);
  row.doc = "sum of each window, int32 of shorter integers; padding counts as 0";
  row.infer = [](const OpCall& op) {
    const Pool pool = check_window_pool<N>(op);
    return tensor_type(dims_in(op, pool.layouts.out, pool.result), dtype_of_sums(op.dtype(0)));
  };
  row.infer_partial = [](const OpCall& op) {
    const auto layouts = layouts_of<N>(op, op.attrs<PoolAttrs<N>>());
    const std::optional<DType> data = op.first_dtype();
    return tensor_type_of_rank(layouts.out.rank(), data ? std::optional(dtype_of_sums(*data)) : data);
  };
  row.legalize = [](const OpCall& op) {
    const Pool pool = check_window_pool<N>(op);
    const DType result = dtype_of_sums(op.dtype(0));
    ComputeBuilder b;
    Buffer sum = window_fold(b, op, pool, "pool_sum", accumulation_dtype(result), zero, combine_sum);
    return b.finish({as_dtype(b, sum, result, "pool_sum_cast")});
  };
  row.decompose = {};
  return row;
}

template <class A>
std::vector<OpAttr> pool_attrs() {
  return with_extension(with_default_from(op_attrs<A>(), "out_layout", "layout"), "partial_window");
}
template <int N>
OpRow window_pool(const char* name, const char* doc, PrimFuncRef (*lower)(const OpCall&, const Pool&)) {
  return {.name = fmt::format("relax.nn.{}_pool{}d", name, N),
          .doc = doc,
          .inputs = {{"data", "tensor [N, C, ...]"}},
          .attrs = pool_attrs<PoolAttrs<N>>(),
          .pattern = OpPattern::kAnchor,
          .infer = [](const OpCall& op) { return check_window_pool<N>(op).type(op); },
          .infer_partial = infer_partial_pool<N, PoolAttrs<N>>,
          .legalize = [=](const OpCall& op) { return lower(op, check_window_pool<N>(op)); },
          .layouts = layout_of_windows};
}

Type infer_lp_pool(const OpCall& op) {
  LpPoolAttrs attrs = op.attrs<LpPoolAttrs>();
  kFloats.check(op, op.dtype(0));
  if (attrs.p < 1) op.fail("p is {}, expected at least 1", attrs.p);
  return tensor_type(check_plain_pool<LpPoolAttrs>(op).result, op.dtype(0));
}
PrimFuncRef lower_lp_pool(const OpCall& op) {
  int64_t p = op.attrs<LpPoolAttrs>().p;
  Pool pool = check_plain_pool<LpPoolAttrs>(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  auto power = [&](const Expr& base, double exponent) {
    return intrinsic("tir.pow", {base, scalar_imm(exponent, dtype)}, dtype);
  };
  ComputeBuilder b;
  Buffer sum = window_fold(b, op, pool, "pool_sum", dtype, zero, combine_sum, [&](const Expr& element) {
    if (p == 2) return element * element;
    Expr magnitude = intrinsic(ops::kScalarAbs, {element}, dtype);
    return p == 1 ? magnitude : power(magnitude, static_cast<double>(p));
  });
  return b.finish({b.compute("pool_lp", op.dtype(0), pool.result, [&](Axes i) {
    Expr root = at(sum, i);
    if (p == 2) root = intrinsic(ops::kScalarSqrt, {root}, dtype);
    if (p > 2) root = power(root, 1.0 / static_cast<double>(p));
    return cast_to(root, op.dtype(0));
  })});
}

Type infer_max_pool_with_indices(const OpCall& op) {
  std::vector<Expr> result = check_plain_pool<IndexedPoolAttrs>(op).result;
  return tuple_type({tensor_type(result, op.dtype(0)), tensor_type(result, kInt64)});
}
// Returns the position of an element of the data, whose indices are in the plain order, in the flattened data.
Expr plain_position(const Pool& pool, Axes indices, bool is_column_major = false) {
  std::vector<Expr> where(indices.begin() + 2, indices.end()), dims(pool.in.begin() + 2, pool.in.end());
  if (is_column_major) {
    std::ranges::reverse(where);
    std::ranges::reverse(dims);
  }
  return (indices[0] * pool.in[1] + indices[1]) * product(dims) + flatten_index(where, dims);
}
// Makes the stage of the largest element of each window, the first one among equals, and of its position; -1 for a
// window without elements. The windows are in the plain order.
struct WindowMaxima {
  Buffer best, index;
};
WindowMaxima window_maxima(ComputeBuilder& b, const Buffer& data, const Pool& pool, bool is_column_major) {
  DType dtype = buffer_type(data).dtype;
  Buffer best = b.buffer("pool_max", dtype, pool.result), index = b.buffer("pool_index", kInt64, pool.result);
  b.block("pool_max_with_indices", pool.result, int_imms(pool.size), [&](Axes i, Axes r) {
    std::vector<Expr> indices = {i[0], i[1]};
    Expr inside = bool_imm(true);
    for (size_t d = 0; d < pool.spatial; ++d) {
      indices.push_back(pool.position(d, i[d + 2], r[d]) - pool.padding.before[d]);
      if (!pool.is_inside()) inside = inside && indices.back() >= int_imm(0) && indices.back() < pool.in[d + 2];
    }
    Expr position = plain_position(pool, indices, is_column_major);
    Expr value = load(data, pool.layouts.data.from_plain_index(indices, facts_of_axes(i, pool.result)));
    value = if_then_else(inside, value, lowest(dtype));
    Expr old = at(best, i);
    VarRef replace = make_var("replace", prim_type(kBool)), element = make_var("element", prim_type(dtype));
    Expr wins = element > old || at(index, i) < int_imm(0);
    if (dtype.is_float()) wins = wins || (not_equal(element, element) && equal(old, old));
    // `wins` reads both buffers, so it is bound before either is written.
    Stmt body =
        seq({make(Bind{element, value}), make(Bind{replace, inside && wins}),
             store(index, select(replace, position, at(index, i)), i), store(best, select(replace, element, old), i)});
    return ComputeBuilder::Bodies{seq({store(index, int_imm(-1), i), store(best, lowest(dtype), i)}), body};
  });
  return {best, index};
}
PrimFuncRef lower_max_pool_with_indices(const OpCall& op) {
  Pool pool = check_plain_pool<IndexedPoolAttrs>(op);
  auto [b, x] = OpProgram(op);
  auto [best, index] = window_maxima(b, x[0], pool, op.attrs<IndexedPoolAttrs>().storage_order == 1);
  return b.finish({best, index});
}

// ---- Gradients of the pools; Relax has those of 2D. Argument 0 is the gradient of the result, argument 1 the data.

template <int N>
Pool forward_pool(const OpCall& op) {
  Call forward = op.call;
  forward.args = {op.arg(1)};
  return check_window_pool<N>(OpCall{forward, op.span, op.checks});
}
Type infer_pool_backward(const OpCall& op, const Pool& pool) {
  kFloats.check(op, op.dtype(1));
  require_same_dtype(op, 0, 1);
  std::vector<Expr> expected = dims_in(op, pool.layouts.out, pool.result);
  require_rank(op, 0, std::ssize(expected));
  require_same_dims(op, op.shape(0), expected, "of output_grad and of the pool's result");
  return tensor_type(op.shape(1), op.dtype(1));
}
// Each element sums what the windows that it lies in give it: all of a window's gradient where it is the maximum, or
// its part of the average. So the elements are computed independently.
PrimFuncRef lower_pool_backward(const OpCall& op, const Pool& pool, bool is_max) {
  auto [b, x] = OpProgram(op);
  const Buffer gradients = x[0];
  DType dtype = accumulation_dtype(op.dtype(1));
  std::optional<Buffer> maxima;
  if (is_max) maxima = window_maxima(b, x[1], pool, false).index;
  Buffer sum = b.reduce(
      "T_pool_backward", dtype, op.shape(1), int_imms(pool.size), zero(dtype), combine_sum, [&](Axes axes, Axes r) {
        std::vector<Expr> i = pool.layouts.data.to_plain_index(axes), window = {i[0], i[1]};
        Expr is_window = bool_imm(true), count = int_imm(1);
        for (size_t d = 0; d < pool.spatial; ++d) {
          Expr distance = i[d + 2] + pool.padding.before[d] - r[d] * pool.dilation[d];
          window.push_back(floor_div(distance, pool.strides[d]));
          is_window = is_window && int_imm(0) <= distance && window.back() < pool.result[d + 2];
          if (pool.strides[d] > 1) is_window = is_window && equal(floor_mod(distance, pool.strides[d]), int_imm(0));
          count = count * counted_positions(pool, d, window.back());
        }
        Expr gradient = cast_to(load(gradients, pool.layouts.out.from_plain_index(window, Analyzer())), dtype);
        Expr part = maxima ? if_then_else(equal(load(*maxima, window), plain_position(pool, i)), gradient, zero(dtype))
                           : divide_by_count(gradient, max(count, int_imm(1)));
        return if_then_else(is_window, part, zero(dtype));
      });
  return b.finish({as_dtype(b, sum, op.dtype(1), "T_pool_backward_cast")});
}
template <int N>
void add_pool_gradients(std::vector<OpRow>& rows) {
  for (bool is_max : {true, false}) {
    const std::string pool = fmt::format("{}_pool{}d", is_max ? "max" : "avg", N);
    const char* ties = is_max ? "; of equal elements the first one gets it" : "";
    rows.push_back(
        {.name = fmt::format("relax.grad.{}_backward", pool),
         .doc = fmt::format("gradient of {} with respect to the data{}", pool, ties),
         .inputs = {{"output_grad", "gradient of the result"}, {"data", "tensor [N, C, ...]"}},
         .attrs = pool_attrs<PoolAttrs<N>>(),
         .infer = [](const OpCall& op) { return infer_pool_backward(op, forward_pool<N>(op)); },
         .infer_partial = [](const OpCall& op) { return infer_same_rank(op, 1, tensor_dtype(op.arg(1).type())); },
         .legalize = [=](const OpCall& op) { return lower_pool_backward(op, forward_pool<N>(op), is_max); }});
  }
}

// A checked call of an adaptive pool. Window o of a dim covers [o * in / out, ceil((o + 1) * in / out)).
struct AdaptivePool {
  std::vector<Expr> in, out;  // [N, C, spatial...]
  PoolLayouts layouts;
  Expr start(size_t d, Axes i) const { return floor_div(i[d] * in[d], out[d]); }
  Expr end(size_t d, Axes i) const { return floor_div((i[d] + 1) * in[d] + out[d] - 1, out[d]); }
  Type type(const OpCall& op) const { return tensor_type(dims_in(op, layouts.out, out), op.dtype(0)); }
  // Returns the size of the windows of a dim when all have the same; they are then read without a guard.
  std::optional<Expr> window(size_t d) const {
    if (same_node(in[d], out[d])) return int_imm(1);
    auto extent = as_int(in[d]), windows = as_int(out[d]);
    bool is_even = is_int(out[d], 1) || (extent && windows && exact_div(*extent, *windows));
    return is_even ? std::optional(floor_div(in[d], out[d])) : std::nullopt;
  }
};
template <int N>
AdaptivePool check_adaptive(const OpCall& op) {
  kNumbers.check(op, op.dtype(0));
  auto attrs = op.attrs<AdaptiveAttrs<N>>();
  PoolLayouts layouts = layouts_of<N>(op, attrs);
  std::vector<Expr> in = layouts.plain_shape(op), out = in;
  if (!attrs.output_size) return {in, out, layouts};
  std::vector<int64_t> size = per_dim(op, *attrs.output_size, N, "output_size", 1);
  for (size_t d = 0; d < N; ++d) out[d + 2] = int_imm(size[d]);
  return {in, out, layouts};
}
PrimFuncRef lower_adaptive(const OpCall& op, const AdaptivePool& pool) {
  const Layout &data = pool.layouts.data, &out = pool.layouts.out;
  std::vector<Expr> result = dims_in(op, out, pool.out), extents;
  for (size_t d = 2; d < pool.in.size(); ++d)
    extents.push_back(pool.window(d).value_or(floor_div(pool.in[d], pool.out[d]) + 2));
  auto [b, x] = OpProgram(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  auto element = [&](Axes axes, Axes r) {
    std::vector<Expr> i = out.to_plain_index(axes), indices = {i[0], i[1]};
    Expr inside = bool_imm(true);
    for (size_t d = 2; d < pool.in.size(); ++d) {
      bool is_even = pool.window(d).has_value();
      indices.push_back((is_even ? i[d] * extents[d - 2] : pool.start(d, i)) + r[d - 2]);
      if (!is_even) inside = inside && indices[d] < pool.end(d, i);
    }
    indices = data.from_plain_index(indices, facts_of_axes(axes, result));
    return if_then_else(inside, cast_to(load(x[0], indices), dtype), zero(dtype));
  };
  Buffer sum = b.reduce("adaptive_pool_sum", dtype, result, extents, zero(dtype), combine_sum, element);
  return b.finish({average(b, op, "adaptive_pool_avg", sum, out, extents.size(), [&](size_t d, Axes i) {
    return pool.window(d + 2).value_or(pool.end(d + 2, i) - pool.start(d + 2, i));
  })});
}
template <int N>
OpRow adaptive_avg_pool() {
  std::vector<OpAttr> attrs = with_default_from(op_attrs<AdaptiveAttrs<N>>(), "out_layout", "layout");
  attr_of(attrs, "output_size").items = N;
  return {.name = fmt::format("relax.nn.adaptive_avg_pool{}d", N),
          .doc = "mean over windows that divide the data into output_size parts; 1 gives the global mean",
          .inputs = {{"data", "tensor [N, C, ...]"}},
          .attrs = attrs,
          .pattern = OpPattern::kAnchor,
          .infer = [](const OpCall& op) { return check_adaptive<N>(op).type(op); },
          .infer_partial = infer_partial_pool<N, AdaptiveAttrs<N>>,
          .legalize = [](const OpCall& op) { return lower_adaptive(op, check_adaptive<N>(op)); },
          .layouts = layout_of_windows};
}

// The largest element of a window is that of its rows' largest ones, which neighbouring windows share. So is the mean
// that of its rows' means, as the positions that count are a number of rows times a number of columns. Takes one dim
// after the other, the last one first, where that takes less than half as many operations; and the first one first,
// which vectors do, where windows lie so far apart on the last one that no vector can be picked from their elements.
template <int N>
Expr decompose_pool(const OpCall& op, Builder& b) {
  check_window_pool<N>(op);
  const auto attrs = op.attrs<PoolAttrs<N>>();
  int64_t together = 1, apart = 0, shared = 1;  // operations for each result
  std::vector<size_t> dims;
  for (size_t d = 0; d < N; ++d) {
    together *= attrs.pool_size[d];
    apart += attrs.pool_size[d] * shared;
    shared *= attrs.strides[d];
    if (attrs.pool_size[d] > 1) dims.insert(dims.begin(), d);
  }
  constexpr int64_t kMostPicked = 4;  // steps between the lanes of a vector
  const bool is_apart = attrs.strides[N - 1] > kMostPicked && attrs.layout == data_layout_of(N);
  if (is_apart) std::ranges::reverse(dims);
  if (dims.size() < 2 || (together <= 2 * apart && !is_apart)) return b.op(op.name(), op.call.args, attrs);
  Expr result = op.arg(0);
  for (size_t d : dims) {
    PoolAttrs<N> one{.ceil_mode = attrs.ceil_mode,
                     .count_include_pad = attrs.count_include_pad,
                     .layout = attrs.layout,
                     .partial_window = attrs.partial_window};
    if (d == dims.back()) one = attrs;
    for (size_t e = 0; e < N; ++e) {
      bool is_own = e == d || (d == dims.back() && attrs.pool_size[e] == 1);
      one.pool_size[e] = e == d ? attrs.pool_size[e] : 1;
      one.strides[e] = is_own ? attrs.strides[e] : 1;
      one.dilation[e] = is_own ? attrs.dilation[e] : 1;
      for (size_t side : {e, e + N}) one.padding[side] = is_own ? attrs.padding[side] : 0;
    }
    result = b.op(op.name(), {result}, one);
  }
  return result;
}

template <int N>
void add_pools(std::vector<OpRow>& rows) {
  rows.push_back(window_pool<N>("max", "largest element of each window; padding never wins", lower_max_pool));
  rows.back().decompose = decompose_pool<N>;
  rows.push_back(window_pool<N>(
      "avg", "mean of each window; padding counts with count_include_pad, and positions beyond it (ceil_mode) never do",
      lower_avg_pool));
  rows.push_back(sum_pool<N>(rows.back()));
  // The means of rows would be rounded to shorter types.
  rows[rows.size() - 2].decompose = [](const OpCall& op, Builder& b) {
    bool is_exact = op.dtype(0) == kFloat32 || op.dtype(0) == kFloat64;
    return is_exact ? decompose_pool<N>(op, b) : b.op(op.name(), op.call.args, op.attrs<PoolAttrs<N>>());
  };
  rows.push_back(adaptive_avg_pool<N>());
  add_pool_gradients<N>(rows);
}

}  // namespace

std::vector<OpRow> pooling_ops() {
  std::vector<OpRow> rows = {
      {.name = "relax.nn.lp_pool",
       .doc = "p-norm of each window, (sum |x|^p)^(1/p); any number of spatial dims",
       .inputs = {{"data", "tensor [N, C, ...]"}},
       .attrs = with_extension(op_attrs<LpPoolAttrs>(), "partial_window"),
       .pattern = OpPattern::kAnchor,
       .infer = infer_lp_pool,
       .legalize = lower_lp_pool},
      {.name = "relax.nn.max_pool_with_indices",
       .doc = "max pool and, as ONNX's second output, each maximum's position (int64) in the flattened data",
       .inputs = {{"data", "tensor [N, C, ...]"}},
       .attrs = with_extension(op_attrs<IndexedPoolAttrs>(), "partial_window"),
       .infer = infer_max_pool_with_indices,
       .infer_partial =
           [](const OpCall& op) { return tuple_type({infer_unranked(op.first_dtype()), infer_unranked(kInt64)}); },
       .legalize = lower_max_pool_with_indices},
  };
  add_pools<1>(rows);
  add_pools<2>(rows);
  add_pools<3>(rows);
  return rows;
}

}  // namespace relaxc
