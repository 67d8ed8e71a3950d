// Convolutions, pools, normalizations and resizing.
#include <cmath>

#include "tests/onnx_graphs/generator.h"

namespace relaxc::test::onnx_graphs {

namespace {

using G = Generator;

// A batch of images with known channels.
Value images(G& g, int64_t least_rank, int64_t most_rank, DType dtype = kFloat32) {
  auto fits = [&](const Value& v) {
    if (v.dtype != dtype || !G::fits(v, least_rank, most_rank) || !v.shape[1].is_static || v.shape[1].is(0))
      return false;
    return std::all_of(v.shape.begin() + 2, v.shape.end(), [](const Dim& dim) { return dim.least() > 0; });
  };
  for (const auto& [name, value] : g.graph().values) {
    if (fits(value) && g.chance(0.5)) return value;
  }
  Shape shape = g.new_shape(g.draw(least_rank, most_rank));
  shape[1] = g.one_of<int64_t>({1, 2, 3, 4, 8, 16});
  Value x = g.tensor(dtype, shape);
  G::need(fits(x));
  return x;
}

struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  Attrs attrs;
};

// Attributes of a sliding window, and the spatial dims that it leaves.
Window window(G& g, const Value& x, Shape& shape, bool ceil_mode) {
  size_t spatial = x.shape.size() - 2;
  Window w;
  bool strided = g.chance(0.4), dilated = g.chance(0.25) && !ceil_mode, padded = g.chance(0.5);
  auto auto_pad = g.chance(0.2) ? g.one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"}) : "";
  if (!auto_pad.empty()) padded = false;
  // ONNX Runtime 1.27 forgets dilations where it pads a pool.
  if (auto_pad.starts_with("SAME")) dilated = false;
  std::vector<int64_t> begins, ends;
  for (size_t i = 0; i < spatial; ++i) {
    const Dim& dim = x.shape[i + 2];
    int64_t kernel = g.draw(1, 3), stride = strided ? g.draw(1, 2) : 1, dilation = dilated ? g.draw(1, 2) : 1;
    int64_t begin = padded ? g.draw(0, kernel - 1) : 0, end = padded ? g.draw(0, kernel - 1) : 0;
    int64_t reach = dilation * (kernel - 1) + 1;
    bool same = auto_pad.starts_with("SAME");
    G::need(same || dim.least() + begin + end >= reach);
    w.kernel.push_back(kernel), w.strides.push_back(stride), w.dilations.push_back(dilation);
    begins.push_back(begin), ends.push_back(end);
    shape[i + 2] = map_dim(dim, [&](int64_t size) {
      if (same) return (size + stride - 1) / stride;
      int64_t count = (size + begin + end - reach + (ceil_mode ? stride - 1 : 0)) / stride + 1;
      // A window that begins in the padding behind the image does not count.
      if (ceil_mode && (count - 1) * stride >= size + begin) --count;
      return count;
    });
  }
  w.pads = begins;
  w.pads.insert(w.pads.end(), ends.begin(), ends.end());
  if (strided) w.attrs.push_back(attribute("strides", w.strides));
  if (dilated) w.attrs.push_back(attribute("dilations", w.dilations));
  if (padded) w.attrs.push_back(attribute("pads", w.pads));
  if (!auto_pad.empty()) w.attrs.push_back(attribute("auto_pad", auto_pad.c_str()));
  return w;
}

void conv(G& g, const char* name) {
  Value x = images(g, 3, 5, g.chance(0.9) ? kFloat32 : g.float_dtype());
  int64_t channels = x.shape[1].sizes[0],
          group = g.chance(0.3) ? g.one_of<int64_t>({channels, channels % 2 == 0 ? 2 : 1}) : 1;
  // Blocks of channels fill vectors, or do not.
  int64_t out = group <= 2 && g.chance(0.4) ? 8 * g.draw(1, 3) : group * g.draw(1, 4);
  Shape shape = x.shape;
  Window w = window(g, x, shape, false);
  shape[1] = out;
  Shape weight = {out, channels / group};
  int64_t count = channels / group;
  for (int64_t size : w.kernel) weight.push_back(size), count *= size;
  Value k = g.tensor(x.dtype, weight, {-1, 1, 0.125, 0});
  if (group != 1) w.attrs.push_back(attribute("group", group));
  if (g.chance(0.6)) w.attrs.push_back(attribute("kernel_shape", w.kernel));
  std::vector<std::string> inputs = {x.name, k.name};
  if (g.chance(0.5)) inputs.push_back(g.tensor(x.dtype, {out}).name);
  double most = x.range.magnitude() * static_cast<double>(count);
  g.emit(name, inputs, w.attrs, x.dtype, shape,
         {-most - 2, most + 2, 1, x.range.error * static_cast<double>(count) + 1e-5 * (most + 1)});
}

void conv_transpose(G& g, const char* name) {
  Value x = images(g, 3, 4);
  int64_t channels = x.shape[1].sizes[0], group = g.chance(0.3) && channels % 2 == 0 ? 2 : 1,
          out = group * g.draw(1, 3);
  Shape shape = x.shape, weight = {channels, out / group};
  std::vector<int64_t> strides, pads_begin, pads_end, extra, dilations, kernel;
  int64_t count = channels / group;
  bool dilated = g.chance(0.2);
  for (size_t i = 2; i < shape.size(); ++i) {
    int64_t k = g.draw(1, 3), stride = g.draw(1, 2), dilation = dilated ? 2 : 1, begin = g.draw(0, k - 1),
            end = g.draw(0, k - 1), more = g.draw(0, stride - 1);
    kernel.push_back(k), strides.push_back(stride), dilations.push_back(dilation), pads_begin.push_back(begin),
        pads_end.push_back(end), extra.push_back(more);
    weight.push_back(k);
    count *= k;
    shape[i] = map_dim(shape[i],
                       [&](int64_t size) { return stride * (size - 1) + more + (k - 1) * dilation + 1 - begin - end; });
    G::need(shape[i].least() > 0);
  }
  shape[1] = out;
  pads_begin.insert(pads_begin.end(), pads_end.begin(), pads_end.end());
  Attrs attrs = {attribute("strides", strides), attribute("pads", pads_begin), attribute("output_padding", extra)};
  if (dilated) attrs.push_back(attribute("dilations", dilations));
  if (group != 1) attrs.push_back(attribute("group", group));
  Value w = g.tensor(kFloat32, weight, {-1, 1, 0.125, 0});
  std::vector<std::string> inputs = {x.name, w.name};
  if (g.chance(0.5)) inputs.push_back(g.tensor(kFloat32, {out}).name);
  double most = x.range.magnitude() * static_cast<double>(count);
  g.emit(name, inputs, attrs, kFloat32, shape,
         {-most - 2, most + 2, 1, x.range.error * static_cast<double>(count) + 1e-5 * (most + 1)});
}

void pool(G& g, const char* name) {
  std::string op = name;
  Value x = images(g, 3, 5, g.chance(0.9) ? kFloat32 : DType::float_(16));
  Shape shape = x.shape;
  bool ceil_mode = g.chance(0.25) && op == "MaxPool";
  Window w = window(g, x, shape, ceil_mode);
  bool dilated = std::any_of(w.dilations.begin(), w.dilations.end(), [](int64_t d) { return d != 1; });
  // A window that sees padding alone gives -inf here and the least finite number in ONNX Runtime 1.27.
  bool padded = std::any_of(w.pads.begin(), w.pads.end(), [](int64_t d) { return d != 0; });
  G::need(!dilated || (op == "MaxPool" && !padded));
  std::erase_if(w.attrs,
                [&](const onnx::AttributeProto& attr) { return attr.name() == "dilations" && op != "MaxPool"; });
  w.attrs.push_back(attribute("kernel_shape", w.kernel));
  if (ceil_mode) w.attrs.push_back(attribute("ceil_mode", 1));
  Range range = joined(x.range, {0, 0, x.range.step, 0});
  if (op == "AveragePool") {
    if (g.chance(0.5)) w.attrs.push_back(attribute("count_include_pad", 1));
    range.error += 1e-6 * (range.magnitude() + 1e-2);
  }
  if (op == "LpPool") {
    G::need(x.range.exact());
    range = {0, 27 * range.magnitude(), 1, 1e-5 * range.magnitude() * 27};
    w.attrs.push_back(attribute("p", g.draw(1, 2)));
  }
  if (op == "MaxPool") range = x.range;
  g.emit(op, {x.name}, w.attrs, x.dtype, shape, range);
}

void global_pool(G& g, const char* name) {
  Value x = images(g, 3, 5);
  Shape shape = x.shape;
  std::fill(shape.begin() + 2, shape.end(), Dim(1));
  Range range = x.range;
  if (std::string(name) == "GlobalAveragePool") range.error += 1e-5 * (range.magnitude() + 1e-2);
  g.emit(name, {x.name}, {}, x.dtype, shape, range);
}

void batch_norm(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype == kFloat32 && G::fits(v, 2, 5) && v.shape[1].is_static; },
                    kFloat32, 2, 4);
  G::need(x.shape[1].is_static && g.opset() >= 14);
  Dim channels = x.shape[1];
  auto vector = [&](const Range& range) { return g.tensor(kFloat32, {channels}, range).name; };
  std::vector<std::string> inputs = {x.name, vector({}), vector({}), vector({}), vector({0.5, 2, 0.125, 0})};
  double most = 4 * (x.range.magnitude() + 3) + 2;
  g.emit(name, inputs, g.chance(0.5) ? Attrs{attribute("epsilon", 1e-3)} : Attrs{}, kFloat32, x.shape,
         {-most, most, 1, x.range.error * 4 + 4e-6 * most});
}

