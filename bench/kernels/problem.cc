#include "bench/kernels/problem.h"
#include "support/checked_math.h"
#include "support/joined.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace relaxc::bench {

namespace {

struct Convolution {
  int64_t channels, size, filters, window, stride, groups = 1;
};
// Distinct layers at batch 1 and 224 x 224 pixels, from the papers' tables (ResNet v1.5: the stride is in the 3x3).
constexpr Convolution kResNet50[] = {
    {3, 224, 64, 7, 2},     {64, 56, 64, 1, 1},   {64, 56, 64, 3, 1},    {64, 56, 256, 1, 1},   {256, 56, 64, 1, 1},
    {256, 56, 128, 1, 1},   {128, 56, 128, 3, 2}, {128, 28, 512, 1, 1},  {256, 56, 512, 1, 2},  {512, 28, 128, 1, 1},
    {128, 28, 128, 3, 1},   {512, 28, 256, 1, 1}, {256, 28, 256, 3, 2},  {256, 14, 1024, 1, 1}, {512, 28, 1024, 1, 2},
    {1024, 14, 256, 1, 1},  {256, 14, 256, 3, 1}, {1024, 14, 512, 1, 1}, {512, 14, 512, 3, 2},  {512, 7, 2048, 1, 1},
    {1024, 14, 2048, 1, 2}, {2048, 7, 512, 1, 1}, {512, 7, 512, 3, 1}};
constexpr Convolution kVgg16[] = {{3, 224, 64, 3, 1},    {64, 224, 64, 3, 1},  {64, 112, 128, 3, 1},
                                  {128, 112, 128, 3, 1}, {128, 56, 256, 3, 1}, {256, 56, 256, 3, 1},
                                  {256, 28, 512, 3, 1},  {512, 28, 512, 3, 1}, {512, 14, 512, 3, 1}};
constexpr Convolution kMobileNetV2[] = {
    {3, 224, 32, 3, 2},        {32, 112, 32, 3, 1, 32},   {32, 112, 16, 1, 1},       {16, 112, 96, 1, 1},
    {96, 112, 96, 3, 2, 96},   {96, 56, 24, 1, 1},        {24, 56, 144, 1, 1},       {144, 56, 144, 3, 1, 144},
    {144, 56, 24, 1, 1},       {144, 56, 144, 3, 2, 144}, {144, 28, 32, 1, 1},       {32, 28, 192, 1, 1},
    {192, 28, 192, 3, 1, 192}, {192, 28, 32, 1, 1},       {192, 28, 192, 3, 2, 192}, {192, 14, 64, 1, 1},
    {64, 14, 384, 1, 1},       {384, 14, 384, 3, 1, 384}, {384, 14, 64, 1, 1},       {384, 14, 96, 1, 1},
    {96, 14, 576, 1, 1},       {576, 14, 576, 3, 1, 576}, {576, 14, 96, 1, 1},       {576, 14, 576, 3, 2, 576},
    {576, 7, 160, 1, 1},       {160, 7, 960, 1, 1},       {960, 7, 960, 3, 1, 960},  {960, 7, 160, 1, 1},
    {960, 7, 320, 1, 1},       {320, 7, 1280, 1, 1}};

struct Matmul {
  int64_t m, k, n;
};
constexpr Matmul kMatmuls[] = {{512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {1, 768, 3072}, {8, 768, 3072},
                               {128, 768, 3072}, {128, 3072, 768},   {197, 768, 768},    {3136, 64, 64}};

std::string dims_text(const std::vector<int64_t>& dims, bool symbolic) {
  const char* comma = dims.size() == 1 ? "," : "";
  return fmt::format("({}{}{})", symbolic ? "\"m\", " : "", joined(std::span(dims).subspan(symbolic)), comma);
}

// Small integers, so that every sum is exact in float32 and in bfloat16 products.
Tensor random_tensor(std::vector<int64_t> shape, DType dtype, int low, int high) {
  static std::mt19937 generator(7);
  std::uniform_int_distribution<int> number(low, high);
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    dtype.is_integral() ? tensor.set_int(i, number(generator)) : tensor.set_double(i, number(generator) / 8.0);
  }
  return tensor;
}

// Of sums too: a bias is added before they are rounded.
DType bias_dtype(const Problem& p) { return p.peak == Peak::kInt8 ? kInt32 : kFloat32; }

double right_answer(const Problem& p, const Data& data, int64_t element) {
  double sum = 0;
  if (p.kind == Problem::Kind::kMatmul) {
    int64_t i = element / p.n, j = element % p.n;
    for (int64_t k = 0; k < p.k; ++k) sum += data.input.as_double(i * p.k + k) * data.weight.as_double(k * p.n + j);
    return sum;
  }
  int64_t out = p.out_size(), x = element % out, y = element / out % out, filter = element / (out * out);
  int64_t depth = p.channels / p.groups, first = filter / (p.filters / p.groups) * depth;
  for (int64_t c = 0; c < depth; ++c) {
    for (int64_t dy = 0; dy < p.window; ++dy) {
      for (int64_t dx = 0; dx < p.window; ++dx) {
        int64_t row = y * p.stride + dy - p.padding(), column = x * p.stride + dx - p.padding();
        if (row < 0 || row >= p.size || column < 0 || column >= p.size) continue;
        sum += data.input.as_double(((first + c) * p.size + row) * p.size + column) *
               data.weight.as_double(((filter * depth + c) * p.window + dy) * p.window + dx);
      }
    }
  }
  sum += data.bias.as_double(filter);
  if (p.is_requantized()) return std::clamp(std::nearbyint(sum * data.scale.as_double(filter)), 0.0, 255.0);
  return rounded_to(std::max(0.0, sum), p.output_dtype());
}

// Powers of two, with which the sum and the bias can be multiplied together or each, exactly. About half of the
// outputs are neither 0 nor 255.
Tensor random_scales(const Problem& p) {
  const double products = static_cast<double>(p.channels / p.groups * p.window * p.window);
  const double deviation = 47 * std::sqrt(products);  // of a sum: 47² is the mean square of make_data's products
  const int exponent = static_cast<int>(std::lround(std::log2(100 / deviation)));
  Tensor scales = Tensor::empty({p.filters}, kFloat32);
  for (int64_t i = 0; i < p.filters; ++i) scales.set_double(i, std::ldexp(1.0, exponent - static_cast<int>(i % 2)));
  return scales;
}

std::string param_text(const char* name, const std::vector<int64_t>& dims, bool symbolic, DType dtype) {
  return fmt::format("{}: R.Tensor({}, \"{}\")", name, dims_text(dims, symbolic), to_string(dtype));
}

std::string matmul_text(const Problem& p) {
  return fmt::format(
      "@R.function\ndef main({}, {}):\n    with R.dataflow():\n"
      "        y = R.matmul(x, w, out_dtype=\"{}\")\n        R.output(y)\n    return y\n",
      param_text("x", p.input_shape(), p.symbolic, p.input_dtype()),
      param_text("w", p.weight_shape(), false, p.weight_dtype()), to_string(p.output_dtype()));
}

// The statements behind the convolution c, and the parameters that they take.
struct Epilogue {
  std::string params, statements;
};
Epilogue convolution_epilogue(const Problem& p, int64_t block) {
  const int64_t filters = round_up(p.filters, block);
  auto of_channels = [&](const char* name) {
    return fmt::format(
        "        {0}p = R.nn.pad({0}, pad_width=[0, {1}])\n        {0}5 = R.reshape({0}p, (1, {2}, 1, 1, {3}))\n", name,
        filters - p.filters, filters / block, block);
  };
  Epilogue result{", " + param_text("b", {p.filters}, false, bias_dtype(p)),
                  of_channels("b") + "        a = R.add(c, b5)\n"};
  if (p.is_requantized()) {
    result.params += ", " + param_text("s", {p.filters}, false, kFloat32);
    result.statements += of_channels("s") +
                         "        f = R.multiply(R.astype(a, \"float32\"), s5)\n"
                         "        y = R.quantize(f, R.const(1.0, \"float32\"), R.const(0, \"uint8\"), axis=1, "
                         "out_dtype=\"uint8\")\n";
  } else {
    const std::string relu = "R.nn.relu(a)";
    const bool is_rounded = p.output_dtype() != kFloat32;
    result.statements += fmt::format(
        "        y = {}\n", is_rounded ? fmt::format("R.astype({}, \"{}\")", relu, to_string(p.output_dtype())) : relu);
  }
  return result;
}

std::string convolution_text(const Problem& p, const Blocking& blocking) {
  const int64_t block = blocking.block, pad = p.padding();
  const bool is_picture = p.channels <= 3, is_plain = is_picture && p.peak == Peak::kFloat32;
  const int64_t image_block = is_plain ? 1 : is_picture ? 4 : block;
  const int64_t channels = round_up(p.channels, image_block), filters = round_up(p.filters, block);
  const std::string image =
      is_plain ? dims_text(p.input_shape(), false)
               : fmt::format("(1, {}, {}, {}, {})", channels / image_block, p.size, p.size, image_block);
  const Epilogue epilogue = convolution_epilogue(p, block);
  return fmt::format(
      "@R.function\ndef main(x: R.Tensor({}, \"{}\"), {}{}):\n    with R.dataflow():\n"
      "        wp = R.nn.pad(w, pad_width=[0, {}, 0, {}, 0, 0, 0, {}])\n"
      "        c = R.nn.conv2d(x, wp, strides={}, padding=[{}, {}, {}, {}], groups={}, data_layout=\"{}\", "
      "out_layout=\"NCHW{}c\", "
      "out_dtype=\"{}\")\n{}        R.output(y)\n    return y\n",
      image, to_string(p.input_dtype()), param_text("w", p.weight_shape(), false, p.weight_dtype()), epilogue.params,
      filters - p.filters, is_picture ? channels - p.channels : 0, blocking.zeros, p.stride, pad, pad, pad,
      pad + blocking.zeros, p.groups > 1 ? channels : 1, is_plain ? "NCHW" : fmt::format("NCHW{}c", image_block), block,
      to_string(bias_dtype(p)), epilogue.statements);
}

}  // namespace

