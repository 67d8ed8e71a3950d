#include "bench/kernels/problem.h"
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
  return fmt::format("({}{})", symbolic ? "\"m\", " : "", joined(std::span(dims).subspan(symbolic)));
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
  return std::max(0.0, sum + data.bias.as_double(filter));
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
DType Problem::output_dtype() const { return peak == Peak::kInt8 ? kInt32 : kFloat32; }

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
  for (const Matmul& row : kMatmuls) matmul("matmul", Peak::kFloat32, row.m, row.k, row.n, false);
  for (bool symbolic : {false, true}) {
    for (int64_t m : {1, 7, 16, 100, 128, 1000})
      matmul(symbolic ? "matmul_symbolic" : "matmul_static", Peak::kFloat32, m, 768, 768, symbolic);
  }
  matmul("matmul_u8s8", Peak::kInt8, 1024, 1024, 1024, false);
  matmul("matmul_bf16", Peak::kBFloat16, 1024, 1024, 1024, false);
  auto convolutions = [&](const char* name, std::span<const Convolution> rows) {
    for (const Convolution& row : rows) {
      Problem problem{.kind = Problem::Kind::kConvolution, .kernel = name};
      problem.channels = row.channels;
      problem.size = row.size;
      problem.filters = row.filters;
      problem.window = row.window;
      problem.stride = row.stride;
      problem.groups = row.groups;
      result.push_back(problem);
    }
  };
  convolutions("resnet50", kResNet50);
  convolutions("vgg16", kVgg16);
  convolutions("mobilenet_v2", kMobileNetV2);
  return result;
}

std::string module_text(const Problem& p, int64_t block) {
  std::string params =
      fmt::format("x: R.Tensor({}, \"{}\"), w: R.Tensor({}, \"{}\")", dims_text(p.input_shape(), p.symbolic),
                  to_string(p.input_dtype()), dims_text(p.weight_shape(), false), to_string(p.weight_dtype()));
  if (p.kind == Problem::Kind::kMatmul) {
    return fmt::format(
        "@R.function\ndef main({}):\n    with R.dataflow():\n"
        "        y = R.matmul(x, w, out_dtype=\"{}\")\n        R.output(y)\n    return y\n",
        params, to_string(p.output_dtype()));
  }
  auto blocked = [&](int64_t channels) { return (channels + block - 1) / block * block; };
  bool picture = p.channels <= 3;
  int64_t channels = picture ? p.channels : blocked(p.channels), filters = blocked(p.filters);
  std::string layout = fmt::format("NCHW{}c", block);
  std::string image = picture ? dims_text(p.input_shape(), false)
                              : fmt::format("(1, {}, {}, {}, {})", channels / block, p.size, p.size, block);
  return fmt::format(
      "@R.function\ndef main(x: R.Tensor({0}, \"float32\"), w: R.Tensor({1}, \"float32\"), b: R.Tensor(({2},), "
      "\"float32\")):\n"
      "    with R.dataflow():\n"
      "        wp = R.nn.pad(w, pad_width=[0, {3}, 0, 0, 0, 0, 0, 0])\n"
      "        c = R.nn.conv2d(x, wp, strides={4}, padding={5}, groups={6}, data_layout=\"{7}\", out_layout=\"{8}\")\n"
      "        bp = R.nn.pad(b, pad_width=[0, {3}])\n"
      "        b5 = R.reshape(bp, (1, {9}, 1, 1, {10}))\n        a = R.add(c, b5)\n        y = R.nn.relu(a)\n"
      "        R.output(y)\n    return y\n",
      image, dims_text(p.weight_shape(), false), p.filters, filters - p.filters, p.stride, p.padding(),
      p.groups > 1 ? channels : 1, picture ? "NCHW" : layout, layout, filters / block, block);
}

Data make_data(const Problem& problem) {
  int low = problem.peak == Peak::kInt8 ? 0 : -8;
  Data data{random_tensor(problem.input_shape(), problem.input_dtype(), low, low + 16),
            random_tensor(problem.weight_shape(), problem.weight_dtype(), -8, 8),
            random_tensor({std::max<int64_t>(problem.filters, 1)}, kFloat32, -8, 8),
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

}  // namespace relaxc::bench
