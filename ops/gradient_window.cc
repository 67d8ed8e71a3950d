// Gradients of convolutions and pools, for tensors in the plain layouts.
//
// Along a dim, a convolution adds data[i * stride + k * dilation - before] * weight[k] to element i. So the gradient of
// the data is the transposed convolution of dy, and that of the weight, by exchanging i and k, a convolution of the
// data with dy as its weight, in which stride and dilation change places and batch and channels do.
#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/gradient.h"

namespace relaxc::gradients {

namespace {

using T = const Term&;
using G = const GradientCall&;

template <class A>
void require_plain(G g, const A& attrs, std::string_view data_layout) {
  const std::string& layout = [&]() -> const std::string& {
    if constexpr (requires { attrs.data_layout; })
      return attrs.data_layout;
    else
      return attrs.layout;
  }();
  if (layout != data_layout || attrs.out_layout.value_or(layout) != layout)
    g.unsupported("is known for the layout {} only, this is {}", data_layout, layout);
}
template <int N, class A>
A plain_attrs(G g, const char* kernel_layout) {
  A attrs = g.attrs<A>();
  require_plain(g, attrs, data_layout_of(N));
  if (attrs.kernel_layout != kernel_layout)
    g.unsupported("is known for the layout {} of the weight only, this is {}", kernel_layout, attrs.kernel_layout);
  return attrs;
}
std::string window_op(const char* name, int spatial) { return fmt::format("nn.{}{}d", name, spatial); }

// The parts of a convolution, y = conv(x, weight), or of a transposed one, for which x = conv(y, weight).
template <int N>
struct Window {
  ConvAttrs<N> attrs;

  template <class A>
  explicit Window(const A& given)
      : attrs{.strides = given.strides, .padding = given.padding, .dilation = given.dilation, .groups = given.groups} {}