// Normalizations divide by a deviation that is at least the root of epsilon, which is chosen large.
Range normalized(const Range& x, double count, double scale) {
  double most = scale * (std::sqrt(count) + 1) + 2;
  return {-most, most, 1, x.error * 8 * scale * (1 + most) + 1e-5 * (most + x.magnitude())};
}

void layer_norm(G& g, const char* name) {
  Value x = g.value([](const Value& v) { return v.dtype == kFloat32 && G::fits(v, 1, 4); }, kFloat32, 1, 4);
  int64_t axis = g.axis_of(x);
  Shape inner(x.shape.begin() + axis, x.shape.end());
  G::need(!has_zero(inner));
  std::vector<std::string> inputs = {x.name, g.tensor(kFloat32, inner).name};
  if (g.chance(0.6)) inputs.push_back(g.tensor(kFloat32, inner).name);
  Attrs attrs = {attribute("axis", g.written(axis, x)), attribute("epsilon", 0.1)};
  g.emit(name, inputs, attrs, kFloat32, x.shape, normalized(x.range, static_cast<double>(most_elements(inner)), 2));
}

void channel_norm(G& g, const char* name) {
  std::string op = name;
  Value x = images(g, 3, 4);
  int64_t channels = x.shape[1].sizes[0], groups = channels % 2 == 0 ? 2 : 1;
  bool by_group = op == "GroupNormalization";
  Dim size = by_group && g.opset() < 21 ? groups : channels;
  std::vector<std::string> inputs = {x.name, g.tensor(kFloat32, {size}).name, g.tensor(kFloat32, {size}).name};
  Attrs attrs = {attribute("epsilon", 0.1)};
  if (by_group) attrs.push_back(attribute("num_groups", groups));
  Shape inner(x.shape.begin() + 2, x.shape.end());
  g.emit(op, inputs, attrs, kFloat32, x.shape,
         normalized(x.range, static_cast<double>(channels * most_elements(inner)), 2));
}

