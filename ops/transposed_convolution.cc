// Transposed convolutions as convolutions, the sub-pixel form. Along a dim, element i of the data adds its product with
// weight k to position p = i * stride + k * dilation of the result before its padding is cropped. With p = q * stride +
// r and no dilation, position q of phase r gathers data[q - j] * weight[r + j * stride] for each j: a convolution of
// stride 1 whose output channels are the phases of all channels. The phases are interleaved after it. A dilation is
// written into the weight, as zeros, unless the stride is 1. Where the stride does not divide the window some phases
// have fewer taps. With many channels each phase is a convolution of its own; with few all are one, in which the taps
// that miss are zeros, so that an infinite element makes NaNs beside the results that it belongs to.
#include <algorithm>

#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/convolution.h"
#include "support/lists.h"

namespace relaxc {

namespace {

// Convolutions of fewer channels do not fill vectors by phases, and more phases are too many convolutions.
constexpr int64_t kFewestChannels = 16, kMostPhases = 8;

class Phases {
 public:
  Phases(const OpCall& op, const Conv& conv, Builder& b) : op_(op), conv_(conv), b_(b) {
    for (size_t d = 0; d < conv.spatial; ++d) {
      const int64_t kernel = *as_int(conv.kernel[d]);
      // A single element has no neighbours to step to: all positions are phases of it.
      const bool is_single = is_int(conv.in[d], 1);
      const int64_t stride = is_single ? std::max(conv.strides[d], kernel * conv.dilation[d]) : conv.strides[d];
      const int64_t window = kernel * (stride == 1 ? 1 : conv.dilation[d]);
      Dim dim{.stride = stride, .dilation = stride == 1 ? conv.dilation[d] : 1, .taps = ceil_div(window, stride)};
      int64_t before = conv.padding.before[d], first = floor_div(before, stride);
      int64_t beyond = *as_int(simplify(conv.out[d] - conv.in[d] * stride)) + before - 1;  // the last p, less in
      dim.before = (dim.taps - 1) * dim.dilation - first;
      dim.after = floor_div(beyond, stride) + 1;
      dim.crop = before - first * stride;
      dims_.push_back(dim);
    }
  }

  template <int N>
  Expr run() {
    if (!are_phases_apart()) return interleaved(convolution<N>(dims_, weight()));
    // The phases of a channel are counted over all dims, the last one the fastest.
    const Expr all = weight();
    int64_t count = 1;
    for (const Dim& dim : dims_) count *= dim.stride;
    std::vector<Expr> parts;
    for (int64_t phase = 0; phase < count; ++phase) {
      std::vector<Dim> dims = dims_;
      int64_t rest = phase;
      for (size_t d = N; d-- > 0;) {
        dims[d].taps = ceil_div(*as_int(conv_.kernel[d]) - rest % dims[d].stride, dims[d].stride);
        dims[d].before -= (dims_[d].taps - dims[d].taps) * dims[d].dilation;
        rest /= dims[d].stride;
      }
      parts.push_back(convolution<N>(dims, weight_of_phase(all, phase, dims)));
    }
    return interleaved(b_.op("concat", {tuple(parts)}, ConcatAttrs{.axis = 1}));
  }

 private:
  struct Dim {
    int64_t stride, dilation, taps;
    int64_t before = 0, after = 0;  // padding of the data; less than 0: elements that reach no result
    int64_t crop = 0;               // leading positions that the padding removes
  };

