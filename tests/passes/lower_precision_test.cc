// Products in 16 bits: numbers in the interpreter, which has LLVM's intrinsics on every processor, and in machine code
// of this one.
#include <cmath>

#include "codegen/compile.h"
#include "ir/text/parser.h"
#include "passes/precision.h"
#include "support/diagnostic.h"
#include "tests/constants.h"
#include "tests/ops/harness.h"
#include "vm/program.h"

#include "tests/catch.h"  // last

namespace relaxc::test {

namespace {

constexpr const char* kNetwork = R"(
@R.function
def main(x: R.Tensor((1, 3, 9, 9), "float32"), w: R.Tensor((16, 3, 3, 3), "float32"), v: R.Tensor((32, 16, 1, 1), "float32"), d: R.Tensor((32, 1, 3, 3), "float32"), m: R.Tensor((32, 10), "float32")):
    with R.dataflow():
        a = R.nn.relu(R.nn.conv2d(x, w, padding=[1, 1, 1, 1]))
        b = R.nn.conv2d(a, v)
        c = R.nn.conv2d(b, d, groups=32)
        e = R.matmul(R.mean(c, axis=[2, 3]), m)
        R.output(e)
    return e
)";

std::vector<Tensor> results(Precision precision, const std::string& passes, const Tensor& x,
                            const std::string& target = "cpu=znver5") {
  Diagnostics diagnostics;
  IRModule module = parse_module(kNetwork, "network.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  CompileSettings settings;
  settings.target = target;
  settings.precision = precision;
  settings.passes = passes;
  settings.interpret = InterpretOptions{};
  const std::vector<Tensor> weights = {values({16, 3, 3, 3}), values({32, 16, 1, 1}, kFloat32, 2),
                                       values({32, 1, 3, 3}, kFloat32, 3), values({32, 10}, kFloat32, 4)};
  return Session(compile(with_constants(module, weights), settings).load()).run({x});
}

}  // namespace

TEST_CASE("convolutions and products in bfloat16 are close to those in float32", "[passes]") {
  const Tensor x = values({1, 3, 9, 9}, kFloat32, 5);
  const std::string passes = GENERATE(as<std::string>(), "simplify,legalize", "simplify,kernels");
  const std::string target = GENERATE(as<std::string>(), "cpu=znver5", "cpu=sapphirerapids");
  const Tensor exact = results(Precision::kFloat32, "legalize", x).at(0),
               narrow = results(Precision::kBFloat16, passes, x, target).at(0);
  double error = 0, norm = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    error += std::pow(narrow.as_double(i) - exact.as_double(i), 2);
    norm += std::pow(exact.as_double(i), 2);
  }
  CHECK(std::sqrt(error / norm) < 0x1p-7);
  CHECK(error > 0);  // the operands are narrow
}

namespace {

// A network whose weights are larger than the L1 cache of the targets below.
constexpr const char* kLarge = R"(
@R.function
def main(x: R.Tensor((2, 16, 7, 7), "float32"), w: R.Tensor((48, 16, 5, 5), "float32"), m: R.Tensor((432, 80), "float32"), t: R.Tensor((784, 80), "float32")):
    with R.dataflow():
        a = R.nn.relu(R.nn.conv2d(x, w, strides=[2, 2], padding=[2, 2, 2, 2]))
        b = R.nn.max_pool2d(a, pool_size=[2, 2])
        c = R.matmul(R.reshape(b, R.shape([2, 432])), m)
        e = R.add(c, R.take(t, R.argmax(R.reshape(x, R.shape([2, 784])), axis=1), axis=0))
        R.output(e)
    return e
)";

IRModule parsed(const char* text) {
  Diagnostics diagnostics;
  IRModule module = parse_module(text, "network.py", op_table(), diagnostics);
  REQUIRE(diagnostics.all().empty());
  return module;
}

Tensor narrowed(const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::empty(tensor.shape(), kFloat32);
  for (int64_t i = 0; i < tensor.size(); ++i)
    result.set_double(i, dtype == kFloat32 ? tensor.as_double(i) : rounded_to(tensor.as_double(i), dtype));
  return result;
}
// Returns values that no format of 16 bits holds.
Tensor uneven(const std::vector<int64_t>& shape, uint32_t seed) {
  Tensor result = values(shape, kFloat32, seed);
  for (int64_t i = 0; i < result.size(); ++i) result.set_double(i, result.as_double(i) * 0.0123);
  return result;
}
std::vector<Tensor> large_weights(DType dtype) {
  const std::vector<Tensor> weights = {uneven({48, 16, 5, 5}, 2), uneven({432, 80}, 3), uneven({784, 80}, 4)};
  std::vector<Tensor> result;
  for (const Tensor& weight : weights) result.push_back(narrowed(weight, dtype));
  return result;
}

Tensor result_of(const IRModule& module, const CompileSettings& settings, const Tensor& x) {
  return Session(compile(module, settings).load()).run({x}).at(0);
}

// Returns the largest difference, relative to the largest element.
double difference(const Tensor& a, const Tensor& b) {
  double most = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a.as_double(i) - b.as_double(i)));
    largest = std::max(largest, std::abs(b.as_double(i)));
  }
  return most / largest;
}

}  // namespace

