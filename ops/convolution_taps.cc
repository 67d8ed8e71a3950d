// A window with a dilation may be larger than the image, as in atrous pyramids over small maps: then some of its taps
// meet the padding only, whatever the position. Those at the ends of a dim are cut off, and the padding with them.
#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/convolution.h"

namespace relaxc {

namespace {

// The taps [first, last] of a dim that meet the data at some position.
struct Taps {
  int64_t first, last;
};

// Returns them where the extents are known and the padding reaches as far as the taps that are cut off.
std::optional<Taps> read_taps(const Conv& conv, size_t d) {
  const auto in = as_int(conv.in[d]), out = as_int(conv.out[d]), taps = as_int(conv.kernel[d]);
  if (!in || !out || !taps) return std::nullopt;
  const int64_t stride = conv.strides[d], dilation = conv.dilation[d], before = conv.padding.before[d];
  auto is_read = [&](int64_t tap) {
    const int64_t first = tap * dilation - before;  // of the first position; those behind it are a stride apart
    const int64_t skipped = first < 0 ? (-first + stride - 1) / stride : 0;
    return skipped < *out && first + skipped * stride < *in;
  };
  Taps result{0, *taps - 1};
  while (result.first < *taps && !is_read(result.first)) ++result.first;
  while (result.last > result.first && !is_read(result.last)) --result.last;
  const bool fits = result.first < *taps && result.first * dilation <= before &&
                    (*taps - 1 - result.last) * dilation <= conv.padding.after[d];
  return fits ? std::optional(result) : std::nullopt;
}

}  // namespace

template <int N>
std::optional<Expr> convolution_of_read_taps(const OpCall& op, const Conv& conv, Builder& b) {
  if (op.dtype(0).is_integral()) return std::nullopt;  // integer_regions looks for bytes behind the whole weight
  auto attrs = op.attrs<ConvAttrs<N>>();
  std::vector<Expr> axes, begins, ends, steps;
  for (size_t d = 0; d < N; ++d) {
    attrs.padding.resize(2 * N);
    attrs.padding[d] = conv.padding.before[d], attrs.padding[N + d] = conv.padding.after[d];
    const std::optional<Taps> taps = read_taps(conv, d);
    if (!taps || taps->last - taps->first + 1 == *as_int(conv.kernel[d])) continue;
    attrs.padding[d] -= taps->first * conv.dilation[d];
    attrs.padding[N + d] -= (*as_int(conv.kernel[d]) - 1 - taps->last) * conv.dilation[d];
    axes.push_back(int_imm(static_cast<int64_t>(d) + 2));
    begins.push_back(int_imm(taps->first)), ends.push_back(int_imm(taps->last + 1)), steps.push_back(int_imm(1));
  }
  if (axes.empty()) return std::nullopt;
  Expr weight = b.op("strided_slice", {op.call.args[1], tuple(axes), tuple(begins), tuple(ends), tuple(steps)},
                     SliceAttrs{.assume_inbound = true});
  return b.op(op.name(), {op.call.args[0], weight}, attrs);
}

template std::optional<Expr> convolution_of_read_taps<1>(const OpCall&, const Conv&, Builder&);
template std::optional<Expr> convolution_of_read_taps<2>(const OpCall&, const Conv&, Builder&);

}  // namespace relaxc
