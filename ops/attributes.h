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

// Declares a struct of one attribute: RELAXC_ONE_ATTR(DropoutAttrs, double, rate, 0.5) is
// struct DropoutAttrs { double rate = 0.5; RELAXC_FIELDS(DropoutAttrs, rate); }.
#define RELAXC_ONE_ATTR(Struct, type, member, otherwise) \
  struct Struct {                                        \
    type member = otherwise;                             \
    RELAXC_FIELDS(Struct, member);                       \
  }

// ---- several groups

using PerDim = std::vector<int64_t>;  // a number per spatial dim
RELAXC_ONE_ATTR(AxisAttrs, int64_t, axis, 0);
RELAXC_ONE_ATTR(LastAxisAttrs, int64_t, axis, -1);
RELAXC_ONE_ATTR(OptionalAxisAttrs, std::optional<int64_t>, axis, {});
RELAXC_ONE_ATTR(DTypeAttrs, std::optional<DType>, dtype, {});

// The default order of the axes of images and weights, where no attribute says otherwise.
constexpr const char* data_layout_of(int spatial) { return spatial == 1 ? "NCW" : spatial == 2 ? "NCHW" : "NCDHW"; }
constexpr const char* kernel_layout_of(int spatial) { return spatial == 1 ? "OIW" : spatial == 2 ? "OIHW" : "OIDHW"; }
constexpr const char* transposed_kernel_layout_of(int spatial) {
  return spatial == 1 ? "IOW" : spatial == 2 ? "IOHW" : "IODHW";
}

// ---- ops/elementwise.cc

struct CastAttrs {
  DType dtype;
  RELAXC_FIELDS(CastAttrs, dtype);
};
RELAXC_ONE_ATTR(LeakyReluAttrs, double, alpha, 0.01);
struct SoftplusAttrs {
  double beta = 1, threshold = 20;  // above the threshold Relax returns x; ours never overflows and ignores it
  RELAXC_FIELDS(SoftplusAttrs, beta, threshold);
};
RELAXC_ONE_ATTR(PReluAttrs, int64_t, axis, 1);  // of an alpha of rank 1

struct QuantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = DType::int_(8);
  RELAXC_FIELDS(QuantizeAttrs, axis, out_dtype);
};
struct DequantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = kFloat32;
  RELAXC_FIELDS(DequantizeAttrs, axis, out_dtype);
};

// ---- ops/reduction.cc

struct ReduceAttrs {
  std::optional<std::vector<int64_t>> axis = {};  // absent: all axes
  bool keepdims = false;
  RELAXC_FIELDS(ReduceAttrs, axis, keepdims);
};
struct ArgReduceAttrs {
  std::optional<int64_t> axis = {};  // absent: the position in the flattened tensor
  bool keepdims = false;
  bool select_last_index = false;  // among equal elements; not in Relax
  RELAXC_FIELDS(ArgReduceAttrs, axis, keepdims, select_last_index);
};
struct ScanAttrs {
  std::optional<int64_t> axis = {};  // absent: along the flattened tensor
  std::optional<DType> dtype = {};   // of the result
  bool exclusive = false;            // without the element itself
  bool reverse = false;              // from the end; not in Relax
  RELAXC_FIELDS(ScanAttrs, axis, dtype, exclusive, reverse);
};

// ---- ops/linear_algebra.cc

RELAXC_ONE_ATTR(MatmulAttrs, std::optional<DType>, out_dtype, {});  // absent: the operands'

// ---- ops/einsum.cc

RELAXC_ONE_ATTR(EinsumAttrs, std::string, subscripts, {});

// ---- ops/convolution.cc

template <int N>
struct ConvAttrs {
  PerDim strides = PerDim(N, 1), padding = PerDim(2 * N, 0), dilation = PerDim(N, 1);
  int64_t groups = 1;
  std::string data_layout = data_layout_of(N), kernel_layout = kernel_layout_of(N);
  std::optional<std::string> out_layout = {};  // absent: as the data
  std::optional<DType> out_dtype = {};         // absent: as the data
  RELAXC_FIELDS(ConvAttrs, strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype);
  // Returns whether data, weight and result are in the default layouts.
  bool has_plain_layout() const {
    const ConvAttrs plain;
    return data_layout == plain.data_layout && kernel_layout == plain.kernel_layout &&
           out_layout.value_or(data_layout) == plain.data_layout;
  }
};
template <int N>
struct ConvTransposeAttrs {
  PerDim strides = PerDim(N, 1), padding = PerDim(2 * N, 0), output_padding = PerDim(N, 0), dilation = PerDim(N, 1);
  int64_t groups = 1;
  std::string data_layout = data_layout_of(N), kernel_layout = transposed_kernel_layout_of(N);
  std::optional<std::string> out_layout = {};
  std::optional<DType> out_dtype = {};
  RELAXC_FIELDS(ConvTransposeAttrs, strides, padding, output_padding, dilation, groups, data_layout, kernel_layout,
                out_layout, out_dtype);
};

