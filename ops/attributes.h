// The attributes of operators: one struct each, with the defaults. Rows, passes and the importer read them with
// read_attrs<T>(call.attrs) (OpCall::attrs<T>() in a row) and write them with write_attrs(); no other code repeats a
// name or a default.
#pragma once
#include <algorithm>
#include <array>

#include "ir/module.h"

namespace relaxc {

// The name of a member as a C string, which outlives every list of fields.
template <auto kMember>
inline constexpr auto kMemberName = [] {
  constexpr std::string_view kName = member_name<kMember>();
  std::array<char, kName.size() + 1> text{};
  std::copy(kName.begin(), kName.end(), text.begin());
  return text;
}();
// Returns the fields of a struct whose attributes are called like its members.
template <auto... kMembers>
constexpr auto fields_of() {
  return std::tuple(field(kMemberName<kMembers>.data(), kMembers)...);
}
// An attribute of any kind is read as it is.
inline bool from_attr(const AttrValue& value, AttrValue& out) {
  out = value;
  return true;
}

// ---- several groups

using PerDim = std::vector<int64_t>;  // a number per spatial dim
struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return fields_of<&AxisAttrs::axis>(); }
};
struct LastAxisAttrs {
  int64_t axis = -1;
  static constexpr auto fields() { return fields_of<&LastAxisAttrs::axis>(); }
};
struct OptionalAxisAttrs {
  std::optional<int64_t> axis = {};
  static constexpr auto fields() { return fields_of<&OptionalAxisAttrs::axis>(); }
};
struct DTypeAttrs {
  std::optional<DType> dtype = {};
  static constexpr auto fields() { return fields_of<&DTypeAttrs::dtype>(); }
};

// The default order of the axes of images and weights, where no attribute says otherwise.
constexpr const char* data_layout_of(int spatial) { return spatial == 1 ? "NCW" : spatial == 2 ? "NCHW" : "NCDHW"; }
constexpr const char* kernel_layout_of(int spatial) { return spatial == 1 ? "OIW" : spatial == 2 ? "OIHW" : "OIDHW"; }
constexpr const char* transposed_kernel_layout_of(int spatial) {
  return spatial == 1 ? "IOW" : spatial == 2 ? "IOHW" : "IODHW";
}

// ---- ops/elementwise.cc

struct CastAttrs {
  DType dtype;
  static constexpr auto fields() { return fields_of<&CastAttrs::dtype>(); }
};
struct LeakyReluAttrs {
  double alpha = 0.01;
  static constexpr auto fields() { return fields_of<&LeakyReluAttrs::alpha>(); }
};
struct SoftplusAttrs {
  double beta = 1, threshold = 20;  // above the threshold Relax returns x; ours never overflows and ignores it
  static constexpr auto fields() { return fields_of<&SoftplusAttrs::beta, &SoftplusAttrs::threshold>(); }
};
struct PReluAttrs {
  int64_t axis = 1;  // of an alpha of rank 1
  static constexpr auto fields() { return fields_of<&PReluAttrs::axis>(); }
};

// ---- ops/reduction.cc

struct ReduceAttrs {
  std::optional<std::vector<int64_t>> axis = {};  // absent: all
  bool keepdims = false;
  static constexpr auto fields() { return fields_of<&ReduceAttrs::axis, &ReduceAttrs::keepdims>(); }
};
struct ArgReduceAttrs {
  std::optional<int64_t> axis = {};  // absent: the position in the flattened tensor
  bool keepdims = false;
  bool select_last_index = false;  // among equal elements; not in Relax
  using A = ArgReduceAttrs;
  static constexpr auto fields() { return fields_of<&A::axis, &A::keepdims, &A::select_last_index>(); }
};
struct ScanAttrs {
  std::optional<int64_t> axis = {};  // absent: along the flattened tensor
  std::optional<DType> dtype = {};   // of the result
  bool exclusive = false;            // without the element itself
  bool reverse = false;              // from the end; not in Relax
  using A = ScanAttrs;
  static constexpr auto fields() { return fields_of<&A::axis, &A::dtype, &A::exclusive, &A::reverse>(); }
};

// ---- ops/linear_algebra.cc

struct MatmulAttrs {
  std::optional<DType> out_dtype = {};  // absent: the operands'
  static constexpr auto fields() { return fields_of<&MatmulAttrs::out_dtype>(); }
};

// ---- ops/einsum.cc

