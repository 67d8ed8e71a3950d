// The attributes of operators: one struct each, with the defaults. Rows, passes and the importer read them with
// read_attrs<T>(call.attrs) (OpCall::attrs<T>() in a row) and write them with write_attrs(); no other code repeats a
// name or a default.
#pragma once
#include "ir/attrs.h"
#include "ir/module.h"

namespace relaxc {

using PerDim = std::vector<int64_t>;  // a number per spatial dim

// The default order of the axes of images and weights, where no attribute says otherwise.
constexpr const char* data_layout_of(int spatial) { return spatial == 1 ? "NCW" : spatial == 2 ? "NCHW" : "NCDHW"; }
constexpr const char* kernel_layout_of(int spatial) { return spatial == 1 ? "OIW" : spatial == 2 ? "OIHW" : "OIDHW"; }
constexpr const char* transposed_kernel_layout_of(int spatial) {
  return spatial == 1 ? "IOW" : spatial == 2 ? "IOHW" : "IODHW";
}

// ---- ops/elementwise.cc

struct CastAttrs {
  DType dtype;
  static constexpr auto fields() { return std::tuple(field("dtype", &CastAttrs::dtype)); }
};
struct LeakyReluAttrs {
  double alpha = 0.01;
  static constexpr auto fields() { return std::tuple(field("alpha", &LeakyReluAttrs::alpha)); }
};
struct SoftplusAttrs {
  double beta = 1, threshold = 20;  // above the threshold Relax returns x; ours never overflows and ignores it
  static constexpr auto fields() {
    return std::tuple(field("beta", &SoftplusAttrs::beta), field("threshold", &SoftplusAttrs::threshold));
  }
};
struct PReluAttrs {
  int64_t axis = 1;  // of an alpha of rank 1
  static constexpr auto fields() { return std::tuple(field("axis", &PReluAttrs::axis)); }
};

// ---- ops/reduction.cc

struct ReduceAttrs {
  std::optional<std::vector<int64_t>> axis;  // absent: all
  bool keepdims = false;
  static constexpr auto fields() {
    return std::tuple(field("axis", &ReduceAttrs::axis), field("keepdims", &ReduceAttrs::keepdims));
  }
};
struct ArgReduceAttrs {
  std::optional<int64_t> axis;  // absent: the position in the flattened tensor
  bool keepdims = false;
  bool select_last_index = false;  // among equal elements; not in Relax
  static constexpr auto fields() {
    return std::tuple(field("axis", &ArgReduceAttrs::axis), field("keepdims", &ArgReduceAttrs::keepdims),
                      field("select_last_index", &ArgReduceAttrs::select_last_index));
  }
};
struct ScanAttrs {
  std::optional<int64_t> axis;  // absent: along the flattened tensor
  std::optional<DType> dtype;   // of the result
  bool exclusive = false;       // without the element itself
  bool reverse = false;         // from the end; not in Relax
  static constexpr auto fields() {
    return std::tuple(field("axis", &ScanAttrs::axis), field("dtype", &ScanAttrs::dtype),
                      field("exclusive", &ScanAttrs::exclusive), field("reverse", &ScanAttrs::reverse));
  }
};
struct SoftmaxAttrs {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &SoftmaxAttrs::axis)); }
};

// ---- ops/linear_algebra.cc

struct MatmulAttrs {
  std::optional<DType> out_dtype;  // absent: the operands'
  static constexpr auto fields() { return std::tuple(field("out_dtype", &MatmulAttrs::out_dtype)); }
};

// ---- ops/einsum.cc

struct EinsumAttrs {
  std::string subscripts;
  static constexpr auto fields() { return std::tuple(field("subscripts", &EinsumAttrs::subscripts)); }
};

// ---- ops/convolution.cc

