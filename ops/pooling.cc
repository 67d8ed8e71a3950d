// Pooling over one to three spatial dims: max, average, Lp, adaptive average, and max with the positions.
#include <algorithm>

#include "ops/attributes.h"
#include "ops/ops.h"
#include "ops/window.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

// A checked call.
struct Pool {
  size_t spatial;
  std::vector<int64_t> size, strides, dilation;
  Padding padding;
  bool ceil_mode;
  std::vector<Expr> in, out;       // spatial dims
  std::vector<Expr> result;        // [N, C, spatial...]
  Layout data_layout, out_layout;  // where these dims are
  std::vector<Expr> kernel() const {
    std::vector<Expr> dims;
    for (int64_t extent : size) dims.push_back(int_imm(extent));
    return dims;
  }
  // Returns the position in the padded data at which window `o` reads its k-th element of spatial dim d.
  Expr position(size_t d, const Expr& o, const Expr& k) const { return o * strides[d] + k * dilation[d]; }
  // Returns one past the last position that any window reads.
  Expr reach(size_t d) const { return (out[d] - 1) * strides[d] + (dilation[d] * (size[d] - 1) + 1); }
  // Returns whether all windows lie inside the data.
  bool is_inside() const {
    for (size_t d = 0; ceil_mode && d < spatial; ++d) {
      auto known = as_int(reach(d)), extent = as_int(in[d]);
      if (!known || !extent || *known > *extent) return false;
    }
    return !padding.any();
  }
};

// Returns the count with ceil_mode, where the last window starts inside the data or the padding before it.
Expr ceil_count(const OpCall& op, const Expr& extent, int64_t before, int64_t after, int64_t size, int64_t stride,
                int64_t dilation) {
  int64_t window = dilation * (size - 1) + 1;
  if (auto known = as_int(extent); known && *known + before + after < window) {
    if (stride <= window - (*known + before + after))
      op.fail("the window of {} is larger than the padded input of {}", window, *known + before + after);
  }
  Expr windows = floor_div(extent + (before + after - window + 2 * stride - 1), stride);
  return min(windows, floor_div(extent + (before + stride - 1), stride));
}

// `shape` is that of the data, [N, C, spatial...].
template <class A>
Pool check_pool(const OpCall& op, const A& attrs, const std::vector<Expr>& shape) {
  if (shape.size() < 3) op.fail("data has rank {}, expected at least 3", shape.size());
  size_t n = shape.size() - 2;
  if (op.dtype(0).is_bool()) op.fail("expected a number, got bool");
  Pool pool{.spatial = n,
            .size = per_dim(op, attrs.pool_size, n, "pool_size", 1),
            .strides = per_dim(op, attrs.strides, n, "strides", 1),
            .dilation = per_dim(op, attrs.dilation, n, "dilation", 1),
            .padding = read_padding(op, attrs.padding, n),
            .ceil_mode = attrs.ceil_mode,
            .in = {shape.begin() + 2, shape.end()},
            .out = {},
            .result = {shape[0], shape[1]},
            .data_layout = Layout(n + 2),
            .out_layout = Layout(n + 2)};
  for (size_t d = 0; d < n; ++d) {
    int64_t before = pool.padding.before[d], after = pool.padding.after[d];
    pool.out.push_back(
        pool.ceil_mode
            ? ceil_count(op, pool.in[d], before, after, pool.size[d], pool.strides[d], pool.dilation[d])
            : window_count(op, pool.in[d], before + after, int_imm(pool.size[d]), pool.strides[d], pool.dilation[d]));
  }
  pool.result.insert(pool.result.end(), pool.out.begin(), pool.out.end());
  return pool;
}
template <class A>
Pool check_pool(const OpCall& op, const A& attrs) {
  return check_pool(op, attrs, op.shape(0));
}
template <int N, class A>
Layout data_layout(const OpCall& op, const A& attrs) {
  return Layout(op, attrs.layout, data_layout_of(N), "layout");
}
// Returns the data's dims as [N, C, spatial...].
template <int N, class A>
std::vector<Expr> plain_shape(const OpCall& op, const A& attrs) {
  Layout layout = data_layout<N>(op, attrs);
  if (op.rank(0) != layout.rank()) op.fail("data has rank {}, expected {}", op.rank(0), layout.rank());
  return layout.to_plain(op.shape(0));
}
template <int N, class A>
Layout out_layout(const OpCall& op, const A& attrs) {
  std::string layout = attrs.out_layout.value_or("");
  return Layout(op, layout.empty() ? attrs.layout : layout, data_layout_of(N), "out layout");
}
// Returns the call's type: a result of these dims in its layout.
template <int N, class A>
Type pool_type(const OpCall& op, const A& attrs, const std::vector<Expr>& result) {
  return tensor_type(out_layout<N>(op, attrs).from_plain(op, result), op.dtype(0));
}
template <int N>
Type infer_pool(const OpCall& op) {
  auto attrs = op.attrs<PoolAttrs<N>>();
  return pool_type<N>(op, attrs, check_pool(op, attrs, plain_shape<N>(op, attrs)).result);
}
template <int N, class A>
Type infer_partial_pool(const OpCall& op) {
  return tensor_type_of_rank(out_layout<N>(op, op.attrs<A>()).rank(), op.first_dtype());
}
// Checks a call that is lowered, and adds its layouts.
template <int N>
Pool check_pool(const OpCall& op) {
  auto attrs = op.attrs<PoolAttrs<N>>();
  Pool pool = check_pool(op, attrs, plain_shape<N>(op, attrs));
  pool.data_layout = data_layout<N>(op, attrs);
  pool.out_layout = out_layout<N>(op, attrs);
  return pool;
}