struct EinsumAttrs {
  std::string subscripts = {};
  static constexpr auto fields() { return fields_of<&EinsumAttrs::subscripts>(); }
};

// ---- ops/convolution.cc

template <int N>
struct ConvAttrs {
  PerDim strides = PerDim(N, 1), padding = PerDim(2 * N, 0), dilation = PerDim(N, 1);
  int64_t groups = 1;
  std::string data_layout = data_layout_of(N), kernel_layout = kernel_layout_of(N);
  std::optional<std::string> out_layout = {};  // absent: as the data
  std::optional<DType> out_dtype = {};         // absent: as the data
  using A = ConvAttrs;
  static constexpr auto fields() {
    return fields_of<&A::strides, &A::padding, &A::dilation, &A::groups, &A::data_layout, &A::kernel_layout,
                     &A::out_layout, &A::out_dtype>();
  }
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
  using A = ConvTransposeAttrs;
  static constexpr auto fields() {
    return fields_of<&A::strides, &A::padding, &A::output_padding, &A::dilation, &A::groups, &A::data_layout,
                     &A::kernel_layout, &A::out_layout, &A::out_dtype>();
  }
};

// ---- ops/pooling.cc

template <int N>
struct PoolAttrs {
  PerDim pool_size = PerDim(N, 1), strides = PerDim(N, 1), padding = PerDim(2 * N, 0), dilation = PerDim(N, 1);
  bool ceil_mode = false, count_include_pad = false;
  std::string layout = data_layout_of(N);
  std::optional<std::string> out_layout = {};  // absent: as the data
  using A = PoolAttrs;
  static constexpr auto fields() {
    return fields_of<&A::pool_size, &A::strides, &A::padding, &A::dilation, &A::ceil_mode, &A::count_include_pad,
                     &A::layout, &A::out_layout>();
  }
};
struct IndexedPoolAttrs {
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false;
  int64_t storage_order = 0;  // 0: row-major positions, 1: column-major
  using A = IndexedPoolAttrs;
  static constexpr auto fields() {
    return fields_of<&A::pool_size, &A::strides, &A::padding, &A::dilation, &A::ceil_mode, &A::storage_order>();
  }
};
struct LpPoolAttrs {
  int64_t p = 2;
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false;
  using A = LpPoolAttrs;
  static constexpr auto fields() {
    return fields_of<&A::p, &A::pool_size, &A::strides, &A::padding, &A::dilation, &A::ceil_mode>();
  }
};
template <int N>
struct AdaptiveAttrs {
  std::optional<std::vector<int64_t>> output_size = {};  // absent: as the data
  std::string layout = data_layout_of(N);
  std::optional<std::string> out_layout = {};
  using A = AdaptiveAttrs;
  static constexpr auto fields() { return fields_of<&A::output_size, &A::layout, &A::out_layout>(); }
};

// ---- ops/normalization.cc

struct BatchNormAttrs {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  double momentum = 0.1;
  bool training = true;
  using A = BatchNormAttrs;
  static constexpr auto fields() {
    return fields_of<&A::axis, &A::epsilon, &A::center, &A::scale, &A::momentum, &A::training>();
  }
};
struct LayerNormAttrs {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  bool center = true, scale = true;
  using A = LayerNormAttrs;
  static constexpr auto fields() { return fields_of<&A::axes, &A::epsilon, &A::center, &A::scale>(); }
};
struct RmsNormAttrs {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  static constexpr auto fields() { return fields_of<&RmsNormAttrs::axes, &RmsNormAttrs::epsilon>(); }
};
struct InstanceNormAttrs {
  int64_t channel_axis = 1;
  std::vector<int64_t> axes = {};  // the spatial ones
  double epsilon = 1e-5;
  bool center = true, scale = true;
  using A = InstanceNormAttrs;
  static constexpr auto fields() { return fields_of<&A::channel_axis, &A::axes, &A::epsilon, &A::center, &A::scale>(); }
};
struct GroupNormAttrs {
  int64_t num_groups = 1, channel_axis = 1;
  std::vector<int64_t> axes = {};  // the spatial ones
  double epsilon = 1e-5;
  bool center = true, scale = true;
  using A = GroupNormAttrs;
  static constexpr auto fields() {
    return fields_of<&A::num_groups, &A::channel_axis, &A::axes, &A::epsilon, &A::center, &A::scale>();
  }
};
struct LrnAttrs {
  int64_t size = 1, axis = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
  using A = LrnAttrs;
  static constexpr auto fields() { return fields_of<&A::size, &A::axis, &A::alpha, &A::beta, &A::bias>(); }
};