template <int N>
struct ConvAttrs {
  PerDim strides = PerDim(N, 1), padding = PerDim(2 * N, 0), dilation = PerDim(N, 1);
  int64_t groups = 1;
  std::string data_layout = data_layout_of(N), kernel_layout = kernel_layout_of(N);
  std::optional<std::string> out_layout;  // absent: as the data
  std::optional<DType> out_dtype;         // absent: as the data
  static constexpr auto fields() {
    return std::tuple(field("strides", &ConvAttrs::strides), field("padding", &ConvAttrs::padding),
                      field("dilation", &ConvAttrs::dilation), field("groups", &ConvAttrs::groups),
                      field("data_layout", &ConvAttrs::data_layout), field("kernel_layout", &ConvAttrs::kernel_layout),
                      field("out_layout", &ConvAttrs::out_layout), field("out_dtype", &ConvAttrs::out_dtype));
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
  std::optional<std::string> out_layout;
  std::optional<DType> out_dtype;
  static constexpr auto fields() {
    using A = ConvTransposeAttrs;
    return std::tuple(field("strides", &A::strides), field("padding", &A::padding),
                      field("output_padding", &A::output_padding), field("dilation", &A::dilation),
                      field("groups", &A::groups), field("data_layout", &A::data_layout),
                      field("kernel_layout", &A::kernel_layout), field("out_layout", &A::out_layout),
                      field("out_dtype", &A::out_dtype));
  }
};

// ---- ops/pooling.cc

template <int N>
struct PoolAttrs {
  PerDim pool_size = PerDim(N, 1), strides = PerDim(N, 1), padding = PerDim(2 * N, 0), dilation = PerDim(N, 1);
  bool ceil_mode = false, count_include_pad = false;
  std::string layout = data_layout_of(N);
  std::optional<std::string> out_layout;  // absent: as the data
  static constexpr auto fields() {
    return std::tuple(field("pool_size", &PoolAttrs::pool_size), field("strides", &PoolAttrs::strides),
                      field("padding", &PoolAttrs::padding), field("dilation", &PoolAttrs::dilation),
                      field("ceil_mode", &PoolAttrs::ceil_mode),
                      field("count_include_pad", &PoolAttrs::count_include_pad), field("layout", &PoolAttrs::layout),
                      field("out_layout", &PoolAttrs::out_layout));
  }
};
struct IndexedPoolAttrs {
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false;
  int64_t storage_order = 0;  // 0: row-major positions, 1: column-major
  static constexpr auto fields() {
    using A = IndexedPoolAttrs;
    return std::tuple(field("pool_size", &A::pool_size), field("strides", &A::strides), field("padding", &A::padding),
                      field("dilation", &A::dilation), field("ceil_mode", &A::ceil_mode),
                      field("storage_order", &A::storage_order));
  }
};
struct LpPoolAttrs {
  int64_t p = 2;
  std::vector<int64_t> pool_size = {1}, strides = {1}, padding = {0}, dilation = {1};
  bool ceil_mode = false;
  static constexpr auto fields() {
    using A = LpPoolAttrs;
    return std::tuple(field("p", &A::p), field("pool_size", &A::pool_size), field("strides", &A::strides),
                      field("padding", &A::padding), field("dilation", &A::dilation),
                      field("ceil_mode", &A::ceil_mode));
  }
};
template <int N>
struct AdaptiveAttrs {
  std::optional<std::vector<int64_t>> output_size;  // absent: as the data
  std::string layout = data_layout_of(N);
  std::optional<std::string> out_layout;
  static constexpr auto fields() {
    return std::tuple(field("output_size", &AdaptiveAttrs::output_size), field("layout", &AdaptiveAttrs::layout),
                      field("out_layout", &AdaptiveAttrs::out_layout));
  }
};

// ---- ops/normalization.cc

struct BatchNormAttrs {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  double momentum = 0.1;
  bool training = true;
  static constexpr auto fields() {
    using A = BatchNormAttrs;
    return std::tuple(field("axis", &A::axis), field("epsilon", &A::epsilon), field("center", &A::center),
                      field("scale", &A::scale), field("momentum", &A::momentum), field("training", &A::training));
  }
};
struct LayerNormAttrs {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static constexpr auto fields() {
    using A = LayerNormAttrs;
    return std::tuple(field("axes", &A::axes), field("epsilon", &A::epsilon), field("center", &A::center),
                      field("scale", &A::scale));
  }
};
struct RmsNormAttrs {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple(field("axes", &RmsNormAttrs::axes), field("epsilon", &RmsNormAttrs::epsilon));
  }
};
struct InstanceNormAttrs {
  int64_t channel_axis = 1;
  std::vector<int64_t> axes;  // the spatial ones
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static constexpr auto fields() {
    using A = InstanceNormAttrs;
    return std::tuple(field("channel_axis", &A::channel_axis), field("axes", &A::axes), field("epsilon", &A::epsilon),
                      field("center", &A::center), field("scale", &A::scale));
  }
};
struct GroupNormAttrs {
  int64_t num_groups = 1, channel_axis = 1;
  std::vector<int64_t> axes;  // the spatial ones
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static constexpr auto fields() {
    using A = GroupNormAttrs;
    return std::tuple(field("num_groups", &A::num_groups), field("channel_axis", &A::channel_axis),
                      field("axes", &A::axes), field("epsilon", &A::epsilon), field("center", &A::center),
                      field("scale", &A::scale));
  }
};
struct LrnAttrs {
  int64_t size = 1, axis = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
  static constexpr auto fields() {
    return std::tuple(field("size", &LrnAttrs::size), field("axis", &LrnAttrs::axis), field("alpha", &LrnAttrs::alpha),
                      field("beta", &LrnAttrs::beta), field("bias", &LrnAttrs::bias));
  }
};

