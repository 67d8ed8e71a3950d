// Convolutions and products between dequantize and quantize, on several targets, against the integer arithmetic that
// docs/quantize.md states.
#include <cmath>

#include "codegen/compile.h"
#include "codegen/target.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "tests/constants.h"
#include "tests/ops/harness.h"
#include "tests/patterns.h"
#include "vm/program.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

constexpr float kXScale = 0.05f, kWScale = 0.25f, kYScale = 1.5f;

Tensor bytes_of(const Shape& shape, DType dtype, int64_t step) {
  Tensor tensor = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_int(i, dtype.is_uint() ? i * step % 256 : i * step % 256 - 128);
  return tensor;
}

// What the graph is about: a convolution [1, channels, 6, 5] with filters of size x size, or a product [5, channels].
struct Region {
  const char *x, *w;  // dtypes
  int64_t x_zero, w_zero;
  int64_t channels, filters, groups, size;  // size 0: a product

  DType type(const char* name) const { return *parse_dtype(name); }
  Shape x_shape() const { return size == 0 ? Shape{5, channels} : Shape{1, channels, 6, 5}; }
  Shape w_shape() const { return size == 0 ? Shape{channels, filters} : Shape{filters, channels / groups, size, size}; }
  std::string text() const {
    auto list = [](const Shape& shape) {
      std::string all;
      for (int64_t dim : shape) all += fmt::format("{}, ", dim);
      return all;
    };
    const std::string call = size == 0
                                 ? "R.matmul(a, b)"
                                 : fmt::format("R.nn.conv2d(a, b, padding=[{0}, {0}], groups={1})", size / 2, groups);
    return fmt::format(R"(
@R.function
def main(x: R.Tensor(({0}), "{1}"), w: R.Tensor(({2}), "{3}")):
    with R.dataflow():
        a = R.dequantize(x, R.const({4}, "float32"), R.const({5}, "{1}"))
        b = R.dequantize(w, R.const({6}, "float32"), R.const({7}, "{3}"))
        y = R.quantize({8}, R.const({9}, "float32"), R.const(3, "int8"), out_dtype="int8")
        R.output(y)
    return y
)",
                       list(x_shape()), x, list(w_shape()), w, kXScale, x_zero, kWScale, w_zero, call, kYScale);
  }
  // Returns the sum of products that a result is made of.
  int64_t sum(const Tensor& data, const Tensor& weight, const Shape& at) const {
    int64_t total = 0;
    auto product = [&](const Shape& i, const Shape& j) {
      total += (static_cast<int64_t>(element(data, i)) - x_zero) * (static_cast<int64_t>(element(weight, j)) - w_zero);
    };
    if (size == 0) {
      for (int64_t k = 0; k < channels; ++k) product({at[0], k}, {k, at[1]});
      return total;
    }
    const int64_t depth = channels / groups, first = at[1] / (filters / groups) * depth;
    for (int64_t c = 0; c < depth; ++c) {
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t j = 0; j < size; ++j) {
          const int64_t y = at[2] + i - size / 2, x_at = at[3] + j - size / 2;
          if (y >= 0 && y < 6 && x_at >= 0 && x_at < 5) product({0, first + c, y, x_at}, {at[1], c, i, j});
        }
      }
    }
    return total;
  }
  int wrong(const Tensor& data, const Tensor& weight, const Tensor& result) const {
    int count = 0;
    for_each_index(result.shape(), [&](const Shape& at) {
      const float scaled = static_cast<float>(sum(data, weight, at)) * (kXScale * kWScale / kYScale);
      const float expected = std::clamp(std::nearbyint(scaled) + 3, -128.0f, 127.0f);
      count += element(result, at) != expected;
    });
    return count;
  }
};

// A mean of numbers of [2, 3, 9, 10] over windows, or over the last two axes where the window is 0.
struct MeanRegion {
  const char* dtype;
  int64_t zero, window, stride, padding;
  bool counts_padding;

