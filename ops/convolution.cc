// Convolutions over one to three spatial dims. Both directions lower to an optional injective stage "pad_temp" and one
// reduction block whose body is out += pad_temp[n, g * icg + ic, o * stride + k * dilation] * weight[oc, ic, k].
// Schedules expect this form. Its loops are in the order of the layouts; "NCHW16c" is [N, C / 16, H, W, 16]. In a graph
// a transposed convolution is decomposed into a convolution of the input as it is, and one of volumes into one of
// images. As a tensor program of its own it spreads and pads the input in the first stage, then convolves with the
// flipped kernel.
#include "ops/convolution.h"

#include "ir/builder.h"
#include "ops/attributes.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "tir/analysis/annotations.h"
#include "tir/analysis/block_layouts.h"

namespace relaxc {

namespace {

// Returns n / groups, which must be a whole number.
Expr per_group(const OpCall& op, const Expr& channels, int64_t groups, const char* what) {
  op.require_multiple(channels, groups, fmt::format("groups do not divide the {} channels", what));
  return floor_div(channels, groups);
}

template <int N, class A>
Conv check_common(const OpCall& op, const A& attrs, std::string_view kernel_layout) {
  Layout data_layout = read_layout(op, attrs.data_layout, data_layout_of(N), "data layout");
  Layout weight_layout = read_layout(op, attrs.kernel_layout, kernel_layout, "kernel layout");
  for (size_t i : {0, 1}) {
    int64_t rank = (i == 0 ? data_layout : weight_layout).rank();
    if (op.rank(i) != rank) op.fail("{} has rank {}, expected {}", i == 0 ? "data" : "weight", op.rank(i), rank);
  }
  DType out_dtype = product_dtype(op, attrs.out_dtype);
  if (attrs.groups < 1) op.fail("groups is {}, expected at least 1", attrs.groups);
  std::vector<Expr> x = data_layout.to_plain(op.shape(0)), w = weight_layout.to_plain(op.shape(1));
  return Conv{.spatial = N,
              .strides = per_dim(op, attrs.strides, N, "strides", 1),
              .dilation = per_dim(op, attrs.dilation, N, "dilation", 1),
              .padding = read_padding(op, attrs.padding, N),
              .groups = attrs.groups,
              .out_dtype = out_dtype,
              .batch = x[0],
              .in_channels = x[1],
              .out_channels = w[0],
              .in_per_group = w[1],
              .out_per_group = w[1],
              .kernel = {w.begin() + 2, w.end()},
              .out = {},
              .in = {x.begin() + 2, x.end()},
              .data_layout = data_layout,
              .weight_layout = weight_layout,
              .out_layout = result_layout(op, attrs.out_layout, attrs.data_layout, data_layout_of(N))};
}

void check_channels(const OpCall& op, const Expr& weight, const Expr& data) {
  op.require_equal(weight, data, "input channels of the weight and of the data");
}

template <int N>
Conv check_conv(const OpCall& op) {
  auto attrs = op.attrs<ConvAttrs<N>>();
  Conv conv = check_common<N>(op, attrs, kernel_layout_of(N));
  Expr in_data = per_group(op, conv.in_channels, conv.groups, "input");
  // When the layout splits the channels into blocks, the weight need not read the last channels of the last block.
  int64_t block = conv.data_layout.block_of(1);
  auto read = as_int(conv.in_per_group), stored = as_int(in_data);
  bool has_unread = conv.groups == 1 && read && stored && *read < *stored && *read > *stored - block;
  if (!has_unread) check_channels(op, conv.in_per_group, in_data);
  conv.out_per_group = per_group(op, conv.out_channels, conv.groups, "output");
  for (size_t d = 0; d < N; ++d) {
    conv.out.push_back(window_count(op, conv.in[d], conv.padding.before[d] + conv.padding.after[d], conv.kernel[d],
                                    conv.strides[d], conv.dilation[d]));
  }
  return conv;
}

// Returns the name of the reduction block: "conv2d_nchw".
std::string block_name(std::string_view kind, const Conv& conv, std::string data_layout) {
  for (char& c : data_layout) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("conv{}d_{}{}", conv.spatial, kind, data_layout);
}

// Makes the reduction block. Its loops over the result and over the window are in the order of their layouts, and
// window_layout is the weight's without the output channels. `source` has the padded data. weight_at returns the
// weight's plain indices from the output channel and the plain indices in the window, [C / groups, spatial...].
Buffer contract(ComputeBuilder& b, const OpCall& op, const Conv& conv, const Layout& window_layout,
                const std::string& name, const Buffer& source, const Buffer& weight,
                const std::vector<int64_t>& strides,
                const std::function<std::vector<Expr>(const Expr& channel, Axes reduced)>& weight_at) {
  DType dtype = accumulation_dtype(conv.out_dtype);
  std::vector<Expr> result = dims_in(op, conv.out_layout, conv.result());
  std::vector<Expr> reduced = dims_in(op, window_layout, followed_by({conv.in_per_group}, conv.kernel));
  auto product_at = [&](Axes axes, Axes reduced_axes) {
    Analyzer facts = facts_of_axes(axes, result);
    for (size_t d = 0; d < reduced.size(); ++d) facts.bind(cast<Var>(reduced_axes[d]), int_imm(0), reduced[d]);
    std::vector<Expr> i = conv.out_layout.to_plain_index(axes), r = window_layout.to_plain_index(reduced_axes);
    Expr first = conv.groups == 1 ? int_imm(0) : floor_div(i[1], conv.out_per_group) * conv.in_per_group;
    std::vector<Expr> indices = {i[0], first + r[0]};
    for (size_t d = 0; d < conv.spatial; ++d) indices.push_back(i[d + 2] * strides[d] + r[d + 1] * conv.dilation[d]);
    Expr data = load(source, conv.data_layout.from_plain_index(indices, facts));
    return cast_to(data, dtype) *
           cast_to(load(weight, conv.weight_layout.from_plain_index(weight_at(i[1], r), facts)), dtype);
  };
  Buffer out = b.reduce(name, dtype, result, reduced, zero(dtype), combine_sum, product_at);
  const BlockLayouts layouts{conv.out_layout, window_layout, {conv.data_layout, conv.weight_layout}};
  const bool is_plain = conv.data_layout.is_plain() && conv.out_layout.is_plain() && conv.weight_layout.is_plain();
  if (!is_plain) b.annotate(annotation<"layouts">(), layouts_attr(layouts));
  return as_dtype(b, out, conv.out_dtype, name + "_cast");
}

template <int N>
PrimFuncRef lower_conv(const OpCall& op) {
  Conv conv = check_conv<N>(op);
  auto attrs = op.attrs<ConvAttrs<N>>();
  auto [b, x] = OpProgram(op);
  if (is_int(conv.in_per_group, 0)) op.fail("the data has no channels");
  if (const auto& padding = conv.padding; padding.any()) {
    std::vector<Expr> padded = {conv.batch, conv.in_channels};
    for (size_t d = 0; d < N; ++d) {
      int64_t more = padding.before[d] + padding.after[d];
      padded.push_back(more == 0 ? conv.in[d] : conv.in[d] + more);
    }
    x[0] = pad_stage(b, op, x[0], conv.data_layout, padding.before, padded, zero(op.dtype(0)));
  }
  return b.finish(
      {contract(b, op, conv, conv.weight_layout.without('O'), block_name("", conv, attrs.data_layout), x[0], x[1],
                conv.strides, [](const Expr& channel, Axes r) { return with_new_item(r, 0, channel); })});
}

template <int N>
Conv check_transposed(const OpCall& op) {
  auto attrs = op.attrs<ConvTransposeAttrs<N>>();
  Conv conv = check_common<N>(op, attrs, transposed_kernel_layout_of(N));
  // The weight is [C, O / groups, ...].
  check_channels(op, conv.out_channels, conv.in_channels);
  conv.out_per_group = conv.in_per_group;
  conv.in_per_group = per_group(op, conv.in_channels, conv.groups, "input");
  conv.out_channels = conv.out_per_group * conv.groups;
  std::vector<int64_t> extra = per_dim(op, attrs.output_padding, N, "output_padding", 0);
  for (size_t d = 0; d < N; ++d) {
    // The extent is (in - 1) * stride + dilation * (kernel - 1) + 1 - padding + output_padding, its constants gathered.
    int64_t rest = 1 + extra[d] - conv.strides[d] - conv.padding.before[d] - conv.padding.after[d];
    auto known = as_int(conv.kernel[d]);
    if (known && *known < 1) op.fail("the window has extent {}, expected at least 1", *known);
    Expr spread = conv.in[d] * conv.strides[d];
    conv.out.push_back(known ? spread + (rest + conv.dilation[d] * (*known - 1))
                             : spread + (conv.kernel[d] - 1) * conv.dilation[d] + rest);
    if (as_int(conv.out[d]).value_or(0) < 0) op.fail("the padding is larger than the result");
  }
  return conv;
}

// Makes pad_temp[n, c, p] = data[n, c, (p - shift) / stride] where that is an element of the data, and 0 elsewhere,
// with shift = dilation * (kernel - 1) - padding before. The transposed convolution is the convolution of pad_temp
// (stride 1) with the flipped kernel.
Buffer spread_stage(ComputeBuilder& b, const Conv& conv, const Buffer& data) {
  const BufferType& type = buffer_type(data);
  std::vector<Expr> shape = {conv.batch, conv.in_channels}, shifts;
  for (size_t d = 0; d < conv.spatial; ++d) {
    Expr reach = (conv.kernel[d] - 1) * conv.dilation[d];
    shape.push_back(conv.out[d] + reach);
    shifts.push_back(reach - conv.padding.before[d]);
  }
  return b.compute("pad_temp", type.dtype, shape, [&](Axes i) {
    Expr inside = bool_imm(true);
    std::vector<Expr> indices = {i[0], i[1]};
    for (size_t d = 0; d < conv.spatial; ++d) {
      Expr position = i[d + 2] - shifts[d];
      Expr index = floor_div(position, conv.strides[d]);
      inside = inside && position >= int_imm(0) && index < type.shape[d + 2];
      if (conv.strides[d] > 1) inside = inside && equal(floor_mod(position, conv.strides[d]), int_imm(0));
      indices.push_back(index);
    }
    return if_then_else(inside, load(data, indices), zero(type.dtype));
  });
}

template <int N>
void require_plain_layouts(const OpCall& op) {
  auto attrs = op.attrs<ConvTransposeAttrs<N>>();
  require_layout(op, attrs.data_layout, data_layout_of(N), "data layout");
  require_layout(op, attrs.kernel_layout, transposed_kernel_layout_of(N), "kernel layout");
  require_layout(op, attrs.out_layout.value_or(""), data_layout_of(N), "out layout");
}

template <int N>
PrimFuncRef lower_transposed(const OpCall& op) {
  Conv conv = check_transposed<N>(op);
  require_plain_layouts<N>(op);
  if (is_int(conv.in_channels, 0)) op.fail("the data has no channels");
  auto [b, x] = OpProgram(op);
  Buffer source = spread_stage(b, conv, x[0]);
  auto weight_at = [&](const Expr& channel, Axes r) {
    Expr first = conv.groups == 1 ? int_imm(0) : floor_div(channel, conv.out_per_group) * conv.in_per_group;
    std::vector<Expr> indices = {first + r[0], conv.groups == 1 ? channel : floor_mod(channel, conv.out_per_group)};
    for (size_t d = 0; d < N; ++d) indices.push_back(conv.kernel[d] - 1 - r[d + 1]);
    return indices;
  };
  return b.finish(
      {contract(b, op, conv, Layout(data_layout_of(N)).without('N'), block_name("transpose_", conv, data_layout_of(N)),
                source, x[1], std::vector<int64_t>(N, 1), weight_at)});
}

template <int N>
Expr decompose_transposed(const OpCall& op, Builder& b) {
  Conv conv = check_transposed<N>(op);
  require_plain_layouts<N>(op);
  bool is_fixed = std::ranges::all_of(conv.kernel, [](const Expr& extent) { return as_int(extent).has_value(); });
  if (!is_fixed) return b.op(op.name(), op.call.args, op.call.attrs);  // lowered as it is
  return convolution_of_phases(op, conv, b);
}

// The other forms of a convolution over N dims in the plain layouts, in the order in which they are tried.
using OtherForm = std::optional<Expr> (*)(const OpCall&, const Conv&, Builder&);
template <int N>
std::vector<OtherForm> other_forms() {
  std::vector<OtherForm> forms = {convolution_of_products, convolution_of_patches};
  if constexpr (N == 3) {
    forms.insert(forms.end(), {convolution_of_merged_dims, convolution_of_planes});
  } else {
    if (N == 1) forms.push_back(convolution_of_elements);
    forms.push_back(convolution_of_read_taps<N>);
  }
  return forms;
}

template <int N>
Expr decompose_conv(const OpCall& op, Builder& b) {
  const Conv conv = check_conv<N>(op);
  const auto attrs = op.attrs<ConvAttrs<N>>();
  const bool is_plain = attrs.data_layout == data_layout_of(N) && attrs.kernel_layout == kernel_layout_of(N) &&
                        attrs.out_layout.value_or(attrs.data_layout) == attrs.data_layout;
  for (OtherForm form : is_plain ? other_forms<N>() : std::vector<OtherForm>()) {
    if (auto result = form(op, conv, b)) return *result;
  }
  return b.op(op.name(), op.call.args, op.call.attrs);  // lowered as it is
}

template <int N, class A>
OpRow conv_row(const char* kind, std::string doc, const char* weight, Conv (*check)(const OpCall&),
               PrimFuncRef (*lower)(const OpCall&)) {
  return {.name = fmt::format("relax.nn.conv{}d{}", N, kind),
          .doc = std::move(doc),
          .inputs = {{"data", "tensor [N, C, ...]"}, {"weight", weight}},
          .attrs = with_default_from(op_attrs<A>(), "out_layout", "data_layout"),
          .pattern = OpPattern::kAnchor,
          .infer = [=](const OpCall& op) { return check(op).type(op); },
          .infer_partial =
              [](const OpCall& op) {
                A attrs = op.attrs<A>();
                Layout out = result_layout(op, attrs.out_layout, attrs.data_layout, data_layout_of(N));
                return tensor_type_of_rank(out.rank(), tensor_dtype(infer_stated_dtype(op)));
              },
          .legalize = lower};
}
template <int N>
void add_convolutions(std::vector<OpRow>& rows) {
  rows.push_back(
      conv_row<N, ConvAttrs<N>>("",
                                fmt::format("convolution of data {} with weight {}; integers accumulate in out_dtype",
                                            data_layout_of(N), kernel_layout_of(N)),
                                "tensor [O, C / groups, ...]", check_conv<N>, lower_conv<N>));
  rows.back().decompose = decompose_conv<N>;
  if constexpr (N < 3) rows.back().layouts = layouts_of_convolution<N>;
  rows.push_back(conv_row<N, ConvTransposeAttrs<N>>(
      "_transpose",
      fmt::format("transposed convolution (gradient of conv) of data {} with weight {}", data_layout_of(N),
                  transposed_kernel_layout_of(N)),
      "tensor [C, O / groups, ...]", check_transposed<N>, lower_transposed<N>));
  rows.back().decompose = decompose_transposed<N>;
}

}  // namespace

std::vector<OpRow> convolution_ops() {
  std::vector<OpRow> rows;
  add_convolutions<1>(rows);
  add_convolutions<2>(rows);
  add_convolutions<3>(rows);
  return rows;
}

}  // namespace relaxc