// ---- ops/layout.cc

struct AxesAttrs {
  std::optional<std::vector<int64_t>> axes;  // absent: reversed
  static constexpr auto fields() { return std::tuple(field("axes", &AxesAttrs::axes)); }
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
  std::optional<std::vector<int64_t>> axis;
  static constexpr auto fields() { return std::tuple(field("axis", &AxisListAttrs::axis)); }
};
struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple(field("axis", &AxisAttrs::axis)); }
};
struct ConcatAttrs {
  std::optional<int64_t> axis = 0;  // None: tensors of rank 1
  static constexpr auto fields() { return std::tuple(field("axis", &ConcatAttrs::axis)); }
};
struct TileAttrs {
  std::vector<int64_t> repeats;
  static constexpr auto fields() { return std::tuple(field("repeats", &TileAttrs::repeats)); }
};
struct RepeatAttrs {
  int64_t repeats = 1;
  std::optional<int64_t> axis;  // absent: of the flattened tensor
  static constexpr auto fields() {
    return std::tuple(field("repeats", &RepeatAttrs::repeats), field("axis", &RepeatAttrs::axis));
  }
};

struct MeshgridAttrs {
  std::string indexing = "ij";
  static constexpr auto fields() { return std::tuple(field("indexing", &MeshgridAttrs::indexing)); }
};

// ---- ops/slice.cc

struct SliceAttrs {
  bool assume_inbound = false;  // else negative bounds count from the end, and those out of range are clamped
  static constexpr auto fields() { return std::tuple(field("assume_inbound", &SliceAttrs::assume_inbound)); }
};
struct PadAttrs {
  std::vector<int64_t> pad_width;
  std::string pad_mode = "constant";
  double pad_value = 0;
  static constexpr auto fields() {
    return std::tuple(field("pad_width", &PadAttrs::pad_width), field("pad_mode", &PadAttrs::pad_mode),
                      field("pad_value", &PadAttrs::pad_value));
  }
};

// ---- ops/index.cc