void lrn(G& g, const char* name) {
  Value x = images(g, 4, 4);
  Attrs attrs = {attribute("size", g.one_of<int64_t>({1, 3, 5}))};
  if (g.chance(0.5)) attrs.push_back(attribute("alpha", 0.01));
  if (g.chance(0.5)) attrs.push_back(attribute("beta", 0.5));
  g.emit(name, {x.name}, attrs, kFloat32, x.shape,
         {x.range.low, x.range.high, 1, x.range.error * 2 + 1e-5 * (x.range.magnitude() + 0.01)});
}

void lp_norm(G& g, const char* name) {
  Value x = g.value(
      [](const Value& v) { return v.dtype == kFloat32 && v.range.low > 0 && v.range.exact() && G::fits(v, 1, 4); },
      kFloat32, 1, 4, kPositive);
  int64_t axis = g.axis_of(x);
  g.emit(name, {x.name}, {attribute("axis", g.written(axis, x)), attribute("p", g.draw(1, 2))}, kFloat32, x.shape,
         {0, 1, 1, 1e-5});
}

void resize(G& g, const char* name) {
  Value x = images(g, 4, 4);
  bool linear = g.chance(0.5);
  auto coordinates = linear ? g.one_of<std::string>({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})
                            : g.one_of<std::string>({"asymmetric", "half_pixel"});
  Shape shape = x.shape;
  Attrs attrs = {attribute("mode", linear ? "linear" : "nearest"),
                 attribute("coordinate_transformation_mode", coordinates.c_str())};
  if (!linear)
    attrs.push_back(attribute(
        "nearest_mode", g.one_of<std::string>({"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}).c_str()));
  std::vector<std::string> inputs = {x.name, "", ""};
  if (linear && g.chance(0.3)) {
    shape[2] = g.draw(1, 9), shape[3] = g.draw(1, 9);
    inputs.push_back(g.dims(shape));
  } else {
    // With align_corners, a size that is no whole number counts as it is (official case
    // resize_downsample_scales_linear_align_corners); ONNX Runtime rounds it down.
    bool whole = coordinates == "align_corners";
    float height = whole ? g.one_of<float>({1, 2}) : g.one_of<float>({0.5f, 1, 2, 1.5f});
    float width = whole ? g.one_of<float>({1, 2, 3}) : g.one_of<float>({0.5f, 1, 2, 3});
    Tensor scales = Tensor::of<float>({4}, kFloat32, {1, 1, height, width});
    for (size_t i : {2, 3})
      shape[i] = map_dim(shape[i], [&](int64_t size) {
        return static_cast<int64_t>(static_cast<double>(size) * scales.as_double(static_cast<int64_t>(i)));
      });
    G::need(!has_zero({shape[2], shape[3]}));
    onnx::TensorProto& proto = *g.graph().model.mutable_graph()->add_initializer();
    inputs[2] = g.fresh("f");
    proto.set_name(inputs[2]);
    proto.set_data_type(onnx::TensorProto::FLOAT);
    proto.add_dims(4);
    for (int64_t i = 0; i < 4; ++i) proto.add_float_data(static_cast<float>(scales.as_double(i)));
  }
  Range range = x.range;
  if (linear) range.error += 1e-5 * (range.magnitude() + 0.01);
  g.emit(name, inputs, attrs, kFloat32, shape, range);
}

}  // namespace

std::vector<Operator> network_operators() {
  return {{"Conv", 13, conv},
          {"Conv", 13, conv},
          {"ConvTranspose", 13, conv_transpose},
          {"MaxPool", 13, pool},
          {"AveragePool", 13, pool},
          {"LpPool", 13, pool},
          {"GlobalAveragePool", 13, global_pool},
          {"GlobalMaxPool", 13, global_pool},
          {"BatchNormalization", 14, batch_norm},
          {"LayerNormalization", 17, layer_norm},
          {"InstanceNormalization", 13, channel_norm},
          {"GroupNormalization", 18, channel_norm},
          {"LRN", 13, lrn},
          {"LpNormalization", 13, lp_norm},
          {"Resize", 13, resize}};
}

}  // namespace relaxc::test::onnx_graphs
