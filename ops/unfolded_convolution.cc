// Convolutions that have a form with fewer dims to slide along: parts of the data become channels side by side.
//
// Volumes become images. An element of the result at depth d sums over `kernel` planes of the data, those at
// d * stride + k * dilation. Planes of different depths side by side as channels make an image in which one convolution
// does this, whose weight has its planes side by side, too: [N, C, D, H, W] becomes [N * D_out, kernel * C, H, W], a
// copy of `kernel` times the data.
//
// Two dims that the window does not slide along, as its only element there reads every position, become one.
//
// Groups of few channels that are read point by point are products of matrices.
//
// Patches of few channels that do not overlap become channels of an image with an element for each of them.
//
// A sequence of few channels, read with a stride, becomes one that a window of one element reads: its vectors lie side
// by side.
#include "ir/builder.h"
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/convolution.h"

namespace relaxc {

namespace {

// With fewer channels, of all or of a group, the form for any number of dims is as fast: images need a few to fill the
// vectors of a block.
constexpr int64_t kFewestChannels = 3, kFewestChannelsOfGroup = 16;
constexpr int64_t kFewestChannelsOfPatches = 16;
// The most channels that a sequence may have for all elements of a window side by side: more are worth blocks.
constexpr int64_t kMostElements = 32;
// The most channels of a group that are a product of matrices: more fill a block.
constexpr int64_t kMostChannelsOfProduct = 16;
// The most that a patch may have as channels: of more, blocks of the image's own channels fill vectors as well.
constexpr int64_t kMostElementsOfPatch = 128;

class Unfolding {
 public:
  Unfolding(const OpCall& op, const Conv& conv, Builder& b) : op_(op), conv_(conv), b_(b) {}

  // Of a sequence.
  Expr run_elements() {
    const Expr data = padded(op_.call.args[0], 2);
    std::vector<Expr> parts;
    for (int64_t k = 0; k < depth(); ++k) parts.push_back(planes_of(data, 2, k));
    const Expr channels = simplify(conv_.in_per_group * depth());
    Expr weight = reshape(permute(op_.call.args[1], {0, 2, 1}), {conv_.out_channels, channels, int_imm(1)});
    return b_.op(op_.name(), {b_.op("concat", {tuple(parts)}, ConcatAttrs{.axis = 1}), weight},
                 ConvAttrs<1>{.out_dtype = conv_.out_dtype});
  }

  // Of groups, point by point.
  Expr run_products() {
    Expr points = conv_.in[0];
    for (size_t d = 1; d < conv_.spatial; ++d) points = simplify(points * conv_.in[d]);
    const Expr groups = int_imm(conv_.groups);
    const Expr data = reshape(op_.call.args[0], {conv_.batch, groups, conv_.in_per_group, points});
    const Expr weight = reshape(op_.call.args[1], {groups, conv_.out_per_group, conv_.in_per_group});
    return reshape(b_.op("matmul", {weight, data}, MatmulAttrs{.out_dtype = conv_.out_dtype}), conv_.result());
  }

  // Of patches, in any number of dims.
  Expr run_patches() {
    const size_t n = conv_.spatial;
    std::vector<Expr> apart = {conv_.batch, conv_.in_channels}, dims = {conv_.batch, conv_.in_channels};
    std::vector<int64_t> to_front = {0, 1}, grid;
    for (size_t d = 0; d < n; ++d) {
      grid.push_back(std::ssize(apart));
      to_front.push_back(grid.back() + 1);
      apart.insert(apart.end(), {conv_.out[d], int_imm(conv_.strides[d])});
      dims[1] = dims[1] * conv_.kernel[d];
      dims.push_back(conv_.out[d]);
    }
    dims[1] = simplify(dims[1]);
    Expr data = reshape(whole_patches(), apart);
    for (size_t d = 0; d < n; ++d)
      data = first_elements(data, 3 + 2 * static_cast<int64_t>(d), *as_int(conv_.kernel[d]));
    to_front.insert(to_front.end(), grid.begin(), grid.end());
    data = reshape(permute(data, to_front), image_dims(dims));
    const Expr weight = reshape(
        op_.call.args[1], image_dims(followed_by({conv_.out_channels, dims[1]}, std::vector<Expr>(n, int_imm(1)))));
    return reshape(pointwise(data, weight), conv_.result());
  }