// ---- ops/layout.cc

struct AxesAttrs {
  std::optional<std::vector<int64_t>> axes = {};  // absent: reversed
  static constexpr auto fields() { return fields_of<&AxesAttrs::axes>(); }
  // Returns the axes as numbers in [0, rank), as far as they are in range.
  std::vector<int64_t> permutation(size_t rank) const {
    std::vector<int64_t> result;
    for (size_t d = rank; d-- > 0 && !axes;) result.push_back(static_cast<int64_t>(d));
    for (int64_t axis : axes.value_or(std::vector<int64_t>()))
      result.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
    return result;
  }
};
struct AxisListAttrs {
  std::optional<std::vector<int64_t>> axis = {};
  static constexpr auto fields() { return fields_of<&AxisListAttrs::axis>(); }
};
struct ConcatAttrs {
  std::optional<int64_t> axis = 0;  // None: tensors of rank 1
  static constexpr auto fields() { return fields_of<&ConcatAttrs::axis>(); }
};
struct TileAttrs {
  std::vector<int64_t> repeats = {};
  static constexpr auto fields() { return fields_of<&TileAttrs::repeats>(); }
};
struct RepeatAttrs {
  int64_t repeats = 1;
  std::optional<int64_t> axis = {};  // absent: of the flattened tensor
  static constexpr auto fields() { return fields_of<&RepeatAttrs::repeats, &RepeatAttrs::axis>(); }
};

struct LayoutTransformAttrs {
  AttrValue index_map = {}, pad_value = {};
  std::optional<std::vector<int64_t>> axis_separators = {}, input_axis_separators = {};
  using A = LayoutTransformAttrs;
  static constexpr auto fields() {
    return fields_of<&A::index_map, &A::pad_value, &A::axis_separators, &A::input_axis_separators>();
  }
};
struct MeshgridAttrs {
  std::string indexing = "ij";
  static constexpr auto fields() { return fields_of<&MeshgridAttrs::indexing>(); }
};

// ---- ops/slice.cc

struct SliceAttrs {
  bool assume_inbound = false;  // else negative bounds count from the end, and those out of range are clamped
  static constexpr auto fields() { return fields_of<&SliceAttrs::assume_inbound>(); }
};
struct SplitAttrs {
  AttrValue indices_or_sections =
      {};  // required: a number of parts, or the positions where parts after the first begin
  int64_t axis = 0;
  static constexpr auto fields() { return fields_of<&SplitAttrs::indices_or_sections, &SplitAttrs::axis>(); }
};
struct PadAttrs {
  std::vector<int64_t> pad_width = {};
  std::string pad_mode = "constant";
  double pad_value = 0;
  using A = PadAttrs;
  static constexpr auto fields() { return fields_of<&A::pad_width, &A::pad_mode, &A::pad_value>(); }
};

// ---- ops/index.cc

struct BucketizeAttrs {
  bool out_int32 = false, right = false;
  static constexpr auto fields() { return fields_of<&BucketizeAttrs::out_int32, &BucketizeAttrs::right>(); }
};
struct IndexPutAttrs {
  bool accumulate = false;
  static constexpr auto fields() { return fields_of<&IndexPutAttrs::accumulate>(); }
};
struct CheckIndicesAttrs {
  std::string what = "indices";  // for the message
  static constexpr auto fields() { return fields_of<&CheckIndicesAttrs::what>(); }
};

struct TakeAttrs {
  std::optional<int64_t> axis = {};
  // "fast": indices out of range are an error; "clip": they are clamped, negative ones to 0; "wrap": the remainder.
  std::string mode = "fast";
  static constexpr auto fields() { return fields_of<&TakeAttrs::axis, &TakeAttrs::mode>(); }
};
struct GatherNdAttrs {
  int64_t batch_dims = 0;
  static constexpr auto fields() { return fields_of<&GatherNdAttrs::batch_dims>(); }
};
struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction = "update";
  static constexpr auto fields() { return fields_of<&ScatterElementsAttrs::axis, &ScatterElementsAttrs::reduction>(); }
};
struct ScatterNdAttrs {
  std::string reduction = "update";
  static constexpr auto fields() { return fields_of<&ScatterNdAttrs::reduction>(); }
};
struct OneHotAttrs {
  int64_t depth = 1, axis = -1;
  static constexpr auto fields() { return fields_of<&OneHotAttrs::depth, &OneHotAttrs::axis>(); }
};
struct MultinomialAttrs {
  DType dtype = kInt64;
  static constexpr auto fields() { return fields_of<&MultinomialAttrs::dtype>(); }
};
struct ReverseSequenceAttrs {
  int64_t time_axis = 0, batch_axis = 1;
  using A = ReverseSequenceAttrs;
  static constexpr auto fields() { return fields_of<&A::time_axis, &A::batch_axis>(); }
};

