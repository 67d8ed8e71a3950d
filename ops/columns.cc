// Images and the columns of their windows: columns added up to images (torch's fold), and columns sampled at places
// that another tensor moves.
#include "ir/op_names.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/taps.h"
#include "ops/window.h"

namespace relaxc {

namespace {

// The windows of a Col2Im, whose columns hold [channel, place in the window] along axis 1 and windows along axis 2.
struct Columns {
  std::vector<Expr> image, kernel, counts;
  std::vector<int64_t> strides, dilation;
  Padding padding;

  explicit Columns(const OpCall& op) : image(scalar_list(op, 1)), kernel(scalar_list(op, 2)) {
    Col2ImAttrs attrs = op.attrs<Col2ImAttrs>();
    size_t spatial = image.size();
    if (kernel.size() != spatial) op.fail("{} dims of the image and {} of the window", spatial, kernel.size());
    strides = per_dim(op, attrs.strides, spatial, "strides", 1);
    dilation = per_dim(op, attrs.dilation, spatial, "dilation", 1);
    padding = read_padding(op, attrs.padding, spatial);
    for (size_t d = 0; d < spatial; ++d)
      counts.push_back(
          window_count(op, image[d], padding.before[d] + padding.after[d], kernel[d], strides[d], dilation[d]));
  }
};
Type infer_col2im(const OpCall& op) {
  require_rank(op, 0, 3);
  Columns columns(op);
  const std::vector<Expr>& shape = op.shape(0);
  Expr places = simplify(product(columns.kernel)), channels = simplify(floor_div(shape[1], places));
  op.require_equal(simplify(channels * places), shape[1], "rows of the columns, and channels times the window");
  op.require_equal(simplify(product(columns.counts)), shape[2], "numbers of columns and of windows");
  return tensor_type(followed_by({shape[0], channels}, columns.image), op.dtype(0));
}
// Each pixel is the sum over the places in a window of the windows that have it there.
PrimFuncRef lower_col2im(const OpCall& op) {
  auto [b, x] = OpProgram(op);
  Columns columns(op);
  DType dtype = accumulation_dtype(op.dtype(0));
  const Buffer data = x[0];
  Buffer sum = b.reduce("T_col2im_sum", dtype, *known_shape(infer_col2im(op)), columns.kernel, zero(dtype), combine_sum,
                        [&](Axes i, Axes r) {
                          Expr is_there = bool_imm(true);
                          std::vector<Expr> window;
                          for (size_t d = 0; d < r.size(); ++d) {
                            Expr begin = i[d + 2] + columns.padding.before[d] - r[d] * columns.dilation[d];
                            window.push_back(floor_div(begin, columns.strides[d]));
                            is_there = is_there && begin >= int_imm(0) && window[d] < columns.counts[d];
                            if (columns.strides[d] > 1)
                              is_there = is_there && equal(floor_mod(begin, columns.strides[d]), int_imm(0));
                          }
                          Expr row = i[1] * product(columns.kernel) + flatten_index(r, columns.kernel);
                          Expr element = load(data, {i[0], row, flatten_index(window, columns.counts)});
                          return if_then_else(is_there, cast_to(element, dtype), zero(dtype));
                        });
  return b.finish({as_dtype(b, sum, op.dtype(0), "T_col2im")});
}

// Deformable convolution (Dai et al., 2017): each place in a window has an offset, which each group of channels shares.
Type infer_deform_columns(const OpCall& op) {
  DeformColumnsAttrs attrs = op.attrs<DeformColumnsAttrs>();
  const std::vector<Expr>&data = op.shape(0), &offset = op.shape(1);
  size_t spatial = data.size() - std::min<size_t>(data.size(), 2);
  if (spatial < 1 || offset.size() != data.size())
    op.fail("data has rank {} and the offsets {}, expected 3 or more", data.size(), offset.size());
  std::vector<Expr> kernel = scalar_list(op, 2);
  if (kernel.size() != spatial) op.fail("{} dims of the window, expected {}", kernel.size(), spatial);
  Expr places = simplify(product(kernel));
  if (attrs.offset_groups < 1) op.fail("offset_groups is {}", attrs.offset_groups);
  op.require_equal(data[0], offset[0], "batch sizes of data and offsets");
  op.require_equal(offset[1], simplify(places * (attrs.offset_groups * static_cast<int64_t>(spatial))),
                   "channels of the offsets");
  op.require_multiple(data[1], attrs.offset_groups, "offset_groups does not divide the channels");
  if (op.size() > 3) {
    require_rank(op, 3, op.rank(0));
    op.require_equal(op.shape(3)[1], simplify(places * attrs.offset_groups), "channels of the mask");
    for (size_t d = 0; d < data.size(); ++d) {
      if (d != 1) op.require_equal(op.shape(3)[d], offset[d], "dims of the mask and the offsets");
    }
  }
  std::vector<Expr> result = {data[0], simplify(data[1] * places)};
  return tensor_type(followed_by(result, {offset.begin() + 2, offset.end()}), op.dtype(0));
}
// Adds up the elements around the place, each with the product of its distances' weights. Outside there are zeros.
Expr interpolated(const Buffer& data, const std::vector<std::vector<taps::Tap>>& axes, std::vector<Expr>& source,
                  const Expr& inside, size_t axis) {
  const std::vector<Expr>& dims = buffer_type(data).shape;
  if (axis == axes.size()) return if_then_else(inside, cast_to(load(data, source), kFloat64), taps::real(0));
  std::optional<Expr> sum;
  for (const taps::Tap& tap : axes[axis]) {
    source[axis + 2] = tap.position;
    Expr is_inside = inside && taps::is_inside(tap.position, dims[axis + 2]);
    Expr term = tap.weight * interpolated(data, axes, source, is_inside, axis + 1);
    sum = sum ? *sum + term : term;
  }
  return *sum;
}
Expr deform_columns_element(const OpCall& op, Inputs x, Axes i) {
  DeformColumnsAttrs attrs = op.attrs<DeformColumnsAttrs>();
  size_t spatial = op.shape(0).size() - 2;
  std::vector<int64_t> strides = per_dim(op, attrs.strides, spatial, "strides", 1);
  std::vector<int64_t> dilation = per_dim(op, attrs.dilation, spatial, "dilation", 1);
  std::vector<int64_t> before = read_padding(op, attrs.padding, spatial).before;
  std::vector<Expr> kernel = scalar_list(op, 2);
  Expr places = product(kernel), channel = floor_div(i[1], places), place = floor_mod(i[1], places);
  Expr group = floor_div(channel * attrs.offset_groups, op.shape(0)[1]);
  std::vector<Expr> in_window = unflatten_index(place, kernel), source = i;
  source[1] = channel;
  std::vector<std::vector<taps::Tap>> axes;
  for (size_t d = 0; d < spatial; ++d) {
    Expr row = (group * places + place) * static_cast<int64_t>(spatial) + static_cast<int64_t>(d);
    Expr start = i[d + 2] * strides[d] - before[d] + in_window[d] * dilation[d];
    Expr moved = taps::as_real(start) + taps::as_real(load(x[1], with_item(i, 1, row)));
    axes.push_back(taps::linear_taps(moved));
  }
  Expr value = interpolated(x[0], axes, source, bool_imm(true), 0);
  if (x.size() > 2) value = value * taps::as_real(load(x[2], with_item(i, 1, group * places + place)));
  return cast_to(value, op.dtype(0));
}

}  // namespace

std::vector<OpRow> columns_ops() {
  return {
      {.name = "relax.nn.col2im",
       .doc = "columns of windows added up to images",
       .inputs = {{"data", "[N, C * window, windows]"}, {"image_shape", "spatial dims"}, {"block_shape", "the window"}},
       .attrs = op_attrs<Col2ImAttrs>(),
       .pattern = OpPattern::kReduction,
       .infer = infer_col2im,
       .infer_partial = infer_unknown,
       .legalize = lower_col2im},
      by_element({.name = "relax.nn.deform_columns",
                  .doc = "the columns of windows whose places are moved by offsets, by linear interpolation",
                  .inputs = {{"data", "[N, C, spatial...]"},
                             {"offset", "[N, groups * window * spatial dims, windows...]"},
                             {"block_shape", "the window"},
                             {"mask", "[N, groups * window, windows...]: factors", OpInput::Arity::kOptional}},
                  .attrs = op_attrs<DeformColumnsAttrs>(),
                  .infer = infer_deform_columns,
                  .infer_partial = infer_unknown},
                 deform_columns_element),
  };
}

}  // namespace relaxc