  // Of volumes whose window has one element in two dims side by side, of which `d` is the first.
  Expr run_merged(size_t d) {
    const size_t other = d == 0 ? 2 : 0;  // the dim that is left beside the merged one
    const size_t at = d == 0 ? 1 : 0;
    auto without = [&](const std::vector<Expr>& dims) {
      const Expr all = simplify(dims[d] * dims[d + 1]);
      return at == 0 ? std::vector{dims[other], all} : std::vector{all, dims[other]};
    };
    ConvAttrs<2> attrs{.groups = conv_.groups, .out_dtype = conv_.out_dtype};
    attrs.strides[at] = conv_.strides[other];
    attrs.dilation[at] = conv_.dilation[other];
    attrs.padding[at] = conv_.padding.before[other];
    attrs.padding[2 + at] = conv_.padding.after[other];
    const Expr data = reshape(op_.call.args[0], followed_by({conv_.batch, conv_.in_channels}, without(conv_.in)));
    const Expr weight =
        reshape(op_.call.args[1], followed_by({conv_.out_channels, conv_.in_per_group}, without(conv_.kernel)));
    return reshape(b_.op(ops::short_name(ops::kConv2d), {data, weight}, attrs), conv_.result());
  }

  // Of volumes.
  Expr run() {
    ConvAttrs<2> attrs{
        .strides = {conv_.strides[1], conv_.strides[2]},
        .padding = {conv_.padding.before[1], conv_.padding.before[2], conv_.padding.after[1], conv_.padding.after[2]},
        .dilation = {conv_.dilation[1], conv_.dilation[2]},
        .groups = conv_.groups,
        .out_dtype = conv_.out_dtype};
    Expr planes = b_.op(ops::short_name(ops::kConv2d), {images(), weight()}, attrs);
    Expr apart = reshape(planes, {conv_.batch, conv_.out[0], conv_.out_channels, conv_.out[1], conv_.out[2]});
    return permute(apart, {0, 2, 1, 3, 4});
  }

 private:
  Expr reshape(const Expr& x, std::vector<Expr> dims) { return b_.op("reshape", {x, shape_expr(std::move(dims))}); }
  Expr permute(const Expr& x, std::vector<int64_t> axes) { return b_.op("permute_dims", {x}, AxesAttrs{axes}); }
  // Returns dims of an image in place of those of a volume.
  static std::vector<Expr> image_dims(std::vector<Expr> dims) {
    if (dims.size() < 5) return dims;
    dims[3] = simplify(dims[2] * dims[3]);
    dims.erase(dims.begin() + 2);
    return dims;
  }
  Expr pointwise(const Expr& data, const Expr& weight) {
    if (conv_.spatial == 1) return b_.op("nn.conv1d", {data, weight}, ConvAttrs<1>{.out_dtype = conv_.out_dtype});
    return b_.op(ops::short_name(ops::kConv2d), {data, weight}, ConvAttrs<2>{.out_dtype = conv_.out_dtype});
  }
  Expr first_elements(const Expr& data, int64_t axis, int64_t count) {
    if (is_int((*known_shape(data.type()))[static_cast<size_t>(axis)], count)) return data;
    std::vector<Expr> args = {data};
    for (int64_t number : {axis, int64_t{0}, count, int64_t{1}}) args.push_back(tuple({int_imm(number)}));
    return b_.op("strided_slice", args);
  }
  int64_t depth() const { return *as_int(conv_.kernel[0]); }