struct BucketizeAttrs {
  bool out_int32 = false, right = false;
  static constexpr auto fields() {
    return std::tuple(field("out_int32", &BucketizeAttrs::out_int32), field("right", &BucketizeAttrs::right));
  }
};
struct CheckIndicesAttrs {
  std::string what = "indices";  // for the message
  static constexpr auto fields() { return std::tuple(field("what", &CheckIndicesAttrs::what)); }
};

struct TakeAttrs {
  std::optional<int64_t> axis;
  // "fast": indices out of range are an error; "clip": they are clamped, negative ones to 0; "wrap": the remainder.
  std::string mode = "fast";
  static constexpr auto fields() {
    return std::tuple(field("axis", &TakeAttrs::axis), field("mode", &TakeAttrs::mode));
  }
};
struct GatherNdAttrs {
  int64_t batch_dims = 0;
  static constexpr auto fields() { return std::tuple(field("batch_dims", &GatherNdAttrs::batch_dims)); }
};
struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction = "update";
  static constexpr auto fields() {
    return std::tuple(field("axis", &ScatterElementsAttrs::axis), field("reduction", &ScatterElementsAttrs::reduction));
  }
};
struct ScatterNdAttrs {
  std::string reduction = "update";
  static constexpr auto fields() { return std::tuple(field("reduction", &ScatterNdAttrs::reduction)); }
};
struct OneHotAttrs {
  int64_t depth = 1, axis = -1;
  static constexpr auto fields() {
    return std::tuple(field("depth", &OneHotAttrs::depth), field("axis", &OneHotAttrs::axis));
  }
};
struct DynamicOneHotAttrs {
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple(field("axis", &DynamicOneHotAttrs::axis)); }
};
struct MultinomialAttrs {
  DType dtype = kInt64;
  static constexpr auto fields() { return std::tuple(field("dtype", &MultinomialAttrs::dtype)); }
};
struct ReverseSequenceAttrs {
  int64_t time_axis = 0, batch_axis = 1;
  static constexpr auto fields() {
    return std::tuple(field("time_axis", &ReverseSequenceAttrs::time_axis),
                      field("batch_axis", &ReverseSequenceAttrs::batch_axis));
  }
};

// ---- ops/sort.cc

struct SortAttrs {
  int64_t axis = -1;
  bool descending = false;
  static constexpr auto fields() {
    return std::tuple(field("axis", &SortAttrs::axis), field("descending", &SortAttrs::descending));
  }
};
struct ArgsortAttrs {
  int64_t axis = -1;
  bool descending = false;
  DType dtype = kInt32;
  static constexpr auto fields() {
    return std::tuple(field("axis", &ArgsortAttrs::axis), field("descending", &ArgsortAttrs::descending),
                      field("dtype", &ArgsortAttrs::dtype));
  }
};
struct TopKAttrs {
  int64_t k = 1, axis = -1;
  std::string ret_type = "both";  // or "values", "indices"
  bool largest = true;
  DType dtype = kInt32;  // of the indices
  static constexpr auto fields() {
    return std::tuple(field("k", &TopKAttrs::k), field("axis", &TopKAttrs::axis),
                      field("ret_type", &TopKAttrs::ret_type), field("largest", &TopKAttrs::largest),
                      field("dtype", &TopKAttrs::dtype));
  }
};
struct DynamicTopKAttrs {
  int64_t axis = -1;
  bool largest = true;
  DType dtype = kInt64;
  static constexpr auto fields() {
    return std::tuple(field("axis", &DynamicTopKAttrs::axis), field("largest", &DynamicTopKAttrs::largest),
                      field("dtype", &DynamicTopKAttrs::dtype));
  }
};

// ---- ops/create.cc

struct DTypeAttrs {
  std::optional<DType> dtype;
  static constexpr auto fields() { return std::tuple(field("dtype", &DTypeAttrs::dtype)); }
};

// ---- ops/image.cc

