// Functions of topi.nn that are made of operators of the graph: what topi.nn.depthwise_conv2d_nchw(...) is in terms of
// R.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "ir/arith.h"
#include "ir/text/topi_call.h"

namespace relaxc::text {

namespace {

Expr index(int64_t number) { return int_imm(number, kInt64); }
// Returns where a letter stands in a layout.
size_t place_of(std::string_view layout, char letter) { return layout.find(letter); }

// ---- Convolutions

// Returns the pads before and behind each spatial axis. topi's "SAME" is that of a stride of 1.
std::vector<int64_t> pads_of(TopiCall& c, const std::function<int64_t(size_t)>& kernel,
                             const std::vector<int64_t>& dilation) {
  size_t count = dilation.size();
  std::string name = c.text("padding", "");
  std::vector<int64_t> result(2 * count);
  if (name == "SAME") {
    for (size_t i = 0; i < count; ++i) {
      int64_t whole = (kernel(i) - 1) * dilation[i];
      result[i] = (whole + 1) / 2;
      result[count + i] = whole - result[i];
    }
    return result;
  }
  if (name == "VALID") return result;
  std::vector<int64_t> given = c.wholes("padding", {0});
  if (given.size() == 2 * count) return given;
  given = c.sizes("padding", count, 0);
  for (size_t i = 0; i < result.size(); ++i) result[i] = given[i % count];
  return result;
}

struct Convolution {
  const char* op;
  std::string_view data, kernel;  // layouts
  bool is_depthwise = false;
};

Expr convolution(TopiCall& c, const Convolution& row) {
  size_t spatial = row.data.size() - 2;
  Expr data = c.tensor("data"), weight = c.tensor("kernel");
  std::string kernel_layout(row.kernel);
  std::vector<int64_t> dilation = c.sizes("dilation", spatial, 1);
  if (c.rank(weight) != static_cast<int64_t>(row.kernel.size()) || c.rank(data) != c.rank(weight))
    c.fail(fmt::format("expected data {} and a kernel {}", row.data, row.kernel));
  size_t first = std::min({place_of(row.kernel, 'D'), place_of(row.kernel, 'H'), place_of(row.kernel, 'W')});
  auto kernel_size = [&, given = weight](size_t i) { return c.dim(given, static_cast<int64_t>(first + i)); };
  int64_t groups = c.whole("groups", 1);
  if (row.is_depthwise) {  // the weights of each channel are those of a group
    const std::vector<Expr> dims = c.shape(weight);
    size_t channels = place_of(row.kernel, 'I'), height = place_of(row.kernel, 'H');
    groups = c.dim(weight, static_cast<int64_t>(channels));
    Expr outputs = simplify(dims[channels] * dims[channels + 1]), one = index(1);
    bool is_first = channels == 0;
    weight = c.reshape(weight, is_first ? std::vector{outputs, one, dims[height], dims[height + 1]}
                                        : std::vector{dims[height], dims[height + 1], one, outputs});
    if (is_first) kernel_layout = "OIHW";
  }
  Attrs attrs = {{"strides", c.sizes("stride", spatial, 1)},
                 {"padding", pads_of(c, kernel_size, dilation)},
                 {"dilation", dilation},
                 {"groups", groups},
                 {"data_layout", std::string(row.data)},
                 {"kernel_layout", kernel_layout}};
  if (c.has("out_dtype")) attrs.set("out_dtype", c.dtype("out_dtype", kFloat32));
  return c.op(row.op, {data, weight}, attrs);
}

Expr conv1d_ncw(TopiCall& c) { return convolution(c, {"nn.conv1d", "NCW", "OIW"}); }
Expr conv1d_nwc(TopiCall& c) { return convolution(c, {"nn.conv1d", "NWC", "WIO"}); }
Expr conv2d_nchw(TopiCall& c) { return convolution(c, {"nn.conv2d", "NCHW", "OIHW"}); }
Expr conv2d_nhwc(TopiCall& c) { return convolution(c, {"nn.conv2d", "NHWC", "HWIO"}); }
// Winograd's transformation is a way to compute the same convolution.
Expr winograd(TopiCall& c, const Convolution& row) {
  if (c.flag("pre_computed", false)) c.fail("weights that are transformed already are not known here");
  return convolution(c, row);
}
Expr conv2d_winograd_nchw(TopiCall& c) { return winograd(c, {"nn.conv2d", "NCHW", "OIHW"}); }
Expr conv2d_winograd_nhwc(TopiCall& c) { return winograd(c, {"nn.conv2d", "NHWC", "HWIO"}); }
Expr conv2d_hwcn(TopiCall& c) { return convolution(c, {"nn.conv2d", "HWCN", "HWIO"}); }
Expr conv3d_ncdhw(TopiCall& c) { return convolution(c, {"nn.conv3d", "NCDHW", "OIDHW"}); }
Expr conv3d_ndhwc(TopiCall& c) { return convolution(c, {"nn.conv3d", "NDHWC", "DHWIO"}); }
Expr depthwise_nchw(TopiCall& c) { return convolution(c, {"nn.conv2d", "NCHW", "IOHW", true}); }
Expr depthwise_nhwc(TopiCall& c) { return convolution(c, {"nn.conv2d", "NHWC", "HWIO", true}); }

// topi.nn.conv2d and its kind say the layout. Before 2022 the dtype stood where the layout of the kernel does.
Expr any_convolution(TopiCall& c, const char* op, std::string_view layout, std::string_view kernel) {
  std::string data = c.text("data_layout", std::string(layout)), stated = c.text("kernel_layout", "");
  bool is_dtype = parse_dtype(stated).has_value();
  std::string spatial(layout.substr(2));
  bool channels_last = data == "N" + spatial + "C", channels_first = data == layout;
  std::string own(kernel);
  if (channels_last || data == spatial + "CN") own = spatial + "IO";
  if (!stated.empty() && !is_dtype) own = stated;
  if (!channels_last && !channels_first && data != spatial + "CN")
    c.fail(fmt::format("layout '{}' of data is not known here; call topi.nn.layout_transform before", data));
  return convolution(c, {op, data, own});
}
Expr conv1d(TopiCall& c) { return any_convolution(c, "nn.conv1d", "NCW", "OIW"); }
Expr conv2d(TopiCall& c) { return any_convolution(c, "nn.conv2d", "NCHW", "OIHW"); }
Expr conv3d(TopiCall& c) { return any_convolution(c, "nn.conv3d", "NCDHW", "OIDHW"); }

// Blocks of channels: the kernel is OIHW with inner parts as large as those of the data.
Expr conv2d_blocked(TopiCall& c) {
  Expr weight = c.tensor("kernel");
  std::string layout = c.text("layout", "NCHW"), out = c.text("out_layout", layout);
  if (c.rank(weight) != 6) c.fail("expected a kernel OIHWio");
  Attrs attrs = {{"strides", c.sizes("stride", 2, 1)},
                 {"padding", pads_of(
                                 c, [&](size_t i) { return c.dim(weight, static_cast<int64_t>(2 + i)); },
                                 c.sizes("dilation", 2, 1))},
                 {"dilation", c.sizes("dilation", 2, 1)},
                 {"data_layout", layout},
                 {"kernel_layout", fmt::format("OIHW{}i{}o", c.dim(weight, 4), c.dim(weight, 5))},
                 {"out_layout", out}};
  if (c.has("out_dtype")) attrs.set("out_dtype", c.dtype("out_dtype", kFloat32));
  return c.op("nn.conv2d", {c.tensor("data"), weight}, attrs);
}

Expr transposed_convolution(TopiCall& c, const char* op, size_t spatial) {
  Expr data = c.tensor("data"), weight = c.tensor("kernel");
  auto kernel = [&](size_t i) { return c.dim(weight, static_cast<int64_t>(2 + i)); };
  Attrs attrs = {{"strides", c.sizes("stride", spatial, 1)},
                 {"padding", pads_of(c, kernel, std::vector<int64_t>(spatial, 1))},
                 {"output_padding", c.sizes("output_padding", spatial, 0)},
                 {"groups", c.whole("groups", 1)}};
  if (c.has("out_dtype")) attrs.set("out_dtype", c.dtype("out_dtype", kFloat32));
  return c.op(op, {data, weight}, attrs);
}
Expr conv1d_transpose(TopiCall& c) { return transposed_convolution(c, "nn.conv1d_transpose", 1); }
Expr conv2d_transpose(TopiCall& c) { return transposed_convolution(c, "nn.conv2d_transpose", 2); }
Expr conv3d_transpose(TopiCall& c) { return transposed_convolution(c, "nn.conv3d_transpose", 3); }

// ---- Pools

Expr pool(TopiCall& c, size_t spatial, std::string_view layout) {
  std::string kind = c.text("pool_type", "max");
  if (kind != "max" && kind != "avg") c.fail(fmt::format("'{}' is not a pool: max or avg", kind));
  std::vector<int64_t> kernel = c.sizes("kernel", spatial, 1);
  Attrs attrs = {{"pool_size", kernel},
                 {"strides", c.sizes("stride", spatial, 1)},
                 {"dilation", c.sizes("dilation", spatial, 1)},
                 {"padding", pads_of(
                                 c, [&](size_t i) { return kernel[i]; }, std::vector<int64_t>(spatial, 1))},
                 {"ceil_mode", c.flag("ceil_mode", false)},
                 {"layout", c.text("layout", std::string(layout))}};
  if (kind == "avg") attrs.set("count_include_pad", c.flag("count_include_pad", true));
  return c.op(fmt::format("nn.{}_pool{}d", kind, spatial).c_str(), {c.tensor("data")}, attrs);
}
Expr pool1d(TopiCall& c) { return pool(c, 1, "NCW"); }
Expr pool2d(TopiCall& c) { return pool(c, 2, "NCHW"); }
Expr pool3d(TopiCall& c) { return pool(c, 3, "NCDHW"); }

// Returns where the layout has its spatial axes: of NCHW4c 2 and 3.
std::vector<int64_t> spatial_axes(std::string_view layout) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] == 'D' || layout[i] == 'H' || layout[i] == 'W') result.push_back(static_cast<int64_t>(i));
  }
  return result;
}