  // Returns the data that ends with the last step: without what no patch reads, or with zeros behind a patch that is
  // shorter than its step.
  Expr whole_patches() {
    Expr data = op_.call.args[0];
    std::vector<Expr> dims = *known_shape(data.type());
    std::vector<int64_t> widths(2 * dims.size(), 0);
    std::vector<Expr> lists[4];  // axes, begins, ends, steps
    for (size_t d = 0; d < conv_.spatial; ++d) {
      const Expr end = simplify(conv_.out[d] * conv_.strides[d]);
      if (structural_equal(end, conv_.in[d])) continue;
      const Expr numbers[] = {int_imm(static_cast<int64_t>(d) + 2), int_imm(0), end, int_imm(1)};
      for (size_t i = 0; i < 4; ++i) lists[i].push_back(numbers[i]);
      dims[d + 2] = end;
      widths[2 * (d + 2) + 1] = conv_.strides[d] - *as_int(conv_.kernel[d]);
    }
    if (lists[0].empty()) return data;
    if (std::ranges::any_of(widths, [](int64_t width) { return width > 0; }))
      data = b_.op("nn.pad", {data}, PadAttrs{.pad_width = widths});
    std::vector<Expr> args = {data};
    for (const std::vector<Expr>& list : lists) args.push_back(tuple(list));
    return b_.emit(call(op_ref(ops::kStridedSlice), args, write_attrs(SliceAttrs{.assume_inbound = true}),
                        tensor_type(dims, *tensor_dtype(data.type())), op_.span));
  }

  // Returns the planes across that axis that the k-th plane of the weight meets, as many as the result has.
  Expr planes_of(const Expr& data, int64_t axis, int64_t k) {
    const auto position = static_cast<size_t>(axis);
    const std::vector<Expr>& dims = *known_shape(data.type());
    const int64_t begin = k * conv_.dilation[0], stride = conv_.strides[0];
    if (begin == 0 && stride == 1 && structural_equal(dims[position], conv_.out[0])) return data;
    const Expr end = simplify((conv_.out[0] - 1) * stride + (begin + 1));
    std::vector<Expr> args = {data};
    for (const Expr& number : {int_imm(axis), int_imm(begin), end, int_imm(stride)}) args.push_back(tuple({number}));
    std::vector<Expr> result = dims;
    result[position] = conv_.out[0];
    // There are so many planes, which does not follow from the dims alone.
    return b_.emit(call(op_ref(ops::kStridedSlice), args, write_attrs(SliceAttrs{.assume_inbound = true}),
                        tensor_type(result, *tensor_dtype(data.type())), op_.span));
  }

  Expr padded(const Expr& data, size_t axis) {
    const int64_t before = conv_.padding.before[0], after = conv_.padding.after[0];
    if (before == 0 && after == 0) return data;
    std::vector<int64_t> widths(2 * known_shape(data.type())->size(), 0);
    widths[2 * axis] = before, widths[2 * axis + 1] = after;
    return b_.op("nn.pad", {data}, PadAttrs{.pad_width = widths});
  }

  Expr images() {
    Expr data = permute(op_.call.args[0], {0, 2, 1, 3, 4});
    data = padded(data, 1);
    std::vector<Expr> parts;
    const Expr groups = int_imm(conv_.groups), channels = simplify(conv_.in_per_group * depth() * conv_.groups);
    for (int64_t k = 0; k < depth(); ++k) {
      Expr part = planes_of(data, 1, k);
      // The planes of one group stand side by side.
      if (conv_.groups > 1)
        part = reshape(part, {conv_.batch, conv_.out[0], groups, conv_.in_per_group, conv_.in[1], conv_.in[2]});
      parts.push_back(part);
    }
    Expr all = depth() == 1 ? parts[0] : b_.op("concat", {tuple(parts)}, ConcatAttrs{.axis = conv_.groups > 1 ? 3 : 2});
    return reshape(all, {simplify(conv_.batch * conv_.out[0]), channels, conv_.in[1], conv_.in[2]});
  }