  int64_t extent(int64_t size) const { return window == 0 ? 1 : (size + 2 * padding - window) / stride + 1; }
  std::string text() const {
    const std::string mean =
        window == 0 ? "R.mean(a, axis=[2, 3], keepdims=True)"
                    : fmt::format(
                          "R.nn.avg_pool2d(a, pool_size=[{0}, {0}], strides=[{1}, {1}], padding=[{2}, {2}], "
                          "count_include_pad={3})",
                          window, stride, padding, counts_padding ? "True" : "False");
    return fmt::format(R"(
@R.function
def main(x: R.Tensor((2, 3, 9, 10), "{0}")):
    with R.dataflow():
        a = R.dequantize(x, R.const({1}, "float32"), R.const({2}, "{0}"))
        y = R.quantize({3}, R.const({1}, "float32"), R.const(5, "uint8"), out_dtype="uint8")
        R.output(y)
    return y
)",
                       dtype, kXScale, zero, mean);
  }
  float expected(const Tensor& x, const Shape& at) const {
    int64_t sum = 0, count = 0;
    const int64_t height = window == 0 ? 9 : window, width = window == 0 ? 10 : window;
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t row = at[2] * stride + i - padding, column = at[3] * stride + j - padding;
        const bool is_inside = row >= 0 && row < 9 && column >= 0 && column < 10;
        count += is_inside || counts_padding;
        if (is_inside) sum += static_cast<int64_t>(element(x, {at[0], at[1], row, column})) - zero;
      }
    }
    const float mean = static_cast<float>(sum) / static_cast<float>(count) * kXScale;
    return std::clamp(std::nearbyint(mean / kXScale) + 5, 0.0f, 255.0f);
  }
};

// In the interpreter targets have the instructions that this machine may lack.
CompileSettings settings_for(const std::string& target) {
  CompileSettings settings;
  settings.target = target;
  if (target.starts_with("triple=") || target.starts_with("cpu=")) {
    settings.passes = "simplify,kernels";
    settings.interpret = InterpretOptions{};
  }
  return settings;
}

}  // namespace