// Pools to a size. A max pool is one of windows, which have to divide the data.
Expr adaptive(TopiCall& c, const std::vector<int64_t>& output, const std::string& layout) {
  Expr data = c.tensor("data");
  const std::vector<int64_t> axes = spatial_axes(layout);
  size_t spatial = axes.size(), count = output.size();
  if (count != spatial) c.fail(fmt::format("{} output sizes for layout {}", count, layout));
  if (c.text("pool_type", "") == "avg")
    return c.op(fmt::format("nn.adaptive_avg_pool{}d", spatial).c_str(), {data},
                {{"output_size", output}, {"layout", layout}});
  std::vector<int64_t> window;
  bool is_global = std::ranges::all_of(output, [](int64_t size) { return size == 1; });
  if (is_global) return c.op("max", {data}, {{"axis", axes}, {"keepdims", true}});
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t size = c.dim(data, axes[i]);
    if (output[i] <= 0 || size % output[i] != 0) c.fail("an adaptive max pool needs windows that divide the data here");
    window.push_back(size / output[i]);
  }
  return c.op(fmt::format("nn.max_pool{}d", spatial).c_str(), {data},
              {{"pool_size", window}, {"strides", window}, {"layout", layout}});
}
Expr adaptive_pool(TopiCall& c) {
  std::string layout = c.text("layout", "NCHW");
  return adaptive(c, c.sizes("output_size", spatial_axes(layout).size(), 1), layout);
}
Expr adaptive_pool1d(TopiCall& c) { return adaptive(c, c.sizes("output_size", 1, 1), c.text("layout", "NCW")); }
Expr adaptive_pool3d(TopiCall& c) { return adaptive(c, c.sizes("output_size", 3, 1), c.text("layout", "NCDHW")); }
Expr global_pool(TopiCall& c) {
  std::string layout = c.text("layout", "NCHW");
  return adaptive(c, std::vector<int64_t>(spatial_axes(layout).size(), 1), layout);
}