  Expr weight() {
    Expr turned = permute(op_.call.args[1], {0, 2, 1, 3, 4});
    return reshape(turned,
                   {conv_.out_channels, simplify(conv_.in_per_group * depth()), conv_.kernel[1], conv_.kernel[2]});
  }

  const OpCall& op_;
  const Conv& conv_;
  Builder& b_;
};

}  // namespace

// Returns whether the window has one element along a dim, and reads every position there.
static bool is_pointwise(const Conv& conv, size_t d) {
  return is_int(conv.kernel[d], 1) && conv.strides[d] == 1 && conv.padding.before[d] == 0 && conv.padding.after[d] == 0;
}

std::optional<Expr> convolution_of_products(const OpCall& op, const Conv& conv, Builder& b) {
  const auto channels = as_int(conv.in_per_group);
  if (conv.groups == 1 || !channels || *channels < 2 || *channels > kMostChannelsOfProduct) return std::nullopt;
  for (size_t d = 0; d < conv.spatial; ++d) {
    if (!is_pointwise(conv, d)) return std::nullopt;
  }
  return Unfolding(op, conv, b).run_products();
}

std::optional<Expr> convolution_of_merged_dims(const OpCall& op, const Conv& conv, Builder& b) {
  for (size_t d : {size_t{1}, size_t{0}}) {
    if (is_pointwise(conv, d) && is_pointwise(conv, d + 1)) return Unfolding(op, conv, b).run_merged(d);
  }
  return std::nullopt;
}

std::optional<Expr> convolution_of_patches(const OpCall& op, const Conv& conv, Builder& b) {
  std::optional<int64_t> elements = as_int(conv.in_channels);
  for (size_t d = 0; elements && d < conv.spatial; ++d) {
    const auto kernel = as_int(conv.kernel[d]);
    // Images of other sizes are read in place; the form for volumes takes three times as long as the copy and the sums.
    const bool fills_data = structural_equal(simplify(conv.out[d] * conv.strides[d]), conv.in[d]) || conv.spatial == 3;
    const bool is_apart = kernel && *kernel > 0 && *kernel <= conv.strides[d] && conv.dilation[d] == 1 &&
                          conv.padding.before[d] == 0 && conv.padding.after[d] == 0 && fills_data;
    elements = is_apart && *elements <= kMostElementsOfPatch ? std::optional(*elements * *kernel) : std::nullopt;
  }
  const bool has_patches =
      elements && *elements > as_int(conv.in_channels).value_or(0) && *elements <= kMostElementsOfPatch;
  if (!has_patches || conv.groups != 1) return std::nullopt;
  return Unfolding(op, conv, b).run_patches();
}

std::optional<Expr> convolution_of_planes(const OpCall& op, const Conv& conv, Builder& b) {
  const auto depth = as_int(conv.kernel[0]), channels = as_int(conv.in_per_group), planes = as_int(conv.out[0]);
  if (!depth || !channels || *channels < (conv.groups > 1 ? kFewestChannelsOfGroup : kFewestChannels) || planes == 0)
    return std::nullopt;
  // Few channels are not worth blocks where windows do not overlap, as those of patches: each element is read once.
  auto overlaps = [&](size_t d) { return as_int(conv.kernel[d]).value_or(INT64_MAX) > conv.strides[d]; };
  if (*channels * *depth < kFewestChannelsOfPatches && !overlaps(1) && !overlaps(2)) return std::nullopt;
  return Unfolding(op, conv, b).run();
}

std::optional<Expr> convolution_of_elements(const OpCall& op, const Conv& conv, Builder& b) {
  const auto taps = as_int(conv.kernel[0]), channels = as_int(conv.in_per_group);
  const bool pays = taps && channels && *taps > 1 && *channels > 0 && *channels * *taps <= kMostElements;
  if (!pays || conv.groups != 1 || conv.strides[0] == 1 || as_int(conv.out[0]) == 0) return std::nullopt;
  return Unfolding(op, conv, b).run_elements();
}

}  // namespace relaxc