TEST_CASE("convolutions and products of quantized values are exact sums of integers", "[passes]") {
  const auto region =
      GENERATE(Region{"uint8", "int8", 0, 0, 32, 16, 1, 3}, Region{"int8", "int8", -3, 0, 16, 32, 1, 1},
               Region{"uint8", "uint8", 7, 128, 16, 16, 1, 3}, Region{"int8", "uint8", 5, 255, 3, 16, 1, 3},
               Region{"uint8", "int8", 9, 2, 16, 16, 16, 3}, Region{"int8", "int8", 6, 0, 32, 32, 32, 5},
               Region{"uint8", "int8", 128, 0, 3, 20, 1, 3}, Region{"int8", "int8", 4, 0, 64, 32, 2, 1},
               Region{"uint8", "int8", 11, 0, 64, 33, 1, 0}, Region{"int8", "uint8", -128, 0, 37, 64, 1, 0},
               Region{"int8", "int8", 0, 0, 64, 64, 1, 0});
  CAPTURE(region.x, region.w, region.x_zero, region.w_zero, region.channels, region.filters, region.size);
  const Tensor data = bytes_of(region.x_shape(), region.type(region.x), 37),
               weight = bytes_of(region.w_shape(), region.type(region.w), 91);
  Diagnostics diagnostics;
  IRModule module = parse_module(region.text(), "region.py", op_table(), diagnostics);
  INFO(region.text());
  REQUIRE(diagnostics.all().empty());
  const std::vector<Tensor> inputs = {data};
  for (const char* target : {"host", "x86-64", "x86-64-v2", "x86-64-v3", "cpu=znver5", "cpu=alderlake",
                             "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Program program = compile(with_constants(module, {weight}), settings_for(target)).load();
    CHECK(region.wrong(data, weight, Session(program).run(inputs).at(0)) == 0);
  }
}

TEST_CASE("windows of one pixel with a stride are exact sums of integers", "[passes]") {
  const char* text = R"(
@R.function
def main(x: R.Tensor((2, 32, 9, 14), "uint8"), w: R.Tensor((16, 32, 1, 1), "int8")):
    with R.dataflow():
        y = R.nn.conv2d(x, w, strides=[2, 3], out_dtype="int32")
        R.output(y)
    return y
)";
  const Tensor data = bytes_of({2, 32, 9, 14}, DType::uint(8), 37),
               weight = bytes_of({16, 32, 1, 1}, DType::int_(8), 91);
  Diagnostics diagnostics;
  const IRModule module = with_constants(parse_module(text, "strided.py", op_table(), diagnostics), {weight});
  const std::vector<Tensor> inputs = {data};
  for (const char* target :
       {"host", "x86-64-v2", "x86-64-v3", "cpu=znver5", "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Tensor result = Session(compile(module, settings_for(target)).load()).run(inputs).at(0);
    REQUIRE(result.shape() == Shape{2, 16, 5, 5});
    int64_t wrong = 0;
    for_each_index(result.shape(), [&](const Shape& at) {
      int64_t sum = 0;
      for (int64_t c = 0; c < 32; ++c)
        sum += static_cast<int64_t>(element(data, {at[0], c, 2 * at[2], 3 * at[3]})) *
               static_cast<int64_t>(element(weight, {at[1], c, 0, 0}));
      wrong += static_cast<int64_t>(element(result, at)) != sum;
    });
    CHECK(wrong == 0);
  }
}

// Instructions that clamp sums of two products to 16 bits.
TEST_CASE("bytes whose sums of two products are clamped", "[passes]") {
  const auto region =
      GENERATE(Region{"uint8", "int8", 7, 0, 64, 32, 1, 0}, Region{"uint8", "int8", 0, 0, 32, 16, 1, 3});
  const int64_t most = GENERATE(64, 65);
  const bool is_fast = GENERATE(false, true);
  CAPTURE(region.size, most, is_fast);
  Tensor data = Tensor::empty(region.x_shape(), region.type(region.x)),
         weight = Tensor::empty(region.w_shape(), region.type(region.w));
  for (int64_t i = 0; i < data.size(); ++i) data.set_int(i, 255);
  const int64_t size_of_channel = region.size == 0 ? region.filters : region.size * region.size;
  for (int64_t i = 0; i < weight.size(); ++i) weight.set_int(i, i / size_of_channel % 4 < 2 ? most : -64);
  Diagnostics diagnostics;
  const IRModule module = with_constants(parse_module(region.text(), "region.py", op_table(), diagnostics), {weight});
  const std::vector<Tensor> inputs = {data};
  const bool clamps = is_fast || most == 64, is_exact = !is_fast || most == 64;
  for (const char* target : {"x86-64-v3", "x86-64-v2", "cpu=skylake-avx512"}) {
    CAPTURE(target);
    CompileSettings settings = settings_for(target);
    settings.fast_int8 = is_fast;
    const Program program = compile(module, settings).load();
    CHECK((region.wrong(data, weight, Session(program).run(inputs).at(0)) == 0) == is_exact);
    settings.passes = "simplify,kernels";
    const std::string kernels = print_module(run_pipeline(module, settings));
    CHECK((contains(kernels, "pmadd.ub.sw") || contains(kernels, "pmaddubs.w")) == clamps);
  }
  // An exact instruction has nothing to gain by clamping.
  CompileSettings vnni = settings_for("cpu=alderlake");
  vnni.fast_int8 = is_fast;
  CHECK(region.wrong(data, weight, Session(compile(module, vnni).load()).run(inputs).at(0)) == 0);
}

// Of a few weights half is in a second sum.
TEST_CASE("few sums of two products of bytes leave 16 bits", "[passes]") {
  const auto region = GENERATE(Region{"uint8", "int8", 7, 0, 64, 32, 1, 0}, Region{"int8", "int8", 5, 0, 62, 48, 1, 0},
                               Region{"uint8", "int8", 0, 0, 32, 16, 1, 3}, Region{"int8", "int8", -3, 0, 64, 32, 1, 1},
                               Region{"uint8", "int8", 9, 0, 32, 32, 2, 3});
  CAPTURE(region.x, region.x_zero, region.channels, region.filters, region.size);
  Tensor data = Tensor::empty(region.x_shape(), region.type(region.x)),
         weight = bytes_of(region.w_shape(), region.type(region.w), 41);
  for (int64_t i = 0; i < data.size(); ++i) data.set_int(i, region.type(region.x).is_int() ? 127 : 255);
  for (int64_t i = 0; i < weight.size(); ++i) weight.set_int(i, weight.as_int(i) / 2);
  const int64_t channels = region.channels / region.groups, window = region.size * region.size;
  auto set_pair = [&](int64_t filter, int64_t channel, int64_t value) {
    for (int64_t c : {channel, channel + 1})
      weight.set_int(region.size == 0 ? c * region.filters + filter : (filter * channels + c) * window, value);
  };
  set_pair(0, 0, 127);
  set_pair(1, 0, -128);
  set_pair(region.filters - 1, channels - 2, -65);
  Diagnostics diagnostics;
  const IRModule module = with_constants(parse_module(region.text(), "region.py", op_table(), diagnostics), {weight});
  for (const char* target : {"x86-64-v3", "x86-64-v2", "cpu=skylake-avx512"}) {
    CAPTURE(target);
    CompileSettings settings = settings_for(target);
    CHECK(region.wrong(data, weight, Session(compile(module, settings).load()).run({data}).at(0)) == 0);
    settings.passes = "simplify,kernels";
    const std::string kernels = print_module(run_pipeline(module, settings));
    CHECK((contains(kernels, "pmadd.ub.sw") || contains(kernels, "pmaddubs.w")));
    CHECK(contains(kernels, "rest_of_sums"));
  }
}

TEST_CASE("products of two matrices that only the run knows are exact sums of integers", "[passes]") {
  const auto [x, w, x_zero, w_zero, depth] =
      GENERATE(std::tuple("uint8", "int8", 3, 0, 36), std::tuple("int8", "uint8", -128, 255, 64),
               std::tuple("int8", "int8", 5, -7, 64), std::tuple("uint8", "uint8", 0, 9, 13));
  CAPTURE(x, w, x_zero, w_zero, depth);
  constexpr int64_t kRows = 32, kColumns = 48;
  const std::string text = fmt::format(R"(
@R.function
def main(x: R.Tensor(({}, {}), "{}"), w: R.Tensor(({}, {}), "{}")):
    with R.dataflow():
        a = R.subtract(R.astype(x, dtype="int32"), R.const({}, "int32"))
        b = R.subtract(R.astype(w, dtype="int32"), R.const({}, "int32"))
        y = R.matmul(a, b, out_dtype="int32")
        R.output(y)
    return y
)",
                                       kRows, depth, x, depth, kColumns, w, x_zero, w_zero);
  Diagnostics diagnostics;
  const IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  const std::vector<Tensor> inputs = {bytes_of({kRows, depth}, *parse_dtype(x), 37),
                                      bytes_of({depth, kColumns}, *parse_dtype(w), 91)};
  for (const char* target : {"host", "x86-64", "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Tensor result = Session(compile(module, settings_for(target)).load()).run(inputs).at(0);
    int wrong = 0;
    for_each_index(result.shape(), [&](const Shape& at) {
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += (static_cast<int64_t>(element(inputs[0], {at[0], k})) - x_zero) *
               (static_cast<int64_t>(element(inputs[1], {k, at[1]})) - w_zero);
      }
      wrong += static_cast<int64_t>(element(result, at)) != sum;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("products of matrices of sizes that only the run knows are exact sums of integers", "[passes]") {
  const auto [x, w, x_zero, w_zero] = GENERATE(
      std::tuple("uint8", "int8", 3, 0), std::tuple("int8", "uint8", -128, 255), std::tuple("uint8", "uint8", 7, 131));
  CAPTURE(x, w, x_zero, w_zero);
  const std::string text = fmt::format(R"(
@R.function
def main(x: R.Tensor(("b", "m", "k"), "{0}"), w: R.Tensor(("b", "k", "n"), "{1}")):
    with R.dataflow():
        a = R.subtract(R.astype(x, dtype="int32"), R.const({2}, "int32"))
        b = R.subtract(R.astype(w, dtype="int32"), R.const({3}, "int32"))
        y = R.matmul(a, b, out_dtype="int32")
        R.output(y)
    return y
)",
                                       x, w, x_zero, w_zero);
  Diagnostics diagnostics;
  const IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  for (const char* target : {"host", "x86-64", "cpu=znver5", "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Program program = compile(module, settings_for(target)).load();
    const bool is_interpreted = settings_for(target).interpret.has_value();
    for (const Shape& sizes : std::vector<Shape>{{2, 1, 1, 1},
                                                 {1, 33, 7, 33},
                                                 {2, 7, 33, 128},
                                                 {1, 5, 128, 7},
                                                 {1, 2, 500, 33},
                                                 {1, 3, 33, 500},
                                                 {0, 3, 4, 5},
                                                 {2, 3, 0, 5}}) {
      if (is_interpreted && sizes[1] * sizes[2] * sizes[3] > 10'000) continue;
      CAPTURE(sizes);
      const std::vector<Tensor> inputs = {bytes_of({sizes[0], sizes[1], sizes[2]}, *parse_dtype(x), 37),
                                          bytes_of({sizes[0], sizes[2], sizes[3]}, *parse_dtype(w), 91)};
      const Tensor result = Session(program).run(inputs).at(0);
      int wrong = 0;
      for_each_index(result.shape(), [&](const Shape& at) {
        int64_t sum = 0;
        for (int64_t k = 0; k < sizes[2]; ++k) {
          sum += (static_cast<int64_t>(element(inputs[0], {at[0], at[1], k})) - x_zero) *
                 (static_cast<int64_t>(element(inputs[1], {at[0], k, at[2]})) - w_zero);
        }
        wrong += static_cast<int64_t>(element(result, at)) != sum;
      });
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("sums of real numbers of a symbolic length are refused where they could leave int32", "[passes]") {
  const std::string text = R"(
@R.function
def main(x: R.Tensor(("m", "k"), "uint8"), w: R.Tensor(("k", "n"), "int8")):
    with R.dataflow():
        a = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "uint8"))
        b = R.dequantize(w, R.const(0.25, "float32"), R.const(-1, "int8"))
        y = R.matmul(a, b)
        R.output(y)
    return y
)";
  Diagnostics diagnostics;
  const IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  CompileSettings settings;
  settings.target = "x86-64-v3";
  const Program program = compile(module, settings).load();
  auto run = [&](int64_t length) {
    const std::vector<Tensor> inputs = {bytes_of({1, length}, DType::uint(8), 37),
                                        bytes_of({length, 1}, DType::int_(8), 91)};
    return Session(program).run(inputs).at(0);
  };
  CHECK(run(33025).size() == 1);
  CHECK_THROWS_WITH(run(33026), "dim 'k' is 33026, and the program takes 0 to 33025");
}

TEST_CASE("convolutions with filters that only the run knows are exact sums of integers", "[passes]") {
  const auto region =
      GENERATE(Region{"uint8", "int8", 0, 0, 32, 16, 1, 3}, Region{"int8", "uint8", -3, 200, 16, 32, 1, 1},
               Region{"uint8", "uint8", 7, 0, 16, 16, 1, 3}, Region{"int8", "int8", 5, -9, 6, 4, 2, 3},
               Region{"uint8", "int8", 9, 2, 16, 16, 16, 3});
  CAPTURE(region.x, region.w, region.x_zero, region.w_zero, region.channels, region.filters, region.size);
  const Tensor data = bytes_of(region.x_shape(), region.type(region.x), 37),
               weight = bytes_of(region.w_shape(), region.type(region.w), 91);
  Diagnostics diagnostics;
  const IRModule module = parse_module(region.text(), "region.py", op_table(), diagnostics);
  INFO(region.text());
  REQUIRE(diagnostics.all().empty());
  for (const char* target : {"host", "x86-64", "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Program program = compile(module, settings_for(target)).load();
    const std::vector<Tensor> inputs = {data, weight};
    CHECK(region.wrong(data, weight, Session(program).run(inputs).at(0)) == 0);
  }
}

TEST_CASE("means of quantized values are quotients of exact sums of integers", "[passes]") {
  const auto region = GENERATE(MeanRegion{"uint8", 0, 0, 0, 0, false}, MeanRegion{"int8", -7, 0, 0, 0, false},
                               MeanRegion{"uint8", 100, 2, 2, 0, false}, MeanRegion{"uint8", 9, 3, 1, 1, false},
                               MeanRegion{"int8", 3, 3, 2, 1, true}, MeanRegion{"uint8", 0, 7, 1, 0, false});
  INFO(region.text());
  Diagnostics diagnostics;
  const IRModule module = parse_module(region.text(), "mean.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  const std::vector<Tensor> inputs = {bytes_of({2, 3, 9, 10}, *parse_dtype(region.dtype), 37)};
  for (const char* target : {"host", "x86-64", "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Tensor result = Session(compile(module, settings_for(target)).load()).run(inputs).at(0);
    CHECK(result.shape() == Shape{2, 3, region.extent(9), region.extent(10)});
    int wrong = 0;
    for_each_index(result.shape(),
                   [&](const Shape& at) { wrong += element(result, at) != region.expected(inputs[0], at); });
    CHECK(wrong == 0);
  }
}

TEST_CASE("products of batches of matrices that only the run knows are exact sums of integers", "[passes]") {
  const auto [x, w, x_zero, w_zero, depth, columns] =
      GENERATE(std::tuple("uint8", "uint8", 124, 131, 64, 32), std::tuple("uint8", "int8", 0, 3, 32, 48),
               std::tuple("int8", "uint8", -5, 0, 64, 20), std::tuple("uint8", "int8", 1, 0, 12, 16));
  CAPTURE(x, w, x_zero, w_zero, depth, columns);
  const std::string text = fmt::format(R"(
@R.function
def main(x: R.Tensor((2, 3, 24, {4}), "{0}"), w: R.Tensor((2, 3, {5}, {4}), "{1}")):
    with R.dataflow():
        a = R.dequantize(x, R.const({6}, "float32"), R.const({2}, "{0}"))
        b = R.dequantize(w, R.const({7}, "float32"), R.const({3}, "{1}"))
        p = R.matmul(a, R.permute_dims(b, axes=[0, 1, 3, 2]))
        y = R.quantize(p, R.const({8}, "float32"), R.const(3, "int8"), out_dtype="int8")
        R.output(y)
    return y
)",
                                       x, w, x_zero, w_zero, depth, columns, kXScale, kWScale, kYScale);
  INFO(text);
  Diagnostics diagnostics;
  const IRModule module = parse_module(text, "product.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  const std::vector<Tensor> inputs = {bytes_of({2, 3, 24, depth}, *parse_dtype(x), 37),
                                      bytes_of({2, 3, columns, depth}, *parse_dtype(w), 91)};
  for (const char* target : {"host", "x86-64", "cpu=icelake-server", "triple=aarch64-linux-gnu,cpu=neoverse-n1"}) {
    CAPTURE(target);
    const Tensor result = Session(compile(module, settings_for(target)).load()).run(inputs).at(0);
    int wrong = 0;
    for_each_index(result.shape(), [&](const Shape& at) {
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += (static_cast<int64_t>(element(inputs[0], {at[0], at[1], at[2], k})) - x_zero) *
               (static_cast<int64_t>(element(inputs[1], {at[0], at[1], at[3], k})) - w_zero);
      }
      const float scaled = static_cast<float>(sum) * (kXScale * kWScale / kYScale);
      wrong += element(result, at) != std::clamp(std::nearbyint(scaled) + 3, -128.0f, 127.0f);
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats between integers are rounded after each operation on all targets", "[passes]") {
  // The quotients are whole and a half, but for roundings.
  const std::string text = R"(
@R.function
def main(x: R.Tensor((64, 37), "uint8"), y: R.Tensor((64, 37), "uint8"), z: R.Tensor((64, 37), "int8")):
    with R.dataflow():
        a = R.dequantize(x, R.const(0.1, "float32"), R.const(7, "uint8"))
        b = R.dequantize(y, R.const(0.3, "float32"), R.const(100, "uint8"))
        c = R.dequantize(z, R.const(0.7, "float32"), R.const(-3, "int8"))
        sum = R.quantize(R.add(a, b), R.const(0.2, "float32"), R.const(128, "uint8"), out_dtype="uint8")
        product = R.quantize(R.add(R.multiply(a, b), c), R.const(0.06, "float32"), R.const(-9, "int8"), out_dtype="int8")
        real = R.add(R.multiply(R.dequantize(sum, R.const(0.2, "float32"), R.const(128, "uint8")), R.const(1.1, "float32")), c)
        R.output(sum, product, real)
    return (sum, product, real)
)";
  Diagnostics diagnostics;
  const IRModule module = parse_module(text, "floats.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  const Shape shape = {64, 37};
  const std::vector<Tensor> inputs = {bytes_of(shape, DType::uint(8), 37), bytes_of(shape, DType::uint(8), 91),
                                      bytes_of(shape, DType::int_(8), 53)};
  CompileSettings by_operator;
  by_operator.passes = "legalize";
  by_operator.interpret = InterpretOptions{};
  const std::vector<Tensor> expected = Session(compile(module, by_operator).load()).run(inputs);
  for (const char* target : {"host", "x86-64", "x86-64-v2", "x86-64-v3"}) {
    if (std::string(target) == "x86-64-v3" && !codegen::host_target().has_fma) continue;
    CAPTURE(target);
    CompileSettings settings;
    settings.target = target;
    const std::vector<Tensor> results = Session(compile(module, settings).load()).run(inputs);
    for (size_t i = 0; i < expected.size(); ++i) CHECK(same_contents(results[i], expected[i]));
  }
}

}  // namespace relaxc::test