// Pads the data with `fill` wherever windows read outside of it, then folds each window. The result is in its layout.
Buffer window_fold(ComputeBuilder& b, const OpCall& op, const Pool& pool, const Buffer& data, const std::string& name,
                   DType dtype, const Expr& fill, const Expr& neutral, const ComputeBuilder::Combine& combine,
                   const std::function<Expr(const Expr&)>& value) {
  Buffer source = data;
  if (!pool.is_inside()) {
    std::vector<Expr> padded = {pool.result[0], pool.result[1]};
    for (size_t d = 0; d < pool.spatial; ++d) padded.push_back(pool.reach(d));
    source = pad_stage(b, op, data, pool.data_layout, pool.padding.before, padded, fill);
  }
  std::vector<Expr> result = pool.out_layout.from_plain(op, pool.result);
  return b.reduce(name, dtype, result, pool.kernel(), neutral, combine, [&](Axes axes, Axes r) {
    std::vector<Expr> i = pool.out_layout.to_plain_index(axes), indices = {i[0], i[1]};
    for (size_t d = 0; d < pool.spatial; ++d) indices.push_back(pool.position(d, i[d + 2], r[d]));
    indices = pool.data_layout.from_plain_index(indices, facts_of_axes(axes, result));
    return value(cast_to(load(source, indices), dtype));
  });
}

template <int N>
OpRow max_pool() {
  return {.name = fmt::format("relax.nn.max_pool{}d", N),
          .doc = "largest element of each window; padding never wins",
          .inputs = {{"data", "tensor [N, C, ...]"}},
          .attrs = with_like(op_attrs<PoolAttrs<N>>(), "out_layout", "layout"),
          .pattern = OpPattern::kAnchor,
          .infer = infer_pool<N>,
          .infer_partial = infer_partial_pool<N, PoolAttrs<N>>,
          .legalize = [](const OpCall& op) {
            Pool pool = check_pool<N>(op);
            ComputeBuilder b;
            Buffer x = b.inputs_of(op)[0];
            Expr least = lowest(op.dtype(0));
            return b.finish({window_fold(b, op, pool, x, "pool_max", op.dtype(0), least, least, combine_max,
                                         [](const Expr& element) { return element; })});
          }};
}