TEST_CASE("weights of 16 bits give the results of the rounded weights in float32", "[passes]") {
  const auto [precision, dtype] =
      GENERATE(std::pair(Precision::kBFloat16, DType::bfloat16()), std::pair(Precision::kFloat16, DType::float_(16)));
  const Tensor x = uneven({2, 16, 7, 7}, 5);
  CompileSettings plain;
  plain.target = "x86-64-v3";
  plain.passes = "legalize";
  plain.interpret = InterpretOptions{};
  const IRModule network = with_constants(parsed(kLarge), large_weights(kFloat32));
  const Tensor exact = result_of(network, plain, x),
               expected = result_of(with_constants(parsed(kLarge), large_weights(dtype)), plain, x);
  CHECK(difference(expected, exact) > 1e-5);  // rounding shows
  for (auto [target, passes] : {std::pair("host", "default"), std::pair("x86-64-v3", "simplify,kernels"),
                                std::pair("x86-64-v4", "simplify,kernels"), std::pair("x86-64", "simplify,kernels")}) {
    CAPTURE(target);
    CompileSettings settings;
    settings.target = target;
    settings.precision = precision;
    settings.passes = passes;
    if (settings.target != "host") settings.interpret = InterpretOptions{};
    const Tensor actual = result_of(network, settings, x);
    // Where the processor has products of pairs, the other operands are rounded, too.
    CHECK(difference(actual, expected) < (settings.target == "host" ? 0x1p-7 : 1e-6));
  }
}

TEST_CASE("a weight that float16 does not hold stays in float32", "[passes]") {
  std::vector<Tensor> weights = large_weights(kFloat32);
  weights[1].set_double(17, 1e5);
  const IRModule network = with_constants(parsed(kLarge), weights);
  CompileSettings settings;
  settings.precision = Precision::kFloat16;
  const Tensor x = uneven({2, 16, 7, 7}, 5), result = result_of(network, settings, x);
  for (int64_t i = 0; i < result.size(); ++i) CHECK(std::isfinite(result.as_double(i)));
}

TEST_CASE("a module without products, or on a target without them, compiles at any precision", "[passes]") {
  constexpr const char* kText = R"(
@R.function
def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
    return R.nn.softmax(x)
)";
  for (const PrecisionName& row : precisions()) {
    CAPTURE(row.name);
    CHECK(find_precision(row.name) == row.value);
    for (const char* target : {"x86-64", "cpu=znver5", "cpu=sapphirerapids"}) {
      CompileSettings settings;
      settings.target = target;
      settings.precision = row.value;
      settings.passes = "simplify";
      CHECK_NOTHROW(run_pipeline(parsed(kText), settings));
      CHECK_NOTHROW(run_pipeline(with_constants(parsed(kLarge), large_weights(kFloat32)), settings));
    }
  }
}

TEST_CASE("models of 16 bits round each sum once, and keep infinities, NaN and subnormals", "[passes]") {
  const std::string dtype = GENERATE(as<std::string>(), "float16", "bfloat16");
  const DType narrow = dtype == "float16" ? DType::float_(16) : DType::bfloat16();
  std::string text = R"(
@R.function
def main(x: R.Tensor((6, 96), "T"), w: R.Tensor((96, 160), "T"), v: R.Tensor((160, 160), "T")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.add(R.matmul(a, v), a)
        c = R.matmul(b, R.permute_dims(a, axes=[1, 0]))
        R.output(a, c)
    return (a, c)
)";
  for (size_t at; (at = text.find("\"T\"")) != std::string::npos;) text.replace(at, 3, "\"" + dtype + "\"");
  auto in_dtype = [&](const Tensor& tensor) {
    Tensor result = Tensor::empty(tensor.shape(), narrow);
    for (int64_t i = 0; i < tensor.size(); ++i) result.set_double(i, tensor.as_double(i));
    return result;
  };
  const IRModule module =
      with_constants(parsed(text.c_str()), {in_dtype(uneven({96, 160}, 2)), in_dtype(uneven({160, 160}, 3))});
  Tensor x = in_dtype(uneven({6, 96}, 4));
  for (int64_t k = 0; k < 96; ++k) {
    x.set_double(96 + k, k == 5 ? NAN : 1.0);
    x.set_double(2 * 96 + k, k == 5 ? INFINITY : 0.0);
    x.set_double(3 * 96 + k, x.as_double(k) * 0x1p-15);  // subnormal in float16
    x.set_double(4 * 96 + k, k == 5 ? largest_of(narrow) : 0.0);
    x.set_double(5 * 96 + k, 0);
  }
  auto run = [&](const std::string& target, const std::string& passes, bool interprets) {
    CompileSettings settings;
    settings.target = target;
    settings.passes = passes;
    if (interprets) settings.interpret = InterpretOptions{};
    return Session(compile(module, settings).load()).run({x}).at(0);
  };
  const Tensor expected = run("x86-64-v3", "legalize", true);
  for (const Tensor& actual : {run("host", "default", false), run("x86-64-v3", "simplify,kernels", true)}) {
    for (int64_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      const double value = actual.as_double(i), right = expected.as_double(i);
      if (!std::isfinite(right)) {
        CHECK((std::isnan(right) ? std::isnan(value) : value == right));
      } else {  // the order of the sum decides between two neighbours
        const double step = std::max(std::abs(right) * (dtype == "float16" ? 0x1p-10 : 0x1p-7), 0x1p-24);
        CHECK(std::abs(value - right) <= step);
      }
    }
  }
  CHECK(expected.as_double(3 * 160) != 0);
}

}  // namespace relaxc::test
