#include "passes/quantized_means.h"

#include <algorithm>

#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/window.h"

namespace relaxc {

namespace {

constexpr int64_t kMostAveraged = INT32_MAX / 255;  // bytes whose sum is an int32
constexpr OpName kAvgPool1d{"relax.nn.avg_pool1d"}, kAvgPool3d{"relax.nn.avg_pool3d"};

// The int32 sums that a mean divides. `elements`, int32, says how many numbers are in each, and `divisor`, float32, how
// many count: where windows pass a border, each window has its own.
struct Sums {
  Expr numbers, elements, divisor;
};

template <int N>
Expr sum_of_image(const Expr& numbers, const std::vector<int64_t>& extents, Builder& b) {
  return b.op(fmt::format("nn.sum_pool{}d", N), {numbers}, PoolAttrs<N>{.pool_size = extents});
}

// The sum of an image's pixels is that of one window: a pool reads bytes, where a sum would read int32s.
std::optional<Sums> sums_over_axes(const Call& call, const Expr& numbers, Builder& b) {
  const std::vector<Expr>& dims = *known_shape(numbers.type());
  const auto attrs = read_attrs<ReduceAttrs>(call.attrs);
  const int64_t rank = std::ssize(dims);
  std::vector<int64_t> axes = attrs.axis.value_or(int_range(0, rank)), extents;
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  for (int64_t axis : axes) extents.push_back(as_int(dims[static_cast<size_t>(axis)]).value_or(kMostAveraged + 1));
  const std::optional<int64_t> count = element_count(extents);
  if (!count || *count < 1 || *count > kMostAveraged) return std::nullopt;
  const auto number = static_cast<double>(*count);
  Sums sums{numbers, scalar_constant(number, kInt32), scalar_constant(number, kFloat32)};
  if (rank > 2 && rank < 6 && axes == int_range(2, rank)) {
    sums.numbers = rank == 3   ? sum_of_image<1>(numbers, extents, b)
                   : rank == 4 ? sum_of_image<2>(numbers, extents, b)
                               : sum_of_image<3>(numbers, extents, b);
    if (!attrs.keepdims) sums.numbers = reshape(sums.numbers, {dims[0], dims[1]}, b);
  } else {
    sums.numbers = b.op("sum", {b.op("astype", {numbers}, DTypeAttrs{kInt32})}, call.attrs);
  }
  return sums;
}

// Padding counts as 0. Where windows pass a border, their elements are counted by the same sums of ones.
template <int N>
std::optional<Sums> sums_of_windows(const Call& call, const Expr& numbers, Builder& b) {
  auto attrs = read_attrs<PoolAttrs<N>>(call.attrs);
  attrs.pool_size.resize(N, attrs.pool_size[0]);
  const std::optional<int64_t> most = element_count(attrs.pool_size);
  if (!most || *most > kMostAveraged) return std::nullopt;
  auto sum = [&](const Expr& x) { return b.op(fmt::format("nn.sum_pool{}d", N), {x}, attrs); };
  const auto number = static_cast<double>(*most);
  Expr elements = scalar_constant(number, kInt32), divisor = scalar_constant(number, kFloat32);
  const bool may_pass_the_end = attrs.ceil_mode || attrs.partial_window;
  if (may_pass_the_end || read_padding(OpCall{call, b.span()}, attrs.padding, N).any()) {
    std::optional<std::vector<int64_t>> dims = constant_shape(numbers.type());
    if (!dims || attrs.layout != data_layout_of(N) || (may_pass_the_end && attrs.count_include_pad))
      return std::nullopt;
    (*dims)[0] = (*dims)[1] = 1;
    const std::vector<int32_t> ones(static_cast<size_t>(*element_count(*dims)), 1);
    elements = sum(constant(Tensor::of(*dims, kInt32, ones)));
    if (!attrs.count_include_pad) divisor = b.op("astype", {elements}, DTypeAttrs{kFloat32});
  }
  return Sums{sum(numbers), elements, divisor};
}

std::optional<Sums> sums_of(const Call& call, const Expr& numbers, Builder& b) {
  const std::string& op = call.callee.as<OpRef>()->name;
  if (op == ops::kMean) return sums_over_axes(call, numbers, b);
  if (op == kAvgPool1d) return sums_of_windows<1>(call, numbers, b);
  if (op == ops::kAvgPool2d) return sums_of_windows<2>(call, numbers, b);
  if (op == kAvgPool3d) return sums_of_windows<3>(call, numbers, b);
  return std::nullopt;
}

}  // namespace

std::optional<Expr> mean_of_integers(const Call& call, const QuantizedValue& x, Builder& b) {
  const std::optional<Sums> sums = sums_of(call, x.numbers, b);
  if (!sums) return std::nullopt;
  Expr total = sums->numbers;
  if (constant_element(*x.zero) != 0.0) {
    const Expr zero = reshape(b.op("astype", {*x.zero}, DTypeAttrs{kInt32}), {}, b);
    total = b.op("subtract", {total, b.op("multiply", {sums->elements, zero})});
  }
  const Expr mean = b.op("divide", {b.op("astype", {total}, DTypeAttrs{kFloat32}), sums->divisor});
  return b.op("multiply", {mean, reshape(*x.scale, {}, b)});
}

}  // namespace relaxc