// Returns how many of a window's positions along dim d count: those in the data, or with `padded` those in the data and
// its padding.
Expr counted_positions(const Pool& pool, size_t d, const Expr& o, bool padded) {
  int64_t before = pool.padding.before[d], after = pool.padding.after[d];
  Expr start = o * pool.strides[d];
  Expr end = pool.in[d] + (padded ? before + after : before);
  Expr first = padded ? int_imm(0) : max(ceil_div(int_imm(before) - start, pool.dilation[d]), int_imm(0));
  Expr last = min(ceil_div(end - start, pool.dilation[d]), int_imm(pool.size[d]));
  return max(last - first, int_imm(0));
}
template <int N>
OpRow avg_pool() {
  return {.name = fmt::format("relax.nn.avg_pool{}d", N),
          .doc = "mean of each window; padding counts with count_include_pad, what lies beyond it (ceil_mode) never",
          .inputs = {{"data", "tensor [N, C, ...]"}},
          .attrs = with_like(op_attrs<PoolAttrs<N>>(), "out_layout", "layout"),
          .pattern = OpPattern::kAnchor,
          .infer = infer_pool<N>,
          .infer_partial = infer_partial_pool<N, PoolAttrs<N>>,
          .legalize = [](const OpCall& op) {
            Pool pool = check_pool<N>(op);
            bool padded = op.attrs<PoolAttrs<N>>().count_include_pad;
            ComputeBuilder b;
            Buffer x = b.inputs_of(op)[0];
            DType dtype = accumulation_dtype(op.dtype(0));
            Buffer sum = window_fold(b, op, pool, x, "pool_sum", dtype, zero(op.dtype(0)), zero(dtype), combine_sum,
                                     [](const Expr& element) { return element; });
            bool is_constant = pool.is_inside() || (padded && !pool.ceil_mode);
            return b.finish({b.compute("pool_avg", op.dtype(0), buffer_type(sum).shape, [&](Axes axes) {
              std::vector<Expr> i = pool.out_layout.to_plain_index(axes);
              Expr count = int_imm(1);
              for (size_t d = 0; d < N; ++d)
                count = count * (is_constant ? int_imm(pool.size[d]) : counted_positions(pool, d, i[d + 2], padded));
              return cast_to(divide_by_count(at(sum, axes), max(count, int_imm(1))), op.dtype(0));
            })});
          }};
}

OpRow lp_pool() {
  return {.name = "relax.nn.lp_pool",
          .doc = "p-norm of each window, (sum |x|^p)^(1/p); any number of spatial dims",
          .inputs = {{"data", "tensor [N, C, ...]"}},
          .attrs = op_attrs<LpPoolAttrs>(),
          .pattern = OpPattern::kAnchor,
          .infer =
              [](const OpCall& op) {
                LpPoolAttrs attrs = op.attrs<LpPoolAttrs>();
                if (!op.dtype(0).is_float()) op.fail("expected a float, got {}", to_string(op.dtype(0)));
                if (attrs.p < 1) op.fail("p is {}, expected at least 1", attrs.p);
                return tensor_type(check_pool(op, attrs).result, op.dtype(0));
              },
          .legalize =
              [](const OpCall& op) {
                LpPoolAttrs attrs = op.attrs<LpPoolAttrs>();
                Pool pool = check_pool(op, attrs);
                ComputeBuilder b;
                Buffer x = b.inputs_of(op)[0];
                DType dtype = accumulation_dtype(op.dtype(0));
                auto power = [&](const Expr& base, double exponent) {
                  return intrinsic("tir.pow", {base, scalar_imm(exponent, dtype)}, dtype);
                };
                Buffer sum =
                    window_fold(b, op, pool, x, "pool_sum", dtype, zero(op.dtype(0)), zero(dtype), combine_sum,
                                [&](const Expr& element) {
                                  if (attrs.p == 2) return binary(BinaryOp::kMul, element, element);
                                  Expr magnitude = intrinsic("tir.abs", {element}, dtype);
                                  return attrs.p == 1 ? magnitude : power(magnitude, static_cast<double>(attrs.p));
                                });
                return b.finish({b.compute("pool_lp", op.dtype(0), pool.result, [&](Axes i) {
                  Expr root = attrs.p == 1   ? at(sum, i)
                              : attrs.p == 2 ? intrinsic("tir.sqrt", {at(sum, i)}, dtype)
                                             : power(at(sum, i), 1.0 / static_cast<double>(attrs.p));
                  return cast_to(root, op.dtype(0));
                })});
              }};
}