// ---- ops/sort.cc

struct SortAttrs {
  int64_t axis = -1;
  bool descending = false;
  static constexpr auto fields() { return fields_of<&SortAttrs::axis, &SortAttrs::descending>(); }
};
struct ArgsortAttrs {
  int64_t axis = -1;
  bool descending = false;
  DType dtype = kInt32;
  using A = ArgsortAttrs;
  static constexpr auto fields() { return fields_of<&A::axis, &A::descending, &A::dtype>(); }
};
struct TopKAttrs {
  int64_t k = 1, axis = -1;
  std::string ret_type = "both";  // or "values", "indices"
  bool largest = true;
  DType dtype = kInt32;  // of the indices
  using A = TopKAttrs;
  static constexpr auto fields() { return fields_of<&A::k, &A::axis, &A::ret_type, &A::largest, &A::dtype>(); }
};
struct DynamicTopKAttrs {
  int64_t axis = -1;
  bool largest = true;
  DType dtype = kInt64;
  using A = DynamicTopKAttrs;
  static constexpr auto fields() { return fields_of<&A::axis, &A::largest, &A::dtype>(); }
};

// ---- ops/create.cc

struct FillAttrs {
  std::optional<DType> dtype = kFloat32;
  static constexpr auto fields() { return fields_of<&FillAttrs::dtype>(); }
};

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
  using A = ResizeAttrs;
  static constexpr auto fields() {
    return fields_of<&A::axes, &A::scales, &A::roi, &A::method, &A::coordinate_transformation_mode, &A::rounding_method,
                     &A::cubic_alpha, &A::exclude_outside, &A::extrapolation_value>();
  }
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
  using A = ResizeImageAttrs;
  static constexpr auto fields() {
    return fields_of<&A::roi, &A::layout, &A::method, &A::coordinate_transformation_mode, &A::rounding_method,
                     &A::cubic_alpha, &A::cubic_exclude, &A::extrapolation_value, &A::out_dtype>();
  }
};
struct AffineGridAttrs {
  bool align_corners = true;
  static constexpr auto fields() { return fields_of<&AffineGridAttrs::align_corners>(); }
};
struct GridSampleAttrs {
  std::string method = "bilinear";
  std::string layout = "NCHW";
  std::string padding_mode = "zeros";
  bool align_corners = true;
  using A = GridSampleAttrs;
  static constexpr auto fields() { return fields_of<&A::method, &A::layout, &A::padding_mode, &A::align_corners>(); }
};

// ---- ops/attention.cc

struct AttentionAttrs {
  std::optional<double> scale = {};
  std::optional<std::string> causal_mask = {};
  std::optional<int64_t> window_size = {};
  using A = AttentionAttrs;
  static constexpr auto fields() { return fields_of<&A::scale, &A::causal_mask, &A::window_size>(); }
};
struct PixelShuffleAttrs {
  int64_t upscale_factor = 1;
  static constexpr auto fields() { return fields_of<&PixelShuffleAttrs::upscale_factor>(); }
};

struct QuantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = DType::int_(8);
  static constexpr auto fields() { return fields_of<&QuantizeAttrs::axis, &QuantizeAttrs::out_dtype>(); }
};
struct DequantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = kFloat32;
  static constexpr auto fields() { return fields_of<&DequantizeAttrs::axis, &DequantizeAttrs::out_dtype>(); }
};

// ---- ops/training.cc

struct DropoutAttrs {
  double rate = 0.5;
  static constexpr auto fields() { return fields_of<&DropoutAttrs::rate>(); }
};

struct LossAttrs {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  static constexpr auto fields() { return fields_of<&LossAttrs::reduction, &LossAttrs::ignore_index>(); }
};

struct MaskedFillAttrs {
  double value = 0;
  static constexpr auto fields() { return fields_of<&MaskedFillAttrs::value>(); }
};

// ---- ops/vision.cc