int64_t Problem::products() const {
  if (kind == Kind::kMatmul) return m * n * k;
  return out_size() * out_size() * filters * (channels / groups) * window * window;
}

std::string Problem::shape() const {
  if (kind == Kind::kMatmul) return fmt::format("{}x{}x{}{}", m, k, n, symbolic ? " (m)" : "");
  return fmt::format("{}x{}x{} -> {}, {}x{}/{}{}", channels, size, size, filters, window, window, stride,
                     groups > 1 ? " depthwise" : "");
}

DType Problem::input_dtype() const {
  return peak == Peak::kInt8 ? DType::uint(8) : peak == Peak::kBFloat16 ? DType::bfloat16() : kFloat32;
}
DType Problem::weight_dtype() const { return peak == Peak::kInt8 ? DType::int_(8) : input_dtype(); }
DType Problem::output_dtype() const {
  if (kind == Kind::kConvolution) return input_dtype();
  return peak == Peak::kInt8 ? kInt32 : kFloat32;
}

std::vector<int64_t> Problem::input_shape() const {
  return kind == Kind::kMatmul ? std::vector{m, k} : std::vector<int64_t>{1, channels, size, size};
}
std::vector<int64_t> Problem::weight_shape() const {
  return kind == Kind::kMatmul ? std::vector{k, n} : std::vector{filters, channels / groups, window, window};
}
std::vector<int64_t> Problem::output_shape() const {
  return kind == Kind::kMatmul ? std::vector{m, n} : std::vector<int64_t>{1, filters, out_size(), out_size()};
}