  // Returns whether each phase is a convolution of its own, which leaves the taps out that it does not have.
  bool are_phases_apart() const {
    int64_t phases = 1;
    bool differ = false;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const int64_t kernel = *as_int(conv_.kernel[d]), stride = dims_[d].stride;
      if (kernel < stride || (stride > 1 && conv_.dilation[d] != 1)) return false;
      differ = differ || kernel % stride != 0;
      phases *= stride;
    }
    const auto channels = as_int(conv_.out_channels);
    return differ && phases <= kMostPhases && conv_.groups == 1 && channels && *channels >= kFewestChannels;
  }
  // Returns the part [O, C, taps, ...] of the weight; the first taps of others are its own.
  Expr weight_of_phase(const Expr& all, int64_t phase, const std::vector<Dim>& dims) {
    const int64_t channels = *as_int(conv_.out_channels);
    std::vector<Expr> axes = {int_imm(0)}, begins = {int_imm(phase * channels)},
                      ends = {int_imm((phase + 1) * channels)};
    for (size_t d = 0; d < dims.size(); ++d) {
      axes.push_back(int_imm(static_cast<int64_t>(d) + 2));
      begins.push_back(int_imm(dims_[d].taps - dims[d].taps));
      ends.push_back(int_imm(dims_[d].taps));
    }
    return b_.op("strided_slice", {all, tuple(axes), tuple(begins), tuple(ends)});
  }

  template <int N>
  Expr convolution(const std::vector<Dim>& dims, const Expr& weight) {
    ConvAttrs<N> attrs{.groups = conv_.groups, .out_dtype = conv_.out_dtype};
    for (size_t d = 0; d < N; ++d) {
      attrs.dilation[d] = dims[d].dilation;
      attrs.padding[d] = std::max<int64_t>(dims[d].before, 0);
      attrs.padding[N + d] = std::max<int64_t>(dims[d].after, 0);
    }
    return b_.op(fmt::format("nn.conv{}d", N), {data(dims), weight}, attrs);
  }

  Expr reshape(const Expr& x, std::vector<Expr> dims) { return b_.op("reshape", {x, shape_expr(std::move(dims))}); }
  Expr permute(const Expr& x, std::vector<int64_t> axes) { return b_.op("permute_dims", {x}, AxesAttrs{axes}); }
  // Returns `size` elements from `begin` of each spatial axis.
  Expr slice(const Expr& x, const std::vector<int64_t>& begins, const std::vector<Expr>& sizes) {
    const std::vector<Expr>& dims = *known_shape(x.type());
    std::vector<Expr> axes, firsts, ends, steps;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (begins[d] == 0 && structural_equal(dims[d + 2], sizes[d])) continue;
      axes.push_back(int_imm(static_cast<int64_t>(d) + 2));
      firsts.push_back(int_imm(begins[d]));
      ends.push_back(simplify(sizes[d] + begins[d]));
      steps.push_back(int_imm(1));
    }
    if (axes.empty()) return x;
    std::vector<Expr> args = {x, tuple(axes), tuple(firsts), tuple(ends), tuple(steps)};
    std::vector<Expr> result = {dims.begin(), dims.begin() + 2};
    result.insert(result.end(), sizes.begin(), sizes.end());
    // The sizes are not negative, which does not follow from x alone.
    return b_.emit(call(op_ref(ops::kStridedSlice), args, write_attrs(SliceAttrs{.assume_inbound = true}),
                        tensor_type(result, *tensor_dtype(x.type())), op_.span));
  }

  // Returns the elements that reach the result.
  Expr data(const std::vector<Dim>& dims) {
    std::vector<int64_t> begins;
    std::vector<Expr> sizes;
    for (size_t d = 0; d < dims.size(); ++d) {
      begins.push_back(std::max<int64_t>(-dims[d].before, 0));
      sizes.push_back(simplify(conv_.in[d] + (std::min<int64_t>(dims[d].after, 0) - begins[d])));
    }
    return slice(op_.arg(0), begins, sizes);
  }