OpRow max_pool_with_indices() {
  return {
      .name = "relax.nn.max_pool_with_indices",
      .doc = "max pool and, as ONNX's second output, each maximum's position (int64) in the flattened data",
      .inputs = {{"data", "tensor [N, C, ...]"}},
      .attrs = op_attrs<IndexedPoolAttrs>(),
      .infer =
          [](const OpCall& op) {
            Pool pool = check_pool(op, op.attrs<IndexedPoolAttrs>());
            return tuple_type({tensor_type(pool.result, op.dtype(0)), tensor_type(pool.result, kInt64)});
          },
      .infer_partial =
          [](const OpCall& op) { return tuple_type({infer_unranked(op.first_dtype()), infer_unranked(kInt64)}); },
      .legalize =
          [](const OpCall& op) {
            IndexedPoolAttrs attrs = op.attrs<IndexedPoolAttrs>();
            Pool pool = check_pool(op, attrs);
            ComputeBuilder b;
            Buffer x = b.inputs_of(op)[0];
            DType dtype = op.dtype(0);
            Buffer best = b.buffer("pool_max", dtype, pool.result), index = b.buffer("pool_index", kInt64, pool.result);
            b.block("pool_max_with_indices", pool.result, pool.kernel(), [&](Axes i, Axes r) {
              std::vector<Expr> where, indices = {i[0], i[1]};
              Expr inside = bool_imm(true);
              for (size_t d = 0; d < pool.spatial; ++d) {
                where.push_back(pool.position(d, i[d + 2], r[d]) - pool.padding.before[d]);
                if (!pool.is_inside()) inside = inside && where[d] >= int_imm(0) && where[d] < pool.in[d];
              }
              indices.insert(indices.end(), where.begin(), where.end());
              std::vector<Expr> dims = pool.in;
              if (attrs.storage_order == 1) {
                std::reverse(where.begin(), where.end());
                std::reverse(dims.begin(), dims.end());
              }
              Expr position = (i[0] * op.shape(0)[1] + i[1]) * product(dims) + flatten_index(where, dims);
              Expr value = if_then_else(inside, load(x, indices), lowest(dtype)), old = at(best, i);
              VarRef replace = make_var("replace", prim_type(kBool)), element = make_var("element", prim_type(dtype));
              Expr wins = element > old || at(index, i) < int_imm(0);
              if (dtype.is_float())
                wins = wins || (binary(BinaryOp::kNE, element, element) && binary(BinaryOp::kEQ, old, old));
              // `wins` reads both buffers, so it is bound before either is written.
              Stmt body = seq({make(Bind{element, value}), make(Bind{replace, inside && wins}),
                               store(index, select(replace, position, at(index, i)), i),
                               store(best, select(replace, element, old), i)});
              return ComputeBuilder::Bodies{seq({store(index, int_imm(-1), i), store(best, lowest(dtype), i)}), body};
            });
            return b.finish({best, index});
          }};
}

