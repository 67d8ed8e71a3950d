// Random numbers: their distributions, what a seed fixes, and that the number of threads does not matter.
#include <cmath>

#include "tests/frontend/onnx_model.h"
#include "tests/frontend/onnx_text.h"

#include "tests/catch.h"

namespace relaxc::test {

namespace {

onnx::NodeProto& set_float(onnx::NodeProto& node, const std::string& name, float value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
  return node;
}
constexpr int64_t kCount = 40000;
Tensor numbers_of(const std::string& op, std::optional<float> seed, int threads = 1, DType dtype = kFloat32) {
  OnnxModel model(22);
  model.input("x", dtype, "n");
  onnx::NodeProto& node = model.node(op, "x", "y");
  if (seed) set_float(node, "seed", *seed);
  model.output("y", dtype);
  return Session(model.compile().program(), {.threads = threads}).run({numbers({kCount}, dtype)})[0];
}
struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, neighbours = 0;
};
Moments moments_of(const Tensor& x) {
  Moments m;
  auto n = static_cast<double>(x.size());
  for (int64_t i = 0; i < x.size(); ++i) m.mean += x.as_double(i) / n;
  for (int64_t i = 0; i < x.size(); ++i) {
    double d = x.as_double(i) - m.mean;
    m.variance += d * d / n;
    m.kurtosis += d * d * d * d / n;
    if (i > 0) m.neighbours += d * (x.as_double(i - 1) - m.mean) / n;
  }
  m.kurtosis /= m.variance * m.variance;
  m.neighbours /= m.variance;
  return m;
}

}  // namespace

TEST_CASE("random numbers have their distribution", "[frontend]") {
  for (DType dtype : {kFloat32, kFloat64, DType::float_(16)}) {
    INFO(to_string(dtype));
    Tensor drawn = numbers_of("RandomUniformLike", 3, 1, dtype);
    for (int64_t i = 0; i < drawn.size(); ++i) REQUIRE((drawn.as_double(i) >= 0 && drawn.as_double(i) < 1));
    Moments uniform = moments_of(drawn);
    CHECK(std::abs(uniform.mean - 0.5) < 0.01);
    CHECK(std::abs(uniform.variance - 1.0 / 12) < 0.003);
    CHECK(std::abs(uniform.kurtosis - 1.8) < 0.05);
    CHECK(std::abs(uniform.neighbours) < 0.025);
    Moments normal = moments_of(numbers_of("RandomNormalLike", 3, 1, dtype));
    CHECK(std::abs(normal.mean) < 0.025);
    CHECK(std::abs(normal.variance - 1) < 0.04);
    CHECK(std::abs(normal.kurtosis - 3) < 0.2);
    CHECK(std::abs(normal.neighbours) < 0.025);
  }
}

TEST_CASE("a seed fixes the numbers, for any number of threads", "[frontend]") {
  for (const char* op : {"RandomUniformLike", "RandomNormalLike"}) {
    INFO(op);
    Tensor first = numbers_of(op, 3);
    CHECK(same_tensor(first, numbers_of(op, 3)));
    CHECK(same_tensor(first, numbers_of(op, 3, 2)));
    CHECK(!same_tensor(first, numbers_of(op, 4)));
    CHECK(!same_tensor(numbers_of(op, {}), numbers_of(op, {})));
  }
  // Two nodes without a seed, and two runs of one session.
  OnnxModel model(22);
  model.input("x", kFloat32, "n");
  model.node("RandomUniformLike", "x", "a");
  model.node("RandomUniformLike", "x", "b");
  model.output("a").output("b");
  Session session = model.compile();
  std::vector<Tensor> one = session.run({numbers({9})}), other = session.run({numbers({9})});
  CHECK(!same_tensor(one[0], one[1]));
  CHECK(!same_tensor(one[0], other[0]));
}

TEST_CASE("each iteration of a loop draws other numbers without a seed", "[frontend]") {
  IRModule module = import_onnx_text(R"(<ir_version: 8, opset_import: ["": 17]>
random_rows (int64 count) => (float[m, 8] rows)
{
  yes = Constant <value = bool {1}> ()
  rows = Loop (count, yes) <
    body = draw (int64 i, bool go) => (bool next, float[8] row) {
      next = Identity (go)
      row = RandomNormal <shape = [8]> ()
    }
  >
})",
                                     "random_rows");
  Session session(relaxc::compile(module, {}).load(), {.threads = 1});
  Tensor rows = session.run({Tensor::of<int64_t>({}, kInt64, {3})})[0];
  REQUIRE(describe(rows) == "float32[3, 8]");
  for (int64_t i = 0; i < 8; ++i) {
    CHECK(rows.as_double(i) != rows.as_double(8 + i));
    CHECK(rows.as_double(8 + i) != rows.as_double(16 + i));
  }
}

TEST_CASE("draws of Multinomial follow the probabilities", "[frontend]") {
  OnnxModel model(22);
  model.input("x", kFloat32, "n,3");
  set_float(set_int(set_int(model.node("Multinomial", "x", "y"), "sample_size", kCount), "dtype", 7), "seed", 5);
  model.output("y", kInt64);
  // Logarithms of probabilities, up to a constant.
  auto log = [](double p) { return static_cast<float>(std::log(p) + 2); };
  Tensor x = Tensor::of<float>({2, 3}, kFloat32, {log(0.5), log(0.25), log(0.25), log(0.9), log(0.1), -INFINITY});
  Tensor y = model.compile().run({x})[0];
  REQUIRE(describe(y) == "int64[2, 40000]");
  const double expected[] = {0.5, 0.25, 0.25, 0.9, 0.1, 0};
  for (int64_t row = 0; row < 2; ++row) {
    double counts[3] = {};
    for (int64_t i = 0; i < kCount; ++i) counts[y.as_int(row * kCount + i)] += 1.0 / kCount;
    for (int64_t k = 0; k < 3; ++k) CHECK(std::abs(counts[k] - expected[row * 3 + k]) < 0.0125);
  }
}

TEST_CASE("dropout drops where the model's run says that it trains", "[frontend]") {
  OnnxModel model(22);
  model.input("x", kFloat32, "n").input("ratio", kFloat32, "").input("training", kBool, "");
  set_int(model.node("Dropout", "x ratio training", "y mask"), "seed", 1);
  model.output("y").output("mask", kBool);
  Session session = model.compile();
  Tensor x = Tensor::of<float>({kCount}, kFloat32, std::vector<float>(kCount, 3));
  auto scalar = [](auto value, DType dtype) { return Tensor::of<decltype(value)>({}, dtype, {value}); };
  std::vector<Tensor> trained = session.run({x, scalar(0.25f, kFloat32), scalar(uint8_t{1}, kBool)});
  double dropped = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    bool is_kept = trained[1].as_int(i) != 0;
    REQUIRE(trained[0].as_double(i) == (is_kept ? 4 : 0));
    dropped += is_kept ? 0 : 1.0 / kCount;
  }
  CHECK(std::abs(dropped - 0.25) < 0.0125);
  std::vector<Tensor> used = session.run({x, scalar(0.25f, kFloat32), scalar(uint8_t{0}, kBool)});
  CHECK(same_tensor(used[0], x));
  for (int64_t i = 0; i < kCount; ++i) REQUIRE(used[1].as_int(i) == 1);
}

}  // namespace relaxc::test