// ---- Others

Expr pad(TopiCall& c) {
  Expr data = c.tensor("data");
  std::vector<int64_t> before = c.wholes("pad_before"), behind = c.wholes("pad_after", before), widths;
  if (before.size() != static_cast<size_t>(c.rank(data)) || behind.size() != before.size())
    c.fail(fmt::format("{} and {} pads for a tensor of rank {}", before.size(), behind.size(), c.rank(data)));
  for (size_t i = 0; i < before.size(); ++i) widths.insert(widths.end(), {before[i], behind[i]});
  Attrs attrs = {{"pad_width", widths}};
  attrs.set("pad_value", c.real("pad_value", 0));
  return c.op("nn.pad", {data}, attrs);
}
Expr dense(TopiCall& c) {
  std::vector<Expr> args = {c.tensor("data"), c.tensor("weight")};
  if (c.has("bias")) args.push_back(c.tensor("bias"));
  return c.op("linear", args, c.attrs("out_dtype"));
}
Expr bias_add(TopiCall& c) {
  Expr data = c.tensor("data");
  return c.op("add", {data, c.along(c.tensor("bias"), c.axis("axis", 1, data), c.rank(data))});
}
Expr scale_shift(TopiCall& c, int64_t axis) {
  Expr data = c.tensor("Input");
  Expr scaled = c.op("multiply", {data, c.along(c.tensor("Scale"), axis, c.rank(data))});
  return c.op("add", {scaled, c.along(c.tensor("Shift"), axis, c.rank(data))});
}
Expr scale_shift_nchw(TopiCall& c) { return scale_shift(c, 1); }
Expr scale_shift_nhwc(TopiCall& c) { return scale_shift(c, 3); }

