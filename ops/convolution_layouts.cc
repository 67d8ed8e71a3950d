// The layouts of convolutions: channels in blocks of a vector, [N, C / b, H, W, b], "NCHW16c" where vectors have 16
// lanes. A sequence [N, C, L] is an image of one row, "NC_W16c". Weights stay in the plain order here; pack_weights
// moves them into that of the kernel, or transforms them for Winograd's algorithm.
//
// A picture, an image of few channels, is read as it is, or where a product of bytes can be summed with its neighbours,
// with a channel of zeros that makes four, "NCHW4c". Filters that do not fill the last block are padded where
// little is wasted: the next convolution does not read the padding. Windows of bytes get zeros until their rows are as
// long as instructions take them: those of pictures the rows of matrix registers, those with one filter for each
// channel the products that a lane sums. Groups whose channels fill half of a block become one with zeros between them,
// so an infinite element makes NaNs in the other half, too.
#include <numeric>

#include "ops/attributes.h"
#include "ops/common.h"
#include "ops/convolution.h"
#include "support/checked_math.h"

namespace relaxc {

namespace {

constexpr int64_t kFewestPixelsToPack = 16;  // for fewer, weights that are not constant stay as they are
constexpr int64_t kMostMergedGroups = 2;     // into one whose channels fill blocks
constexpr int64_t kLongRow = 2;              // in vectors: of such rows the last vector wastes little
constexpr int64_t kWideRow = 32;             // of results, in which those beyond the width are few
constexpr int64_t kLargeWindow = 49;         // in elements: 7x7
// A line of a far plane (128 planes of 64 KiB and 12 filters of 2x2: half of 4.9 ms).
constexpr double kCyclesOfFarLine = 50;
constexpr int64_t kManyPlanes = 64;  // of which a processor does not fetch the next lines by itself
// Of bytes and bfloat16: without blocks, and in blocks with sums of several products in one instruction.
constexpr double kTimeOfPlainBytes = 2, kTimeOfDots = 0.25;

// Returns the attributes of the same convolution of images of one row.
ConvAttrs<2> as_images(const ConvAttrs<1>& attrs) {
  return {.strides = {1, attrs.strides[0]},
          .padding = {0, attrs.padding[0], 0, attrs.padding[1]},
          .dilation = {1, attrs.dilation[0]},
          .groups = attrs.groups,
          .out_dtype = attrs.out_dtype};
}
ConvAttrs<2> as_images(const ConvAttrs<2>& attrs) { return attrs; }

// Returns the dims of a sequence as those of an image of one row, and others as they are.
std::vector<Expr> image_dims(const std::vector<Expr>& dims) {
  return dims.size() == 3 ? with_new_item(dims, 2, int_imm(1)) : dims;
}
Expr reshaped(const Expr& x, std::vector<Expr> dims, Builder& b) {
  if (dims.size() == known_shape(x.type())->size()) return x;
  return b.op("reshape", {x, shape_expr(std::move(dims))});
}

// Returns the weight [O, I, H, W] of a convolution in groups as that of groups `merged` times as large, [O, merged * I,
// H, W], with zeros between channels and filters of different ones. Such a block [merged, merged] of groups is a
// diagonal, whose elements are merged + 1 apart: zeros behind each make rows of so many, of which the last zeros are
// cut off.
Expr merge_groups(const Expr& weight, int64_t groups, int64_t merged, Builder& b) {
  if (merged == 1) return weight;
  const std::vector<int64_t> dims = *constant_shape(weight.type());
  const int64_t filters = dims[0] / groups, size = dims[1] * dims[2] * dims[3], sets = groups / merged;
  auto shaped = [&](const Expr& x, const std::vector<int64_t>& to) {
    return b.op("reshape", {x, shape_expr(int_imms(to))});
  };
  auto swapped = [&](const Expr& x) { return b.op("permute_dims", {x}, Attrs{{"axes", to_attr(PerDim{0, 2, 1, 3})}}); };
  Expr apart = swapped(shaped(weight, {sets, merged, filters, size}));  // [sets, filters, merged, size]
  apart = b.op("nn.pad", {apart}, PadAttrs{.pad_width = {0, 0, 0, 0, 0, 0, 0, merged * size}});
  apart = shaped(apart, {sets, filters, merged * (merged + 1) * size});
  std::vector<Expr> args = {apart};  // axis, begin, end, step
  for (int64_t number : {int64_t{2}, int64_t{0}, merged * merged * size, int64_t{1}})
    args.push_back(shape_expr({int_imm(number)}));
  apart = b.op("strided_slice", args, SliceAttrs{.assume_inbound = true});
  return shaped(swapped(shaped(apart, {sets, filters, merged, merged * size})),
                {dims[0], merged * dims[1], dims[2], dims[3]});
}

// A convolution whose channels lie in blocks.
struct Blocks {
  int64_t block, filters, depth, groups;
  int64_t padded(int64_t channels) const { return round_up(channels, block); }
  // Returns whether so many channels fill enough of their blocks.
  bool are_filled(int64_t channels) const { return 2 * channels >= padded(channels); }
  bool is_depthwise() const { return relaxc::is_depthwise(groups, filters, depth); }
  // Returns how many times as many products as without padding those of whole blocks are. Pictures have no blocks.
  double padding(bool is_picture) const {
    auto of = [&](int64_t count) { return static_cast<double>(padded(count)) / static_cast<double>(count); };
    return of(filters) * (is_picture || groups > 1 ? 1 : of(depth));
  }
  // Returns how many groups make one whose channels and filters fill blocks; nullopt if none do, or too many for the
  // products with zeros that this takes.
  std::optional<int64_t> merged_groups(bool is_constant) const {
    if (groups == 1 || is_depthwise()) return 1;
    for (int64_t merged = 1; merged <= (is_constant ? kMostMergedGroups : 1); ++merged) {
      bool fills = merged * depth % block == 0 && merged * (filters / groups) % block == 0;
      if (fills && groups % merged == 0) return merged;
    }
    return std::nullopt;
  }
};

// A convolution's form, for estimates of its time in units of the machine's least: one multiply-add per lane and cycle.
// The figures are fitted to 110 convolutions on x86-64 with AVX-512 (bench/operators/convolutions.py).
struct Form {
  int64_t window;
  bool is_depthwise, is_grouped, is_picture;
  bool has_strides, is_dilated;
  bool has_long_rows, has_known_rows;
  double filled_lanes;       // of a vector along a row, as a part of all
  bool has_whole_points;     // all pixels, read point by point, fill vectors
  bool is_narrow, has_dots;  // bytes or bfloat16; sums of several products in one instruction