std::vector<Problem> problems() {
  std::vector<Problem> result;
  auto matmul = [&](const char* name, Peak peak, int64_t m, int64_t k, int64_t n, bool symbolic) {
    Problem problem{.kernel = name, .peak = peak, .m = m, .n = n, .k = k};
    problem.symbolic = symbolic;
    result.push_back(problem);
  };
  for (auto [name, peak] : {std::pair{"matmul", Peak::kFloat32}, std::pair{"matmul_u8s8", Peak::kInt8},
                            std::pair{"matmul_bf16", Peak::kBFloat16}}) {
    for (const Matmul& row : kMatmuls) matmul(name, peak, row.m, row.k, row.n, false);
  }
  for (bool symbolic : {false, true}) {
    for (int64_t m : {1, 7, 16, 100, 128, 1000})
      matmul(symbolic ? "matmul_symbolic" : "matmul_static", Peak::kFloat32, m, 768, 768, symbolic);
  }
  auto convolutions = [&](const char* name, Peak peak, std::span<const Convolution> rows) {
    for (const Convolution& row : rows) {
      Problem problem{.kind = Problem::Kind::kConvolution, .kernel = name, .peak = peak};
      problem.channels = row.channels;
      problem.size = row.size;
      problem.filters = row.filters;
      problem.window = row.window;
      problem.stride = row.stride;
      problem.groups = row.groups;
      result.push_back(problem);
    }
  };
  convolutions("resnet50", Peak::kFloat32, kResNet50);
  convolutions("resnet50_u8s8", Peak::kInt8, kResNet50);
  convolutions("resnet50_bf16", Peak::kBFloat16, kResNet50);
  convolutions("vgg16", Peak::kFloat32, kVgg16);
  convolutions("mobilenet_v2", Peak::kFloat32, kMobileNetV2);
  convolutions("mobilenet_v2_u8s8", Peak::kInt8, kMobileNetV2);
  return result;
}

std::string module_text(const Problem& p, const Blocking& blocking) {
  return p.kind == Problem::Kind::kMatmul ? matmul_text(p) : convolution_text(p, blocking);
}

Data make_data(const Problem& problem) {
  int low = problem.peak == Peak::kInt8 ? 0 : -8;
  Data data{random_tensor(problem.input_shape(), problem.input_dtype(), low, low + 16),
            random_tensor(problem.weight_shape(), problem.weight_dtype(), -8, 8),
            random_tensor({std::max<int64_t>(problem.filters, 1)}, bias_dtype(problem), -8, 8),
            random_scales(problem),
            {}};
  int64_t size = *element_count(problem.output_shape());
  for (int64_t i = 0; i < kSamples; ++i) data.sample.push_back(right_answer(problem, data, i * kSampleStride % size));
  return data;
}

double difference(const Problem& problem, const Data& data, const Tensor& output) {
  double largest = 0, scale = 1;
  int64_t size = *element_count(problem.output_shape());
  for (int64_t i = 0; i < kSamples; ++i) {
    double wanted = data.sample[static_cast<size_t>(i)];
    double error = std::abs(output.as_double(i * kSampleStride % size) - wanted);
    largest = error > largest || std::isnan(error) ? error : largest;
    scale = std::max(scale, std::abs(wanted));
  }
  return largest / scale;
}

double allowed_difference(const Problem& problem) { return problem.output_dtype().is_integral() ? 0 : 1e-3; }

}  // namespace relaxc::bench