Expr batch_norm(TopiCall& c) {
  Attrs attrs = c.attrs("axis epsilon center scale momentum");
  if (!attrs.has("axis")) attrs.set("axis", 1);
  attrs.set("training", c.flag("training", false));
  std::vector<Expr> args;
  for (const char* name : {"data", "gamma", "beta", "moving_mean", "moving_var"}) args.push_back(c.tensor(name));
  return c.op("nn.batch_norm", args, attrs);
}
Expr lrn(TopiCall& c) {
  Attrs attrs = c.attrs("size axis alpha beta bias");
  if (!attrs.has("bias")) attrs.set("bias", 2.0);
  return c.op("nn.lrn", {c.tensor("data")}, attrs);
}
Expr nll_loss(TopiCall& c) {
  std::vector<Expr> args = {c.tensor("predictions"), c.tensor("targets")};
  if (c.has("weights")) args.push_back(c.tensor("weights"));
  return c.op("nn.nll_loss", args, c.attrs("reduction ignore_index"));
}

Expr upsampling(TopiCall& c) {
  Expr data = c.tensor("data");
  std::string layout = c.text("layout", "NCHW"), method = c.text("method", "nearest_neighbor");
  int64_t first = static_cast<int64_t>(place_of(layout, 'H'));
  bool aligned = c.flag("align_corners", false);
  auto scaled = [&](int64_t axis, std::string_view name) {
    double scale = c.real(name, 1);
    if (scale == std::floor(scale))
      return simplify(c.shape(data)[static_cast<size_t>(axis)] * static_cast<int64_t>(scale));
    return index(static_cast<int64_t>(std::nearbyint(static_cast<double>(c.dim(data, axis)) * scale)));
  };
  if (method == "bilinear") method = "linear";
  if (method == "bicubic") method = "cubic";
  Attrs attrs = {{"layout", layout},
                 {"method", method},
                 {"coordinate_transformation_mode", aligned ? "align_corners" : "asymmetric"}};
  if (method == "nearest_neighbor") attrs.set("rounding_method", aligned ? "round" : "floor");
  return c.op("image.resize2d", {data, shape_expr({scaled(first, "scale_h"), scaled(first + 1, "scale_w")})}, attrs);
}