struct ResizeAttrs {
  std::vector<int64_t> axes;   // the axes that are resampled; the others keep their size
  std::vector<double> scales;  // per axis of the tensor; empty: a tensor argument, else output / input
  std::vector<double> roi;     // tf_crop_and_resize: starts, then ends, per axis of the tensor
  std::string method = "linear";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "round_prefer_floor";
  double cubic_alpha = -0.75;
  bool exclude_outside = false;
  double extrapolation_value = 0;
  static constexpr auto fields() {
    return std::tuple(field("axes", &ResizeAttrs::axes), field("scales", &ResizeAttrs::scales),
                      field("roi", &ResizeAttrs::roi), field("method", &ResizeAttrs::method),
                      field("coordinate_transformation_mode", &ResizeAttrs::coordinate_transformation_mode),
                      field("rounding_method", &ResizeAttrs::rounding_method),
                      field("cubic_alpha", &ResizeAttrs::cubic_alpha),
                      field("exclude_outside", &ResizeAttrs::exclude_outside),
                      field("extrapolation_value", &ResizeAttrs::extrapolation_value));
  }
};
struct GridSampleAttrs {
  std::string method = "bilinear";
  std::string layout = "NCHW";
  std::string padding_mode = "zeros";
  bool align_corners = true;
  static constexpr auto fields() {
    return std::tuple(field("method", &GridSampleAttrs::method), field("layout", &GridSampleAttrs::layout),
                      field("padding_mode", &GridSampleAttrs::padding_mode),
                      field("align_corners", &GridSampleAttrs::align_corners));
  }
};

// ---- ops/attention.cc

struct PixelShuffleAttrs {
  int64_t upscale_factor = 1;
  static constexpr auto fields() { return std::tuple(field("upscale_factor", &PixelShuffleAttrs::upscale_factor)); }
};

struct QuantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = DType::int_(8);
  static constexpr auto fields() {
    return std::tuple(field("axis", &QuantizeAttrs::axis), field("out_dtype", &QuantizeAttrs::out_dtype));
  }
};
struct DequantizeAttrs {
  int64_t axis = -1;
  DType out_dtype = kFloat32;
  static constexpr auto fields() {
    return std::tuple(field("axis", &DequantizeAttrs::axis), field("out_dtype", &DequantizeAttrs::out_dtype));
  }
};

// ---- ops/training.cc

struct DropoutAttrs {
  double rate = 0.5;
  static constexpr auto fields() { return std::tuple(field("rate", &DropoutAttrs::rate)); }
};

struct LossAttrs {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  static constexpr auto fields() {
    return std::tuple(field("reduction", &LossAttrs::reduction), field("ignore_index", &LossAttrs::ignore_index));
  }
};

// ---- ops/distributed.cc

struct PlacementAttrs {
  DeviceMesh device_mesh;
  std::string placement;  // "S[0], R": what each axis of the mesh does with the tensor
  static constexpr auto fields() {
    return std::tuple(field("device_mesh", &PlacementAttrs::device_mesh),
                      field("placement", &PlacementAttrs::placement));
  }
};

// ---- ops/graph.cc

struct InplaceAttrs {
  std::vector<int64_t> inplace_indices;  // for each output the input that becomes it, or -1: a new tensor
  static constexpr auto fields() { return std::tuple(field("inplace_indices", &InplaceAttrs::inplace_indices)); }
};
struct DeviceAttrs {
  std::string dst_vdevice;
  static constexpr auto fields() { return std::tuple(field("dst_vdevice", &DeviceAttrs::dst_vdevice)); }
};
struct TensorItemAttrs {
  int64_t index = 0;
  static constexpr auto fields() { return std::tuple(field("index", &TensorItemAttrs::index)); }
};
struct FormatAttrs {
  std::string format;
  static constexpr auto fields() { return std::tuple(field("format", &FormatAttrs::format)); }
};

}  // namespace relaxc