template <int N>
std::vector<Expr> adaptive_shape(const OpCall& op) {
  auto attrs = op.attrs<AdaptiveAttrs<N>>();
  if (op.dtype(0).is_bool()) op.fail("expected a number, got bool");
  std::vector<Expr> shape = plain_shape<N>(op, attrs);
  if (!attrs.output_size) return shape;
  std::vector<int64_t> size = per_dim(op, *attrs.output_size, N, "output_size", 1);
  for (size_t d = 0; d < N; ++d) shape[d + 2] = int_imm(size[d]);
  return shape;
}
// Window o of a dim covers [o * in / out, ceil((o + 1) * in / out)).
template <int N>
OpRow adaptive_avg_pool() {
  std::vector<OpAttr> attrs = with_like(op_attrs<AdaptiveAttrs<N>>(), "out_layout", "layout");
  attr_of(attrs, "output_size").items = N;
  return {
      .name = fmt::format("relax.nn.adaptive_avg_pool{}d", N),
      .doc = "mean over windows that divide the data into output_size parts; 1 gives the global mean",
      .inputs = {{"data", "tensor [N, C, ...]"}},
      .attrs = attrs,
      .pattern = OpPattern::kAnchor,
      .infer = [](const OpCall& op) { return pool_type<N>(op, op.attrs<AdaptiveAttrs<N>>(), adaptive_shape<N>(op)); },
      .infer_partial = infer_partial_pool<N, AdaptiveAttrs<N>>,
      .legalize =
          [](const OpCall& op) {
            auto attrs = op.attrs<AdaptiveAttrs<N>>();
            Layout from = data_layout<N>(op, attrs), to = out_layout<N>(op, attrs);
            std::vector<Expr> shape = adaptive_shape<N>(op), result = to.from_plain(op, shape);
            ComputeBuilder b;
            Buffer x = b.inputs_of(op)[0];
            DType dtype = accumulation_dtype(op.dtype(0));
            std::vector<Expr> in = plain_shape<N>(op, attrs);
            // A dim is read without a guard when all of its windows have the same size.
            std::vector<bool> even(N);
            std::vector<Expr> extents;
            for (size_t d = 0; d < N; ++d) {
              auto extent = as_int(in[d + 2]), windows = as_int(shape[d + 2]);
              bool same = same_node(in[d + 2], shape[d + 2]);
              even[d] = same || is_int(shape[d + 2], 1) || (extent && windows && exact_div(*extent, *windows));
              Expr window = same ? int_imm(1) : floor_div(in[d + 2], shape[d + 2]);
              extents.push_back(even[d] ? window : window + 2);
            }
            auto start = [&](size_t d, Axes i) { return floor_div(i[d + 2] * in[d + 2], shape[d + 2]); };
            auto end = [&](size_t d, Axes i) {
              return floor_div((i[d + 2] + 1) * in[d + 2] + shape[d + 2] - 1, shape[d + 2]);
            };
            Buffer sum =
                b.reduce("adaptive_pool_sum", dtype, result, extents, zero(dtype), combine_sum, [&](Axes axes, Axes r) {
                  std::vector<Expr> i = to.to_plain_index(axes), indices = {i[0], i[1]};
                  Expr inside = bool_imm(true);
                  for (size_t d = 0; d < N; ++d) {
                    Expr position = (even[d] ? i[d + 2] * extents[d] : start(d, i)) + r[d];
                    if (!even[d]) inside = inside && position < end(d, i);
                    indices.push_back(position);
                  }
                  indices = from.from_plain_index(indices, facts_of_axes(axes, result));
                  return if_then_else(inside, cast_to(load(x, indices), dtype), zero(dtype));
                });
            return b.finish({b.compute("adaptive_pool_avg", op.dtype(0), result, [&](Axes axes) {
              std::vector<Expr> i = to.to_plain_index(axes);
              Expr count = int_imm(1);
              for (size_t d = 0; d < N; ++d) count = count * (even[d] ? extents[d] : end(d, i) - start(d, i));
              return cast_to(divide_by_count(at(sum, axes), max(count, int_imm(1))), op.dtype(0));
            })});
          }};
}

}  // namespace

std::vector<OpRow> pooling_ops() {
  return {max_pool<1>(),          max_pool<2>(), max_pool<3>(),          avg_pool<1>(),
          avg_pool<2>(),          avg_pool<3>(), adaptive_avg_pool<1>(), adaptive_avg_pool<2>(),
          adaptive_avg_pool<3>(), lp_pool(),     max_pool_with_indices()};
}

}  // namespace relaxc