// Returns the data with its channels second, and back.
Expr channels_second(TopiCall& c, const Expr& data, bool is_last) {
  return is_last ? c.permute(data, {0, 3, 1, 2}) : data;
}
Expr channels_back(TopiCall& c, const Expr& data, bool were_last) {
  return were_last ? c.permute(data, {0, 2, 3, 1}) : data;
}
Expr depth_to_space(TopiCall& c) {
  bool is_last = c.text("layout", "NCHW") == "NHWC";
  Expr data = channels_second(c, c.tensor("data"), is_last);
  int64_t size = c.whole("block_size", 1), channels = c.dim(data, 1) / (size * size);
  if (size < 1 || c.dim(data, 1) % (size * size) != 0) c.fail("the channels do not divide by the blocks");
  const std::vector<Expr> dims = c.shape(data);
  Expr b = index(size);
  bool columns_first = c.text("mode", "DCR") == "DCR";
  Expr parts = columns_first ? c.reshape(data, {dims[0], b, b, index(channels), dims[2], dims[3]})
                             : c.reshape(data, {dims[0], index(channels), b, b, dims[2], dims[3]});
  parts =
      c.permute(parts, columns_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
  return channels_back(
      c, c.reshape(parts, {dims[0], index(channels), simplify(dims[2] * size), simplify(dims[3] * size)}), is_last);
}
Expr space_to_depth(TopiCall& c) {
  bool is_last = c.text("layout", "NCHW") == "NHWC";
  Expr data = channels_second(c, c.tensor("data"), is_last);
  int64_t size = c.whole("block_size", 1);
  if (size < 1 || c.dim(data, 2) % size != 0 || c.dim(data, 3) % size != 0) c.fail("the blocks do not divide the data");
  const std::vector<Expr> dims = c.shape(data);
  Expr b = index(size), rows = index(c.dim(data, 2) / size), columns = index(c.dim(data, 3) / size);
  Expr parts = c.permute(c.reshape(data, {dims[0], dims[1], rows, b, columns, b}), {0, 3, 5, 1, 2, 4});
  return channels_back(c, c.reshape(parts, {dims[0], simplify(dims[1] * (size * size)), rows, columns}), is_last);
}

// Puts values between the elements: each element gets an axis of its own, which is padded.
Expr dilate(TopiCall& c) {
  Expr data = c.tensor("data");
  std::vector<int64_t> strides = c.wholes("strides"), widths, axes, begin, end, ones;
  std::vector<Expr> apart, together;
  if (strides.size() != static_cast<size_t>(c.rank(data)))
    c.fail(fmt::format("{} strides for a tensor of rank {}", strides.size(), c.rank(data)));
  for (size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] < 1) c.fail("a stride is not positive");
    int64_t size = c.dim(data, static_cast<int64_t>(i));
    apart.insert(apart.end(), {index(size), index(1)});
    widths.insert(widths.end(), {0, 0, 0, strides[i] - 1});
    together.push_back(index(size * strides[i]));
    axes.push_back(static_cast<int64_t>(i));
    end.push_back((size - 1) * strides[i] + 1);
  }
  Expr spread =
      c.op("nn.pad", {c.reshape(data, apart)}, {{"pad_width", widths}, {"pad_value", c.real("dilation_value", 0)}});
  auto numbers = [](const std::vector<int64_t>& values) { return tuple(map_each(values, index)); };
  std::vector<int64_t> zeros(axes.size(), 0);
  ones.assign(axes.size(), 1);
  return c.op("strided_slice",
              {c.reshape(spread, together), numbers(axes), numbers(zeros), numbers(end), numbers(ones)});
}