  // Returns the weight [C, O / groups, ...] as [groups * phases * O / groups, C / groups, taps, ...].
  Expr weight() {
    Expr w = op_.arg(1);
    w = padded(w, [&](size_t d) { return dims_[d].stride == 1 ? 1 : conv_.dilation[d]; });
    const size_t n = dims_.size();
    std::vector<Expr> split = {int_imm(conv_.groups), conv_.in_per_group, conv_.out_per_group};
    std::vector<Expr> joined = {conv_.out_channels, conv_.in_per_group};
    std::vector<int64_t> phases, taps;
    for (size_t d = 0; d < n; ++d) {
      split.push_back(int_imm(dims_[d].taps));
      split.push_back(int_imm(dims_[d].stride));
      joined[0] = joined[0] * dims_[d].stride;
      joined.push_back(int_imm(dims_[d].taps));
      taps.push_back(std::ssize(split) - 2);
      phases.push_back(std::ssize(split) - 1);
    }
    w = reshape(w, split);
    for (int64_t axis : taps) w = is_int(split[axis], 1) ? w : b_.op("flip", {w}, AxisAttrs{axis});
    std::vector<int64_t> axes = {0};
    axes.insert(axes.end(), phases.begin(), phases.end());
    axes.insert(axes.end(), {2, 1});
    axes.insert(axes.end(), taps.begin(), taps.end());
    joined[0] = simplify(joined[0]);
    return reshape(permute(w, axes), joined);
  }
  // Returns the weight with each tap followed by `spread` - 1 zeros, and zeros at the end up to a multiple of the
  // stride.
  template <class Spread>
  Expr padded(Expr w, const Spread& spread) {
    std::vector<int64_t> gaps(2 * (2 + 2 * dims_.size()), 0), ends(2 * (2 + dims_.size()), 0);
    std::vector<Expr> apart = {conv_.in_channels, conv_.out_per_group}, dims = apart;
    for (size_t d = 0; d < dims_.size(); ++d) {
      int64_t kernel = *as_int(conv_.kernel[d]), step = spread(d);
      gaps[2 * apart.size() + 3] = step - 1;
      ends[2 * dims.size() + 1] = dims_[d].taps * dims_[d].stride - kernel * step;
      apart.insert(apart.end(), {int_imm(kernel), int_imm(1)});
      dims.push_back(int_imm(kernel * step));
    }
    auto any = [](const std::vector<int64_t>& widths) { return std::ranges::any_of(widths, std::identity()); };
    if (any(gaps)) w = reshape(b_.op("nn.pad", {reshape(w, apart)}, PadAttrs{.pad_width = gaps}), dims);
    return any(ends) ? b_.op("nn.pad", {w}, PadAttrs{.pad_width = ends}) : w;
  }

  // Returns the result from an image [N, groups * phases * O / groups, ...].
  Expr interleaved(Expr y) {
    if (std::ranges::all_of(dims_, [](const Dim& dim) { return dim.stride == 1; })) return y;
    const auto n = std::ssize(dims_);
    std::vector<Expr> spatial = *known_shape(y.type());
    std::vector<Expr> split = {conv_.batch, int_imm(conv_.groups)}, joined = {conv_.batch, conv_.out_channels};
    for (const Dim& dim : dims_) split.push_back(int_imm(dim.stride));
    split.push_back(conv_.out_per_group);
    std::vector<int64_t> axes = {0, 1, n + 2};
    for (int64_t d = 0; d < n; ++d) {
      split.push_back(spatial[d + 2]);
      axes.insert(axes.end(), {n + 3 + d, 2 + d});
      joined.push_back(simplify(spatial[d + 2] * dims_[d].stride));
    }
    std::vector<int64_t> crops;
    for (const Dim& dim : dims_) crops.push_back(dim.crop);
    return slice(reshape(permute(reshape(y, split), axes), joined), crops, conv_.out);
  }

  const OpCall& op_;
  const Conv& conv_;
  Builder& b_;
  std::vector<Dim> dims_;
};

}  // namespace

Expr convolution_of_phases(const OpCall& op, const Conv& conv, Builder& b) {
  Phases phases(op, conv, b);
  return conv.spatial == 1 ? phases.run<1>() : conv.spatial == 2 ? phases.run<2>() : phases.run<3>();
}

}  // namespace relaxc
