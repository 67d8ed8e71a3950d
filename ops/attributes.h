// The attributes of operators: one struct each, with the defaults. Rows, passes and the importer read them with
// read_attrs<T>(call.attrs) (OpCall::attrs<T>() in a row) and write them with write_attrs(); no other code repeats a
// name or a default.
#pragma once
#include "ir/module.h"

namespace relaxc {

// Reads an attribute whose member takes a value of any kind.
inline bool from_attr(const AttrValue& value, AttrValue& out) {
  out = value;
  return true;
}

// RELAXC_ATTRS(LrnAttrs, (int64_t, size, 1), (double, bias, 1)) declares a struct of these members, each with type,
// name and default, and its fields().
#define RELAXC_ATTRS(Struct, ...)                                                   \
  struct Struct {                                                                   \
    RELAXC_RESCAN(RELAXC_EACH_MEMBER(__VA_ARGS__)) static constexpr auto fields() { \
      return list(RELAXC_RESCAN(RELAXC_EACH_ATTR(Struct, __VA_ARGS__)));            \
    }                                                                               \
  }
#define RELAXC_EACH_MEMBER(attr, ...) RELAXC_MEMBER attr __VA_OPT__(RELAXC_NEXT_MEMBER RELAXC_NO_ARGUMENTS(__VA_ARGS__))
#define RELAXC_NEXT_MEMBER() RELAXC_EACH_MEMBER
#define RELAXC_MEMBER(type, name, ...) type name = __VA_ARGS__;
#define RELAXC_EACH_ATTR(Struct, attr, ...)               \
  field(RELAXC_NAME_TEXT attr, &Struct::RELAXC_NAME attr) \
      __VA_OPT__(, RELAXC_NEXT_ATTR RELAXC_NO_ARGUMENTS(Struct, __VA_ARGS__))
#define RELAXC_NEXT_ATTR() RELAXC_EACH_ATTR
#define RELAXC_NAME(type, name, ...) name
#define RELAXC_NAME_TEXT(type, name, ...) #name

// ---- several groups

using PerDim = std::vector<int64_t>;  // a number per spatial dim
RELAXC_ATTRS(AxisAttrs, (int64_t, axis, 0));
RELAXC_ATTRS(LastAxisAttrs, (int64_t, axis, -1));
RELAXC_ATTRS(OptionalAxisAttrs, (std::optional<int64_t>, axis, {}));
RELAXC_ATTRS(DTypeAttrs, (std::optional<DType>, dtype, {}));

// The default order of the axes of images and weights, where no attribute says otherwise.
constexpr const char* data_layout_of(int spatial) { return spatial == 1 ? "NCW" : spatial == 2 ? "NCHW" : "NCDHW"; }
constexpr const char* kernel_layout_of(int spatial) { return spatial == 1 ? "OIW" : spatial == 2 ? "OIHW" : "OIDHW"; }
constexpr const char* transposed_kernel_layout_of(int spatial) {
  return spatial == 1 ? "IOW" : spatial == 2 ? "IOHW" : "IODHW";
}

// ---- ops/elementwise.cc

RELAXC_ATTRS(CastAttrs, (DType, dtype, {}));
RELAXC_ATTRS(LeakyReluAttrs, (double, alpha, 0.01));
// Above the threshold Relax returns x; ours never overflows and ignores it.
RELAXC_ATTRS(SoftplusAttrs, (double, beta, 1), (double, threshold, 20));
RELAXC_ATTRS(PReluAttrs, (int64_t, axis, 1));  // of an alpha of rank 1

// ---- ops/quantize.cc

RELAXC_ATTRS(QuantizeAttrs, (int64_t, axis, -1), (DType, out_dtype, DType::int_(8)));
RELAXC_ATTRS(DequantizeAttrs, (int64_t, axis, -1), (DType, out_dtype, kFloat32),
             (int64_t, block_size, 0));  // of the axis, that shares a scale; 0: each element has its own; not in Relax

// ---- ops/reduction.cc

RELAXC_ATTRS(ReduceAttrs, (std::optional<std::vector<int64_t>>, axis, {}),  // absent: all axes
             (bool, keepdims, false));
RELAXC_ATTRS(ArgReduceAttrs, (std::optional<int64_t>, axis, {}),  // absent: the position in the flattened tensor
             (bool, keepdims, false), (bool, select_last_index, false));  // among equal elements; not in Relax
RELAXC_ATTRS(ScanAttrs, (std::optional<int64_t>, axis, {}),               // absent: along the flattened tensor
             (std::optional<DType>, dtype, {}),                           // of the result
             (bool, exclusive, false),                                    // without the element itself
             (bool, reverse, false));                                     // from the end; not in Relax

// ---- ops/linear_algebra.cc

RELAXC_ATTRS(MatmulAttrs, (std::optional<DType>, out_dtype, {}));  // absent: the operands'

// ---- ops/einsum.cc

RELAXC_ATTRS(EinsumAttrs, (std::string, subscripts, {}));

// ---- ops/convolution.cc

// Without out_layout and out_dtype the result is like the data.
template <int N>
RELAXC_ATTRS(ConvAttrs, (PerDim, strides, PerDim(N, 1)), (PerDim, padding, PerDim(2 * N, 0)),
             (PerDim, dilation, PerDim(N, 1)), (int64_t, groups, 1), (std::string, data_layout, data_layout_of(N)),
             (std::string, kernel_layout, kernel_layout_of(N)), (std::optional<std::string>, out_layout, {}),
             (std::optional<DType>, out_dtype, {}));
template <int N>
RELAXC_ATTRS(ConvTransposeAttrs, (PerDim, strides, PerDim(N, 1)), (PerDim, padding, PerDim(2 * N, 0)),
             (PerDim, output_padding, PerDim(N, 0)), (PerDim, dilation, PerDim(N, 1)), (int64_t, groups, 1),
             (std::string, data_layout, data_layout_of(N)),
             (std::string, kernel_layout, transposed_kernel_layout_of(N)), (std::optional<std::string>, out_layout, {}),
             (std::optional<DType>, out_dtype, {}));

// ---- ops/pooling.cc

template <int N>
RELAXC_ATTRS(PoolAttrs, (PerDim, pool_size, PerDim(N, 1)), (PerDim, strides, PerDim(N, 1)),
             (PerDim, padding, PerDim(2 * N, 0)), (PerDim, dilation, PerDim(N, 1)), (bool, ceil_mode, false),
             (bool, count_include_pad, false), (std::string, layout, data_layout_of(N)),
             (std::optional<std::string>, out_layout, {}),  // absent: as the data
             (bool, partial_window, false));  // data smaller than the window, by less than a stride, has one window
RELAXC_ATTRS(IndexedPoolAttrs, (PerDim, pool_size, {1}), (PerDim, strides, {1}), (PerDim, padding, {0}),
             (PerDim, dilation, {1}), (bool, ceil_mode, false),
             (int64_t, storage_order, 0),  // 0: row-major positions, 1: column-major
             (bool, partial_window, false));
RELAXC_ATTRS(LpPoolAttrs, (int64_t, p, 2), (PerDim, pool_size, {1}), (PerDim, strides, {1}), (PerDim, padding, {0}),
             (PerDim, dilation, {1}), (bool, ceil_mode, false), (bool, partial_window, false));
template <int N>
RELAXC_ATTRS(AdaptiveAttrs, (std::optional<std::vector<int64_t>>, output_size, {}),  // absent: as the data
             (std::string, layout, data_layout_of(N)), (std::optional<std::string>, out_layout, {}));

// ---- ops/normalization.cc

RELAXC_ATTRS(BatchNormAttrs, (int64_t, axis, 1), (double, epsilon, 1e-5), (bool, center, true), (bool, scale, true),
             (double, momentum, 0.1), (bool, training, true));
RELAXC_ATTRS(LayerNormAttrs, (std::vector<int64_t>, axes, {-1}), (double, epsilon, 1e-5), (bool, center, true),
             (bool, scale, true));
RELAXC_ATTRS(RmsNormAttrs, (std::vector<int64_t>, axes, {-1}), (double, epsilon, 1e-5));
RELAXC_ATTRS(InstanceNormAttrs, (int64_t, channel_axis, 1), (std::vector<int64_t>, axes, {}),  // the spatial ones
             (double, epsilon, 1e-5), (bool, center, true), (bool, scale, true));
RELAXC_ATTRS(GroupNormAttrs, (int64_t, num_groups, 1), (int64_t, channel_axis, 1),
             (std::vector<int64_t>, axes, {}),  // the spatial ones
             (double, epsilon, 1e-5), (bool, center, true), (bool, scale, true));
RELAXC_ATTRS(LrnAttrs, (int64_t, size, 1), (int64_t, axis, 1), (double, alpha, 1e-4), (double, beta, 0.75),
             (double, bias, 1));

// ---- ops/layout.cc

struct AxesAttrs {
  std::optional<std::vector<int64_t>> axes = {};  // absent: reversed
  RELAXC_FIELDS(AxesAttrs, axes);
  // Returns the axes as numbers in [0, rank), as far as they are in range.
  std::vector<int64_t> permutation(size_t rank) const {
    std::vector<int64_t> result;
    for (size_t d = rank; d-- > 0 && !axes;) result.push_back(static_cast<int64_t>(d));
    for (int64_t axis : axes.value_or(std::vector<int64_t>()))
      result.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
    return result;
  }
};
RELAXC_ATTRS(AxisListAttrs, (std::optional<std::vector<int64_t>>, axis, {}));
RELAXC_ATTRS(ConcatAttrs, (std::optional<int64_t>, axis, 0));  // None: the only axis of tensors of rank 1
RELAXC_ATTRS(TileAttrs, (std::vector<int64_t>, repeats, {}));
// Without an axis, the elements of the flattened tensor.
RELAXC_ATTRS(RepeatAttrs, (int64_t, repeats, 1), (std::optional<int64_t>, axis, {}));
RELAXC_ATTRS(LayoutTransformAttrs, (AttrValue, index_map, {}), (AttrValue, pad_value, {}),
             (std::optional<std::vector<int64_t>>, axis_separators, {}),
             (std::optional<std::vector<int64_t>>, input_axis_separators, {}));
RELAXC_ATTRS(MeshgridAttrs, (std::string, indexing, "ij"));

// ---- ops/slice.cc

// Without assume_inbound, negative bounds count from the end, and those out of range are clamped.
RELAXC_ATTRS(SliceAttrs, (bool, assume_inbound, false));
// Required: a number of parts, or the positions where parts after the first begin.
RELAXC_ATTRS(SplitAttrs, (AttrValue, indices_or_sections, {}), (int64_t, axis, 0));

// ---- ops/pad.cc

RELAXC_ATTRS(PadAttrs, (std::vector<int64_t>, pad_width, {}), (std::string, pad_mode, "constant"),
             (double, pad_value, 0));

// ---- ops/index.cc

RELAXC_ATTRS(BucketizeAttrs, (bool, out_int32, false), (bool, right, false));
RELAXC_ATTRS(IndexPutAttrs, (bool, accumulate, false));
RELAXC_ATTRS(CheckIndicesAttrs, (std::string, what, "indices"));  // for the message

// "fast": indices out of range are an error; "clip": they are clamped, negative ones to 0; "wrap": the remainder.
RELAXC_ATTRS(TakeAttrs, (std::optional<int64_t>, axis, {}), (std::string, mode, "fast"));
RELAXC_ATTRS(GatherNdAttrs, (int64_t, batch_dims, 0));
RELAXC_ATTRS(ScatterElementsAttrs, (int64_t, axis, 0), (std::string, reduction, "update"));
RELAXC_ATTRS(ScatterNdAttrs, (std::string, reduction, "update"));
RELAXC_ATTRS(OneHotAttrs, (int64_t, depth, 1), (int64_t, axis, -1));
RELAXC_ATTRS(MultinomialAttrs, (DType, dtype, kInt64));
RELAXC_ATTRS(NgramAttrs, (int64_t, max_skip_count, 0));  // elements between those of an n-gram
RELAXC_ATTRS(ReverseSequenceAttrs, (int64_t, time_axis, 0), (int64_t, batch_axis, 1));

// ---- ops/sort.cc

RELAXC_ATTRS(SortAttrs, (int64_t, axis, -1), (bool, descending, false));
RELAXC_ATTRS(ArgsortAttrs, (int64_t, axis, -1), (bool, descending, false), (DType, dtype, kInt32));
RELAXC_ATTRS(TopKAttrs, (int64_t, k, 1), (int64_t, axis, -1), (std::string, ret_type, "both"), (bool, largest, true),
             (DType, dtype, kInt32));  // dtype: of the indices
RELAXC_ATTRS(DynamicTopKAttrs, (int64_t, axis, -1), (bool, largest, true), (DType, dtype, kInt64));

// ---- ops/create.cc

RELAXC_ATTRS(FillAttrs, (std::optional<DType>, dtype, kFloat32));

// ---- ops/image.cc

RELAXC_ATTRS(PixelShuffleAttrs, (int64_t, upscale_factor, 1));

// The axes that are resampled; the others keep their size. Per axis of the tensor: scales, which may be a tensor
// argument instead, else are output / input; and for tf_crop_and_resize starts, then ends.
RELAXC_ATTRS(ResizeAttrs, (std::vector<int64_t>, axes, {}), (std::vector<double>, scales, {}),
             (std::vector<double>, roi, {}), (std::string, method, "linear"),
             (std::string, coordinate_transformation_mode, "half_pixel"),
             (std::string, rounding_method, "round_prefer_floor"), (double, cubic_alpha, -0.75),
             (bool, exclude_outside, false), (double, extrapolation_value, 0),
             (bool, antialias, false));  // shrinking takes an average over all that a pixel covers
template <int N>
RELAXC_ATTRS(ResizeImageAttrs, (std::vector<double>, roi, std::vector<double>(2 * N)),
             (std::string, layout, data_layout_of(N)), (std::string, method, "linear"),
             (std::string, coordinate_transformation_mode, "half_pixel"), (std::string, rounding_method, "round"),
             (double, cubic_alpha, -0.75), (int64_t, cubic_exclude, 0), (double, extrapolation_value, 0),
             (std::optional<DType>, out_dtype, {}));

// ---- ops/grid.cc

RELAXC_ATTRS(AffineGridAttrs, (bool, align_corners, true));
RELAXC_ATTRS(GridSampleAttrs, (std::string, method, "bilinear"), (std::string, layout, data_layout_of(2)),
             (std::string, padding_mode, "zeros"), (bool, align_corners, true));

// ---- ops/columns.cc

RELAXC_ATTRS(Col2ImAttrs, (PerDim, strides, {1}), (PerDim, padding, {0}), (PerDim, dilation, {1}));
RELAXC_ATTRS(DeformColumnsAttrs, (PerDim, strides, {1}), (PerDim, padding, {0}), (PerDim, dilation, {1}),
             (int64_t, offset_groups, 1));

// ---- ops/signal.cc

RELAXC_ATTRS(DftAttrs, (bool, inverse, false),
             (bool, onesided, false));  // only the first half of the spectrum is there, since the signal is real

// ---- ops/random.cc

RELAXC_ATTRS(RandomUniformAttrs, (double, low, 0), (double, high, 1), (std::optional<DType>, dtype, kFloat32));
RELAXC_ATTRS(RandomNormalAttrs, (double, mean, 0), (double, scale, 1), (std::optional<DType>, dtype, kFloat32));

// ---- ops/attention.cc

RELAXC_ATTRS(AttentionAttrs, (std::optional<double>, scale, {}), (std::optional<std::string>, causal_mask, {}),
             (std::optional<int64_t>, window_size, {}));

// ---- ops/training.cc

RELAXC_ATTRS(DropoutAttrs, (double, rate, 0.5));

RELAXC_ATTRS(LossAttrs, (std::string, reduction, "mean"), (int64_t, ignore_index, -100));

RELAXC_ATTRS(MaskedFillAttrs, (double, value, 0));

// ---- ops/vision.cc

// A box is dropped from the threshold on, or only above it.
RELAXC_ATTRS(AllClassNmsAttrs, (std::string, output_format, "onnx"), (bool, above_threshold, false));
RELAXC_ATTRS(ValidCountsAttrs, (double, score_threshold, 0), (int64_t, id_index, 0), (int64_t, score_index, 1));
RELAXC_ATTRS(NmsAttrs, (int64_t, max_output_size, -1), (double, iou_threshold, 0.5), (bool, force_suppress, false),
             (int64_t, top_k, -1), (int64_t, coord_start, 2), (int64_t, score_index, 1), (int64_t, id_index, 0),
             (bool, return_indices, true), (bool, invalid_to_bottom, false), (double, soft_nms_sigma, 0),
             (double, score_threshold, 0));
RELAXC_ATTRS(MultiboxAttrs, (bool, clip, false), (double, threshold, 0), (std::vector<double>, variances, {1, 1, 1, 1}),
             (bool, keep_background, true), (bool, apply_softmax, true));
RELAXC_ATTRS(RoiAlignAttrs, (std::optional<std::vector<int64_t>>, pooled_size, {}),  // required
             (double, spatial_scale, 1), (int64_t, sample_ratio, -1), (bool, aligned, false),
             (std::string, layout, data_layout_of(2)), (std::string, mode, "avg"));
RELAXC_ATTRS(RoiPoolAttrs, (std::optional<std::vector<int64_t>>, pooled_size, {}),  // required
             (double, spatial_scale, 1), (std::string, layout, data_layout_of(2)));

// ---- ops/distributed.cc

RELAXC_ATTRS(AllReduceAttrs, (std::string, op_type, "sum"), (bool, in_group, true));
RELAXC_ATTRS(AllGatherAttrs, (std::optional<int64_t>, num_workers, {}),  // required
             (bool, in_group, true));
RELAXC_ATTRS(PartAttrs, (std::optional<int64_t>, num_workers, {}),  // required
             (int64_t, axis, 0));

RELAXC_ATTRS(PlacementAttrs, (DeviceMesh, device_mesh, {}),
             (std::string, placement, {}));  // an item for each axis of the mesh: "S[0], R"

// ---- ops/graph.cc

// For each output, the input that becomes it, or -1: a new tensor.
RELAXC_ATTRS(InplaceAttrs, (std::vector<int64_t>, inplace_indices, {}));
RELAXC_ATTRS(DeviceAttrs, (std::string, dst_vdevice, {}));
RELAXC_ATTRS(DeviceHintAttrs, (int64_t, device_type, 1), (int64_t, index, 0), (std::string, memory_scope, "global"));
RELAXC_ATTRS(GradientAttrs, (std::string, te_grad_name, {}), (AttrValue, te_grad_kwargs, Attrs()));
RELAXC_ATTRS(TensorItemAttrs, (int64_t, index, 0));
RELAXC_ATTRS(FormatAttrs, (std::string, format, {}));
RELAXC_ATTRS(StringSplitAttrs, (std::string, delimiter, {}), (int64_t, maxsplit, -1));
RELAXC_ATTRS(PatternAttrs, (std::string, pattern, {}));
RELAXC_ATTRS(SeedAttrs, (int64_t, seed, 0));  // of 32 bits
RELAXC_ATTRS(StringNormalizeAttrs, (std::string, case_change_action, "NONE"), (bool, is_case_sensitive, false),
             (std::string, locale, {}));
RELAXC_ATTRS(DecodeImageAttrs, (std::string, pixel_format, "RGB"));
RELAXC_ATTRS(TokenizeAttrs, (bool, is_token, false), (int64_t, least, 1), (bool, marks, false), (std::string, pad, {}));
RELAXC_ATTRS(SequenceConcatAttrs, (int64_t, axis, 0), (bool, new_axis, false));
RELAXC_ATTRS(SequenceSplitAttrs, (int64_t, axis, 0), (bool, keepdims, true));

}  // namespace relaxc