constexpr TopiComposition kNnFunctions[] = {
    {"nn.adaptive_pool", "data output_size pool_type layout", adaptive_pool},
    {"nn.adaptive_pool1d", "data output_size pool_type layout", adaptive_pool1d},
    {"nn.adaptive_pool3d", "data output_size pool_type layout", adaptive_pool3d},
    {"nn.batch_norm", "data gamma beta moving_mean moving_var axis epsilon center scale training momentum", batch_norm},
    {"nn.bias_add", "data bias axis", bias_add},
    {"nn.conv1d", "data kernel|weight stride|strides padding dilation groups data_layout kernel_layout out_dtype",
     conv1d},
    {"nn.conv1d_ncw", "data kernel stride|strides padding dilation out_dtype", conv1d_ncw},
    {"nn.conv1d_nwc", "data kernel stride|strides padding dilation out_dtype", conv1d_nwc},
    {"nn.conv1d_transpose_ncw", "data kernel stride padding out_dtype output_padding", conv1d_transpose},
    {"nn.conv2d",
     "data|input|Input kernel|filter|Filter stride|strides padding dilation data_layout|layout kernel_layout out_dtype",
     conv2d},
    {"nn.conv2d_NCHWc", "data kernel stride padding dilation layout out_layout out_dtype", conv2d_blocked},
    {"nn.conv2d_hwcn", "data|Input kernel|Filter stride|strides padding dilation out_dtype", conv2d_hwcn},
    {"nn.conv2d_nchw", "data|Input kernel|Filter stride|strides padding dilation out_dtype", conv2d_nchw},
    {"nn.conv2d_nhwc",
     "data|Input kernel|Filter stride|strides padding dilation out_dtype auto_scheduler_rewritten_layout "
     "meta_schedule_original_shape",
     conv2d_nhwc},
    {"nn.conv2d_transpose_nchw", "data|Input kernel|Filter stride|strides padding out_dtype output_padding",
     conv2d_transpose},
    {"nn.conv3d", "data|Input kernel|Filter stride|strides padding dilation groups data_layout kernel_layout out_dtype",
     conv3d},
    {"nn.conv3d_ncdhw", "data|Input kernel|Filter stride|strides padding dilation groups out_dtype", conv3d_ncdhw},
    {"nn.conv3d_ndhwc", "data|Input kernel|Filter stride|strides padding dilation groups out_dtype", conv3d_ndhwc},
    {"nn.conv3d_transpose_ncdhw", "data|Input kernel|Filter stride|strides padding out_dtype output_padding",
     conv3d_transpose},
    {"nn.conv2d_winograd_nchw",
     "data kernel|weight stride|strides padding dilation out_dtype pre_computed auto_scheduler_rewritten_layout",
     conv2d_winograd_nchw},
    {"nn.conv2d_winograd_nhwc",
     "data kernel|weight stride|strides padding dilation out_dtype pre_computed auto_scheduler_rewritten_layout",
     conv2d_winograd_nhwc},
    {"nn.dense", "data weight bias out_dtype auto_scheduler_rewritten_layout meta_schedule_original_shape", dense},
    {"nn.depth_to_space", "data block_size layout mode", depth_to_space},
    {"nn.depthwise_conv2d_nchw", "data|Input kernel|Filter stride|strides padding dilation out_dtype", depthwise_nchw},
    {"nn.depthwise_conv2d_nhwc", "data|Input kernel|Filter stride|strides padding dilation kernel_layout out_dtype",
     depthwise_nhwc},
    {"nn.dilate", "data strides dilation_value", dilate},
    {"nn.global_pool", "data pool_type layout", global_pool},
    {"nn.group_conv1d_ncw", "data kernel stride|strides padding dilation groups out_dtype", conv1d_ncw},
    {"nn.group_conv1d_nwc", "data kernel stride|strides padding dilation groups out_dtype", conv1d_nwc},
    {"nn.group_conv2d_nchw", "data|Input kernel|Filter stride|strides padding dilation groups out_dtype", conv2d_nchw},
    {"nn.group_conv2d_nhwc", "data|Input kernel|Filter stride|strides padding dilation groups out_dtype", conv2d_nhwc},
    {"nn.lrn", "data size axis alpha beta bias", lrn},
    {"nn.nll_loss", "predictions targets weights reduction ignore_index", nll_loss},
    {"nn.pad", "data pad_before pad_after pad_value", pad},
    {"nn.pool1d", "data kernel stride dilation padding pool_type ceil_mode layout count_include_pad", pool1d},
    {"nn.pool2d", "data kernel stride dilation padding pool_type ceil_mode layout count_include_pad", pool2d},
    {"nn.pool3d", "data kernel stride dilation padding pool_type ceil_mode layout count_include_pad", pool3d},
    {"nn.scale_shift_nchw", "Input Scale Shift", scale_shift_nchw},
    {"nn.scale_shift_nhwc", "Input Scale Shift", scale_shift_nhwc},
    {"nn.space_to_depth", "data block_size layout", space_to_depth},
    {"nn.upsampling", "data scale_h scale_w layout method align_corners", upsampling}};

}  // namespace

std::span<const TopiComposition> topi_nn_functions() { return kNnFunctions; }

}  // namespace relaxc::text