  // Returns how many elements at the end of the padded data no window reads.
  Expr rest(size_t d, const Expr& in, const Expr& kernel, const Expr& out) const {
    Expr padded = in + (attrs.padding[d] + attrs.padding[N + d]);
    return simplify(padded - (kernel - 1) * attrs.dilation[d] - 1 - (out - 1) * attrs.strides[d]);
  }
  Term convolution(T data, T weight) const {
    return {data.builder->op(window_op("conv", N), {data.expr, weight.expr}, attrs), data.builder};
  }
  // Returns the gradient of data with these dims, whose convolution with the weight has the gradient dy.
  Term of_data(T dy, T weight, const std::vector<Expr>& dims) const {
    ConvTransposeAttrs<N> back{
        .strides = attrs.strides, .padding = attrs.padding, .dilation = attrs.dilation, .groups = attrs.groups};
    std::vector<int64_t> cut;
    for (size_t d = 0; d < N; ++d) {
      const Expr unread = rest(d, dims[d + 2], weight.shape()[d + 2], dy.shape()[d + 2]);
      if (auto known = as_int(unread)) {
        back.output_padding[d] = *known;
        continue;
      }
      // The data is as long as that or shorter, by what only the run can tell.
      back.output_padding[d] = attrs.strides[d] - 1;
      back.padding[N + d] = 0;
      cut.push_back(static_cast<int64_t>(d) + 2);
    }
    Builder& b = *dy.builder;
    Term result{b.op(window_op("conv", N) + "_transpose", {dy.expr, weight.expr}, back), &b};
    for (int64_t axis : cut) result = sliced(result, axis, int_imm(0), dims[axis]);
    return result;
  }
  // Returns the gradient of a weight [O, C / groups, ...] of these dims.
  Term of_weight(T data, T dy, const std::vector<Expr>& dims) const {
    Window swapped = *this;
    std::swap(swapped.attrs.strides, swapped.attrs.dilation);
    std::vector<Expr> parts = data.shape();
    const Expr per_group = dims[1], groups = int_imm(attrs.groups);
    // [N, groups * C, ...] to [C, groups * N, ...]
    parts[1] = per_group;
    parts.insert(parts.begin() + 1, groups);
    std::vector<int64_t> order = int_range(0, N + 3);
    std::swap(order[0], order[2]);
    std::vector<Expr> joined = data.shape();
    joined[0] = per_group;
    joined[1] = simplify(groups * data.dim(0));
    Term images = data.reshaped(parts).permuted(order).reshaped(joined);
    Term result = swapped.convolution(images, exchanged(dy));
    for (int64_t d = 0; d < N; ++d) {
      const Expr& extent = dims[d + 2];
      if (!is_int(simplify(equal(result.dim(d + 2), extent)), 1)) result = sliced(result, d + 2, int_imm(0), extent);
    }
    return exchanged(result);
  }
  static Term exchanged(T x) {
    std::vector<int64_t> order = int_range(0, x.rank());
    std::swap(order[0], order[1]);
    return x.permuted(order);
  }
};

template <int N>
Window<N> convolution_of(G g) {
  return Window<N>(plain_attrs<N, ConvAttrs<N>>(g, kernel_layout_of(N)));
}
template <int N>
Window<N> transposed_of(G g) {
  return Window<N>(plain_attrs<N, ConvTransposeAttrs<N>>(g, transposed_kernel_layout_of(N)));
}
Term dy_of(G g) { return g.dy().as(g.x().dtype()); }

template <int N>
Expr conv_of_data(G g) {
  return convolution_of<N>(g).of_data(dy_of(g), g.x(1), g.x().shape()).expr;
}
template <int N>
Expr conv_of_weight(G g) {
  return convolution_of<N>(g).of_weight(g.x(), dy_of(g), g.x(1).shape()).expr;
}
template <int N>
Expr transposed_of_data(G g) {
  return transposed_of<N>(g).convolution(dy_of(g), g.x(1)).expr;
}
template <int N>
Expr transposed_of_weight(G g) {
  return transposed_of<N>(g).of_weight(dy_of(g), g.x(), g.x(1).shape()).expr;
}

// ---- Pools

template <int N>
Expr window_pool(G g, const char* name) {
  return g.builder.op(fmt::format("grad.{}_pool{}d_backward", name, N), {g.dy().expr, g.op.arg(0)}, g.op.call.attrs);
}
template <int N>
Expr max_pool(G g) {
  return window_pool<N>(g, "max");
}
template <int N>
Expr avg_pool(G g) {
  return window_pool<N>(g, "avg");
}
// Result 1 has the positions in the flattened data.
Expr max_pool_with_indices(G g) {
  if (g.attrs<IndexedPoolAttrs>().storage_order != 0) g.unsupported("is known for storage_order 0 only");
  auto flat = [](T x) { return x.op("flatten"); };
  Term zeros = flat(g.x()).zeros();
  Expr sum = g.builder.op("scatter_elements", {zeros.expr, flat(g.y(1)).expr, flat(g.dy(0)).expr},
                          ScatterElementsAttrs{0, "add"});
  return g.term(sum).reshaped(g.x().shape()).expr;
}
// The result of windows of one size is the mean of an axis that has been split.
template <int N>
Expr adaptive_avg_pool(const OpCall& op, Builder& b) {
  const auto attrs = op.attrs<AdaptiveAttrs<N>>();
  const GradientCall call{op, b, op.arg(0), {}};
  require_plain(call, attrs, data_layout_of(N));
  Term x{op.arg(0), &b};
  std::vector<Expr> split = {x.dim(0), x.dim(1)}, result = split;
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < N; ++d) {
    const Expr extent = x.dim(d + 2);
    const Expr windows = attrs.output_size ? int_imm((*attrs.output_size)[d % std::ssize(*attrs.output_size)]) : extent;
    const auto known = as_int(extent), count = as_int(windows);
    bool is_even = is_int(windows, 1) || same_node(windows, extent) || (known && count && *known % *count == 0);
    if (!is_even) call.unsupported("is known for windows of one size only, not for {} along an axis", *count);
    axes.push_back(std::ssize(split) + 1);
    split.insert(split.end(), {windows, simplify(floor_div(extent, windows))});
    result.push_back(windows);
  }
  return x.reshaped(split).over("mean", axes).reshaped(result).expr;
}

template <int N>
void add_windows(std::vector<GradientRow>& rows) {
  rows.push_back({window_op("conv", N), {{conv_of_data<N>, conv_of_weight<N>}}});
  rows.push_back({window_op("conv", N) + "_transpose", {{transposed_of_data<N>, transposed_of_weight<N>}}});
  rows.push_back({window_op("max_pool", N), {{max_pool<N>}}});
  rows.push_back({window_op("avg_pool", N), {{avg_pool<N>}}});
  rows.push_back({window_op("adaptive_avg_pool", N), written(adaptive_avg_pool<N>)});
}

}  // namespace

std::vector<GradientRow> window_gradients() {
  std::vector<GradientRow> rows = {{"nn.max_pool_with_indices", {{max_pool_with_indices}}}};
  add_windows<1>(rows);
  add_windows<2>(rows);
  add_windows<3>(rows);
  return rows;
}

}  // namespace relaxc::gradients