// ---- ops/pooling.cc

template <int N>
struct PoolAttrs {
  PerDim pool_size = PerDim(N, 1), strides = PerDim(N, 1), padding = PerDim(2 * N, 0), dilation = PerDim(N, 1);
  bool ceil_mode = false, count_include_pad = false;
  std::string layout = data_layout_of(N);
  std::optional<std::string> out_layout = {};  // absent: as the data
  RELAXC_FIELDS(PoolAttrs, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout);
};
struct IndexedPoolAttrs {
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false;
  int64_t storage_order = 0;  // 0: row-major positions, 1: column-major
  RELAXC_FIELDS(IndexedPoolAttrs, pool_size, strides, padding, dilation, ceil_mode, storage_order);
};
struct LpPoolAttrs {
  int64_t p = 2;
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false;
  RELAXC_FIELDS(LpPoolAttrs, p, pool_size, strides, padding, dilation, ceil_mode);
};
template <int N>
struct AdaptiveAttrs {
  std::optional<std::vector<int64_t>> output_size = {};  // absent: as the data
  std::string layout = data_layout_of(N);
  std::optional<std::string> out_layout = {};
  RELAXC_FIELDS(AdaptiveAttrs, output_size, layout, out_layout);
};

// ---- ops/normalization.cc

struct BatchNormAttrs {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  double momentum = 0.1;
  bool training = true;
  RELAXC_FIELDS(BatchNormAttrs, axis, epsilon, center, scale, momentum, training);
};
struct LayerNormAttrs {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAXC_FIELDS(LayerNormAttrs, axes, epsilon, center, scale);
};
struct RmsNormAttrs {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  RELAXC_FIELDS(RmsNormAttrs, axes, epsilon);
};
struct InstanceNormAttrs {
  int64_t channel_axis = 1;
  std::vector<int64_t> axes = {};  // the spatial ones
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAXC_FIELDS(InstanceNormAttrs, channel_axis, axes, epsilon, center, scale);
};
struct GroupNormAttrs {
  int64_t num_groups = 1, channel_axis = 1;
  std::vector<int64_t> axes = {};  // the spatial ones
  double epsilon = 1e-5;
  bool center = true, scale = true;
  RELAXC_FIELDS(GroupNormAttrs, num_groups, channel_axis, axes, epsilon, center, scale);
};
struct LrnAttrs {
  int64_t size = 1, axis = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
  RELAXC_FIELDS(LrnAttrs, size, axis, alpha, beta, bias);
};

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
RELAXC_ONE_ATTR(AxisListAttrs, std::optional<std::vector<int64_t>>, axis, {});
RELAXC_ONE_ATTR(ConcatAttrs, std::optional<int64_t>, axis, 0);  // None: the only axis of tensors of rank 1
RELAXC_ONE_ATTR(TileAttrs, std::vector<int64_t>, repeats, {});
struct RepeatAttrs {
  int64_t repeats = 1;
  std::optional<int64_t> axis = {};  // absent: of the flattened tensor
  RELAXC_FIELDS(RepeatAttrs, repeats, axis);
};

struct LayoutTransformAttrs {
  AttrValue index_map = {}, pad_value = {};
  std::optional<std::vector<int64_t>> axis_separators = {}, input_axis_separators = {};
  RELAXC_FIELDS(LayoutTransformAttrs, index_map, pad_value, axis_separators, input_axis_separators);
};
RELAXC_ONE_ATTR(MeshgridAttrs, std::string, indexing, "ij");

// ---- ops/slice.cc

// Without assume_inbound, negative bounds count from the end, and those out of range are clamped.
RELAXC_ONE_ATTR(SliceAttrs, bool, assume_inbound, false);
struct SplitAttrs {
  // Required: a number of parts, or the positions where parts after the first begin.
  AttrValue indices_or_sections = {};
  int64_t axis = 0;
  RELAXC_FIELDS(SplitAttrs, indices_or_sections, axis);
};
// ---- ops/pad.cc