  // In the plain order vectors lie along rows of pixels, or across all of them where these are read point by point.
  double plain_time() const {
    if (is_narrow) return kTimeOfPlainBytes;
    if (window == 1 && !has_strides && !is_grouped && has_whole_points) return 1.1;
    if (is_depthwise)
      return (has_strides ? 2.5 : window >= kLargeWindow ? 1.8 : has_long_rows ? 1.1 : 1.3) / filled_lanes;
    if (has_strides) return is_picture ? 1.5 : is_grouped ? 1.9 : 2.5;
    // The last vector of a row of unknown length may be far from full. A window of one element reads few of them.
    if (has_long_rows) return window == 1 || has_known_rows ? 1.2 : 1.4;
    return is_grouped ? 1.4 : 3.5;
  }
  // In blocks they lie along channels, and Winograd's algorithm may compute windows of 3x3.
  double time_in_blocks() const {
    if (is_narrow && has_dots) return kTimeOfDots;
    const bool is_winograd = window == 9 && !is_grouped && !is_picture && !has_strides && !is_dilated;
    return is_winograd ? 0.45 : 1;
  }
};

// Returns whether enough pixels use weights that are packed at run time.
bool gains_by_packing(const std::vector<Expr>& image) {
  Expr count = image[0];
  for (size_t d = 2; d < image.size(); ++d) count = count * image[d];
  auto pixels = as_int(simplify(count));
  return !pixels || *pixels >= kFewestPixelsToPack;
}

// The numbers that a convolution multiplies, where a weight of 16 bits is widened as it is read. It adds up float32 and
// bfloat16 in float32, and bytes in int32.
enum class Numbers : uint8_t { kFloat32, kBytes, kBFloat16 };
std::optional<Numbers> numbers_of(const Type& data, const Type& weight, const Type& result) {
  const std::optional<DType> x = tensor_dtype(data), w = tensor_dtype(weight), y = tensor_dtype(result);
  if (w == DType::int_(8) && y == kInt32) return Numbers::kBytes;
  if (x == w && w == DType::bfloat16() && y == kFloat32) return Numbers::kBFloat16;
  const bool is_widened = w && w->is_float() && w->bits == 16;
  return x == kFloat32 && y == kFloat32 && (w == kFloat32 || is_widened) ? std::optional(Numbers::kFloat32)
                                                                         : std::nullopt;
}

Form form_of(const LayoutQuestion& q, const Blocks& blocks, const ConvAttrs<2>& attrs, Numbers numbers,
             bool is_picture) {
  const std::vector<Expr>& result = *known_shape(q.result);
  const std::vector<int64_t> weight = *constant_shape(q.op.type(1));
  int64_t window = 1;
  for (size_t d = 2; d < weight.size(); ++d) window *= weight[d];
  Expr points = int_imm(1);
  for (size_t d = 2; d < result.size(); ++d) points = points * result[d];
  const auto num_points = as_int(simplify(points));
  const double width = guessed_extent(result.back(), q.sizes);
  return {.window = window,
          .is_depthwise = blocks.is_depthwise(),
          .is_grouped = blocks.groups > 1,
          .is_picture = is_picture,
          .has_strides = attrs.strides[0] * attrs.strides[1] > 1,
          .is_dilated = attrs.dilation[0] * attrs.dilation[1] > 1,
          .has_long_rows = width >= static_cast<double>(kLongRow * blocks.block),
          .has_known_rows = as_int(result.back()).has_value(),
          .filled_lanes = std::min(1.0, width / static_cast<double>(blocks.block)),
          .has_whole_points = num_points && *num_points % blocks.block == 0,
          .is_narrow = numbers != Numbers::kFloat32,
          .has_dots =
              numbers == Numbers::kBytes ? q.target.has_int8_dot : q.target.has_bfloat16_dot && !blocks.is_depthwise()};
}

ConvolutionSizes sizes_of(const LayoutQuestion& q, int64_t groups) {
  const std::vector<int64_t> weight = *constant_shape(q.op.type(1));
  return {.dtype = *tensor_dtype(q.op.type(0)),
          .channels = weight[1],
          .filters = weight[0],
          .groups = groups,
          .height = weight.size() == 3 ? 1 : weight[2],
          .width = weight.back(),
          .may_use_tiles = q.op.arg(1).is<Constant>() && gains_by_packing(*known_shape(q.result))};
}

// Returns the cycles for which the plain order waits for an image that no cache of a core holds: neighbours in a sum
// are in planes far apart, more than a processor foresees.
double cycles_of_far_planes(const LayoutQuestion& q, const std::vector<Expr>& image, int64_t planes_of_sum) {
  if (planes_of_sum < kManyPlanes) return 0;
  const double bytes = guessed_elements(image, q.sizes) * tensor_dtype(q.op.type(0))->bytes();
  return bytes > static_cast<double>(q.target.l2_of_core()) ? bytes / q.target.l2.line * kCyclesOfFarLine : 0;
}

// Returns whether windows of a picture, side by side, are read in place with few results beyond its width.
bool has_wide_rows(const std::vector<Expr>& result) {
  const auto height = as_int(result[2]), width = as_int(result.back());
  return height && width && *width >= kWideRow;
}

template <int N>
std::optional<LayoutOffer> offer_of(const LayoutQuestion& q) {
  const auto plain = q.op.attrs<ConvAttrs<N>>();
  const Type &data = q.op.type(0), &weight = q.op.type(1);
  const auto weight_dims = constant_shape(weight);
  const std::vector<Expr>*data_dims = known_shape(data), *result = known_shape(q.result);
  const bool is_plain = plain.data_layout == data_layout_of(N) && plain.kernel_layout == kernel_layout_of(N) &&
                        plain.out_layout.value_or(plain.data_layout) == plain.data_layout;
  const auto numbers = numbers_of(data, weight, q.result);
  const bool is_constant = q.op.arg(1).is<Constant>();
  if (!weight_dims || !data_dims || !result || !is_plain || !numbers || !(is_constant || gains_by_packing(*result)))
    return std::nullopt;
  ConvAttrs<2> attrs = as_images(plain);
  const ConvolutionSizes sizes = sizes_of(q, attrs.groups);
  const auto block = channels_in_block(q.target, sizes);
  if (!block) return std::nullopt;
  const Blocks blocks{*block, (*weight_dims)[0], (*weight_dims)[1], attrs.groups};
  const auto merged = blocks.merged_groups(is_constant);
  const auto channels = as_int((*data_dims)[1]);
  const bool is_picture = blocks.groups == 1 && blocks.depth <= kPictureChannels && !q.layouts[0];
  if (!merged || !blocks.are_filled(blocks.filters) || (!is_picture && !(channels && blocks.are_filled(*channels))))
    return std::nullopt;
  const Layout layout = *Layout::parse(fmt::format("{}{}c", N == 1 ? "NC_W" : "NCHW", *block), data_layout_of(N));
  attrs.out_layout = fmt::format("NCHW{}c", *block);
  const bool has_four = is_picture && *numbers != Numbers::kFloat32 && is_constant;
  const Layout image_of_four = *Layout::parse(N == 1 ? "NC_W4c" : "NCHW4c", data_layout_of(N));
  attrs.data_layout = has_four ? "NCHW4c" : is_picture ? attrs.data_layout : *attrs.out_layout;
  const bool may_have_zeros = *numbers == Numbers::kBytes && is_constant && attrs.dilation[1] == 1 &&
                              (blocks.is_depthwise() || (has_four && has_wide_rows(*result)));
  const int64_t zeros = may_have_zeros ? zeros_in_window(q.target, sizes) : 0;
  attrs.padding[3] += zeros;
  attrs.groups = blocks.is_depthwise() ? blocks.padded(blocks.filters) : attrs.groups / *merged;
  auto emit = [=](const std::vector<Expr>& tensors, Builder& b) {
    const bool is_read_as_is = is_picture && !has_four;
    const Expr image =
        is_read_as_is ? reshaped(tensors[0], image_dims(*known_shape(tensors[0].type())), b) : tensors[0];
    Expr w = reshaped(tensors[1], image_dims(*known_shape(tensors[1].type())), b);
    const int64_t new_channels = has_four ? kPictureChannels - blocks.depth : 0;
    if (has_four || zeros > 0) w = b.op("nn.pad", {w}, PadAttrs{.pad_width = {0, 0, 0, new_channels, 0, 0, 0, zeros}});
    w = merge_groups(w, blocks.groups, *merged, b);
    if (const int64_t rest = blocks.padded(blocks.filters) - blocks.filters; rest > 0)
      w = b.op("nn.pad", {w}, PadAttrs{.pad_width = {0, rest, 0, 0, 0, 0, 0, 0}});
    return b.op("nn.conv2d", {image, w}, attrs);
  };
  const Form form = form_of(q, blocks, attrs, *numbers, is_picture);
  const double products = guessed_elements(*result, q.sizes) * static_cast<double>(blocks.depth * form.window);
  const double with_zeros = static_cast<double>(*merged) * blocks.padding(is_picture);
  const double gain = products * (form.plain_time() - with_zeros * form.time_in_blocks()) /
                          static_cast<double>(q.target.products_per_cycle()) +
                      (form.window == 1 ? 0 : cycles_of_far_planes(q, *data_dims, blocks.depth));
  const std::optional<Layout> image_layout = has_four     ? std::optional(image_of_four)
                                             : is_picture ? std::nullopt
                                                          : std::optional(layout);
  return LayoutOffer{.operands = {image_layout, std::nullopt},
                     .result = layout,
                     .emit = emit,
                     .gain = gain,
                     .is_decision = true,
                     .becomes = N == 1 ? "nn.conv2d" : ""};
}

}  // namespace

std::optional<Layout> weight_layout_of(const Call& conv2d, int64_t group) {
  const auto attrs = read_attrs<ConvAttrs<2>>(conv2d.attrs);
  const auto weight = constant_shape(conv2d.args[1].type());
  const auto out = Layout::parse(attrs.out_layout.value_or(attrs.data_layout), data_layout_of(2));
  const int64_t lanes = out ? out->block_of(1) : 1;
  if (!weight || weight->size() != 4 || out->text() != fmt::format("NCHW{}c", lanes) || lanes == 1) return std::nullopt;
  const auto data = Layout::parse(attrs.data_layout, data_layout_of(2));
  const int64_t image_block = data ? data->block_of(1) : 1, channels = std::gcd((*weight)[1], image_block);
  const bool has_lanes = is_depthwise(attrs.groups, (*weight)[0], (*weight)[1]) && image_block == lanes;
  if (has_lanes && group > 1 && (*weight)[3] % group == 0 && attrs.dilation.back() == 1)
    return Layout::parse(fmt::format("OIHW{}o{}w", lanes, group));
  if (channels == 1) return Layout::parse(fmt::format("OIHW{}o", lanes));
  if (channels % group != 0 || group == 1) return Layout::parse(fmt::format("OIHW{}i{}o", channels, lanes));
  if (channels == group) return Layout::parse(fmt::format("OIHW{}o{}i", lanes, group));
  return Layout::parse(fmt::format("OIHW{}i{}o{}i", channels / group, lanes, group));
}

template <>
std::optional<LayoutOffer> layouts_of_convolution<1>(const LayoutQuestion& q) {
  return offer_of<1>(q);
}
template <>
std::optional<LayoutOffer> layouts_of_convolution<2>(const LayoutQuestion& q) {
  return offer_of<2>(q);
}

}  // namespace relaxc