struct AllClassNmsAttrs {
  std::string output_format = "onnx";
  static constexpr auto fields() { return fields_of<&AllClassNmsAttrs::output_format>(); }
};
struct ValidCountsAttrs {
  double score_threshold = 0;
  int64_t id_index = 0, score_index = 1;
  using A = ValidCountsAttrs;
  static constexpr auto fields() { return fields_of<&A::score_threshold, &A::id_index, &A::score_index>(); }
};
struct NmsAttrs {
  int64_t max_output_size = -1;
  double iou_threshold = 0.5;
  bool force_suppress = false;
  int64_t top_k = -1, coord_start = 2, score_index = 1, id_index = 0;
  bool return_indices = true, invalid_to_bottom = false;
  double soft_nms_sigma = 0, score_threshold = 0;
  using A = NmsAttrs;
  static constexpr auto fields() {
    return fields_of<&A::max_output_size, &A::iou_threshold, &A::force_suppress, &A::top_k, &A::coord_start,
                     &A::score_index, &A::id_index, &A::return_indices, &A::invalid_to_bottom, &A::soft_nms_sigma,
                     &A::score_threshold>();
  }
};
struct MultiboxAttrs {
  bool clip = false;
  double threshold = 0;
  std::vector<double> variances = {1, 1, 1, 1};
  bool keep_background = true, apply_softmax = true;
  using A = MultiboxAttrs;
  static constexpr auto fields() {
    return fields_of<&A::clip, &A::threshold, &A::variances, &A::keep_background, &A::apply_softmax>();
  }
};
struct RoiAlignAttrs {
  std::optional<std::vector<int64_t>> pooled_size = {};  // required
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  bool aligned = false;
  std::string layout = "NCHW", mode = "avg";
  using A = RoiAlignAttrs;
  static constexpr auto fields() {
    return fields_of<&A::pooled_size, &A::spatial_scale, &A::sample_ratio, &A::aligned, &A::layout, &A::mode>();
  }
};
struct RoiPoolAttrs {
  std::optional<std::vector<int64_t>> pooled_size = {};  // required
  double spatial_scale = 1;
  std::string layout = "NCHW";
  using A = RoiPoolAttrs;
  static constexpr auto fields() { return fields_of<&A::pooled_size, &A::spatial_scale, &A::layout>(); }
};

// ---- ops/distributed.cc

struct AllReduceAttrs {
  std::string op_type = "sum";
  bool in_group = true;
  static constexpr auto fields() { return fields_of<&AllReduceAttrs::op_type, &AllReduceAttrs::in_group>(); }
};
struct AllGatherAttrs {
  std::optional<int64_t> num_workers = {};  // required
  bool in_group = true;
  static constexpr auto fields() { return fields_of<&AllGatherAttrs::num_workers, &AllGatherAttrs::in_group>(); }
};
struct PartAttrs {
  std::optional<int64_t> num_workers = {};  // required
  int64_t axis = 0;
  static constexpr auto fields() { return fields_of<&PartAttrs::num_workers, &PartAttrs::axis>(); }
};

struct PlacementAttrs {
  DeviceMesh device_mesh;
  std::string placement = {};  // "S[0], R": what each axis of the mesh does with the tensor
  static constexpr auto fields() { return fields_of<&PlacementAttrs::device_mesh, &PlacementAttrs::placement>(); }
};

// ---- ops/graph.cc

struct InplaceAttrs {
  std::vector<int64_t> inplace_indices = {};  // for each output the input that becomes it, or -1: a new tensor
  static constexpr auto fields() { return fields_of<&InplaceAttrs::inplace_indices>(); }
};
struct DeviceAttrs {
  std::string dst_vdevice = {};
  static constexpr auto fields() { return fields_of<&DeviceAttrs::dst_vdevice>(); }
};
struct DeviceHintAttrs {
  int64_t device_type = 1, index = 0;
  std::string memory_scope = "global";
  using A = DeviceHintAttrs;
  static constexpr auto fields() { return fields_of<&A::device_type, &A::index, &A::memory_scope>(); }
};
struct GradientAttrs {
  std::string te_grad_name = {};
  AttrValue te_grad_kwargs = Attrs();
  static constexpr auto fields() { return fields_of<&GradientAttrs::te_grad_name, &GradientAttrs::te_grad_kwargs>(); }
};
struct TensorItemAttrs {
  int64_t index = 0;
  static constexpr auto fields() { return fields_of<&TensorItemAttrs::index>(); }
};
struct FormatAttrs {
  std::string format = {};
  static constexpr auto fields() { return fields_of<&FormatAttrs::format>(); }
};

}  // namespace relaxc