struct PadAttrs {
  std::vector<int64_t> pad_width = {};
  std::string pad_mode = "constant";
  double pad_value = 0;
  RELAXC_FIELDS(PadAttrs, pad_width, pad_mode, pad_value);
};

// ---- ops/index.cc

struct BucketizeAttrs {
  bool out_int32 = false, right = false;
  RELAXC_FIELDS(BucketizeAttrs, out_int32, right);
};
RELAXC_ONE_ATTR(IndexPutAttrs, bool, accumulate, false);
RELAXC_ONE_ATTR(CheckIndicesAttrs, std::string, what, "indices");  // for the message

struct TakeAttrs {
  std::optional<int64_t> axis = {};
  // "fast": indices out of range are an error; "clip": they are clamped, negative ones to 0; "wrap": the remainder.
  std::string mode = "fast";
  RELAXC_FIELDS(TakeAttrs, axis, mode);
};
RELAXC_ONE_ATTR(GatherNdAttrs, int64_t, batch_dims, 0);
struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction = "update";
  RELAXC_FIELDS(ScatterElementsAttrs, axis, reduction);
};
RELAXC_ONE_ATTR(ScatterNdAttrs, std::string, reduction, "update");
struct OneHotAttrs {
  int64_t depth = 1, axis = -1;
  RELAXC_FIELDS(OneHotAttrs, depth, axis);
};
RELAXC_ONE_ATTR(MultinomialAttrs, DType, dtype, kInt64);
struct ReverseSequenceAttrs {
  int64_t time_axis = 0, batch_axis = 1;
  RELAXC_FIELDS(ReverseSequenceAttrs, time_axis, batch_axis);
};

// ---- ops/sort.cc

struct SortAttrs {
  int64_t axis = -1;
  bool descending = false;
  RELAXC_FIELDS(SortAttrs, axis, descending);
};
struct ArgsortAttrs {
  int64_t axis = -1;
  bool descending = false;
  DType dtype = kInt32;
  RELAXC_FIELDS(ArgsortAttrs, axis, descending, dtype);
};
struct TopKAttrs {
  int64_t k = 1, axis = -1;
  std::string ret_type = "both";  // or "values", "indices"
  bool largest = true;
  DType dtype = kInt32;  // of the indices
  RELAXC_FIELDS(TopKAttrs, k, axis, ret_type, largest, dtype);
};
struct DynamicTopKAttrs {
  int64_t axis = -1;
  bool largest = true;
  DType dtype = kInt64;
  RELAXC_FIELDS(DynamicTopKAttrs, axis, largest, dtype);
};

// ---- ops/create.cc

RELAXC_ONE_ATTR(FillAttrs, std::optional<DType>, dtype, kFloat32);

// ---- ops/image.cc

struct ResizeAttrs {
  std::vector<int64_t> axes = {};   // the axes that are resampled; the others keep their size
  std::vector<double> scales = {};  // per axis of the tensor; empty: a tensor argument, else output / input
  std::vector<double> roi = {};     // tf_crop_and_resize: starts, then ends, per axis of the tensor
  std::string method = "linear";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "round_prefer_floor";
  double cubic_alpha = -0.75;
  bool exclude_outside = false;
  double extrapolation_value = 0;
  RELAXC_FIELDS(ResizeAttrs, axes, scales, roi, method, coordinate_transformation_mode, rounding_method, cubic_alpha,
                exclude_outside, extrapolation_value);
};
template <int N>
struct ResizeImageAttrs {
  std::vector<double> roi = std::vector<double>(2 * N);
  std::string layout = data_layout_of(N), method = "linear", coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "round";
  double cubic_alpha = -0.75;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  std::optional<DType> out_dtype = {};
  RELAXC_FIELDS(ResizeImageAttrs, roi, layout, method, coordinate_transformation_mode, rounding_method, cubic_alpha,
                cubic_exclude, extrapolation_value, out_dtype);
};
RELAXC_ONE_ATTR(AffineGridAttrs, bool, align_corners, true);
struct GridSampleAttrs {
  std::string method = "bilinear";
  std::string layout = "NCHW";
  std::string padding_mode = "zeros";
  bool align_corners = true;
  RELAXC_FIELDS(GridSampleAttrs, method, layout, padding_mode, align_corners);
};

RELAXC_ONE_ATTR(PixelShuffleAttrs, int64_t, upscale_factor, 1);

// ---- ops/attention.cc

struct AttentionAttrs {
  std::optional<double> scale = {};
  std::optional<std::string> causal_mask = {};
  std::optional<int64_t> window_size = {};
  RELAXC_FIELDS(AttentionAttrs, scale, causal_mask, window_size);
};
// ---- ops/training.cc

RELAXC_ONE_ATTR(DropoutAttrs, double, rate, 0.5);

struct LossAttrs {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  RELAXC_FIELDS(LossAttrs, reduction, ignore_index);
};

RELAXC_ONE_ATTR(MaskedFillAttrs, double, value, 0);

// ---- ops/vision.cc

RELAXC_ONE_ATTR(AllClassNmsAttrs, std::string, output_format, "onnx");
struct ValidCountsAttrs {
  double score_threshold = 0;
  int64_t id_index = 0, score_index = 1;
  RELAXC_FIELDS(ValidCountsAttrs, score_threshold, id_index, score_index);
};
struct NmsAttrs {
  int64_t max_output_size = -1;
  double iou_threshold = 0.5;
  bool force_suppress = false;
  int64_t top_k = -1, coord_start = 2, score_index = 1, id_index = 0;
  bool return_indices = true, invalid_to_bottom = false;
  double soft_nms_sigma = 0, score_threshold = 0;
  RELAXC_FIELDS(NmsAttrs, max_output_size, iou_threshold, force_suppress, top_k, coord_start, score_index, id_index,
                return_indices, invalid_to_bottom, soft_nms_sigma, score_threshold);
};
struct MultiboxAttrs {
  bool clip = false;
  double threshold = 0;
  std::vector<double> variances = {1, 1, 1, 1};
  bool keep_background = true, apply_softmax = true;
  RELAXC_FIELDS(MultiboxAttrs, clip, threshold, variances, keep_background, apply_softmax);
};
struct RoiAlignAttrs {
  std::optional<std::vector<int64_t>> pooled_size = {};  // required
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  bool aligned = false;
  std::string layout = "NCHW", mode = "avg";
  RELAXC_FIELDS(RoiAlignAttrs, pooled_size, spatial_scale, sample_ratio, aligned, layout, mode);
};
struct RoiPoolAttrs {
  std::optional<std::vector<int64_t>> pooled_size = {};  // required
  double spatial_scale = 1;
  std::string layout = "NCHW";
  RELAXC_FIELDS(RoiPoolAttrs, pooled_size, spatial_scale, layout);
};

// ---- ops/distributed.cc

struct AllReduceAttrs {
  std::string op_type = "sum";
  bool in_group = true;
  RELAXC_FIELDS(AllReduceAttrs, op_type, in_group);
};
struct AllGatherAttrs {
  std::optional<int64_t> num_workers = {};  // required
  bool in_group = true;
  RELAXC_FIELDS(AllGatherAttrs, num_workers, in_group);
};
struct PartAttrs {
  std::optional<int64_t> num_workers = {};  // required
  int64_t axis = 0;
  RELAXC_FIELDS(PartAttrs, num_workers, axis);
};

struct PlacementAttrs {
  DeviceMesh device_mesh;
  std::string placement = {};  // an item for each axis of the mesh: "S[0], R"
  RELAXC_FIELDS(PlacementAttrs, device_mesh, placement);
};

// ---- ops/graph.cc

// For each output, the input that becomes it, or -1: a new tensor.
RELAXC_ONE_ATTR(InplaceAttrs, std::vector<int64_t>, inplace_indices, {});
RELAXC_ONE_ATTR(DeviceAttrs, std::string, dst_vdevice, {});
struct DeviceHintAttrs {
  int64_t device_type = 1, index = 0;
  std::string memory_scope = "global";
  RELAXC_FIELDS(DeviceHintAttrs, device_type, index, memory_scope);
};
struct GradientAttrs {
  std::string te_grad_name = {};
  AttrValue te_grad_kwargs = Attrs();
  RELAXC_FIELDS(GradientAttrs, te_grad_name, te_grad_kwargs);
};
RELAXC_ONE_ATTR(TensorItemAttrs, int64_t, index, 0);
RELAXC_ONE_ATTR(FormatAttrs, std::string, format, {});

}  // namespace relaxc
