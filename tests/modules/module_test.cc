// Modules written as text, compiled once and run through the API at many sizes.
#include <algorithm>
#include <cmath>
#include <random>

#include "codegen/compile.h"
#include "vm/error.h"

#include "tests/catch.h"

using namespace relaxc;

namespace {

Tensor random_tensor(std::vector<int64_t> shape, std::mt19937_64& random) {
  Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
  std::uniform_real_distribution<float> real(-1, 1);
  std::generate_n(tensor.data<float>(), tensor.size(), [&] { return real(random); });
  return tensor;
}

// relu(x @ w.T), and the sum of the magnitudes, by which rounding is judged.
std::pair<double, double> expected_element(const Tensor& x, const Tensor& w, int64_t row, int64_t column) {
  double sum = 0, magnitude = 0;
  for (int64_t n = x.shape()[1], i = 0; i < n; ++i) {
    double term = static_cast<double>(x.data<float>()[row * n + i]) * w.data<float>()[column * n + i];
    sum += term;
    magnitude += std::abs(term);
  }
  return {std::max(sum, 0.0), magnitude};
}

std::string error_of(Session& session, std::initializer_list<Tensor> inputs) {
  try {
    session.run(inputs);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("matmul and relu as text run for any m, n, k from one compile", "[modules]") {
  Program program = compile_file(RELAXC_SOURCE_DIR "/tests/modules/matmul_relu.py").load();
  REQUIRE(program.inputs().size() == 2);
  CHECK(to_string(program.inputs()[0]) == "x: float32[m, n]");
  CHECK(to_string(program.inputs()[1]) == "w: float32[k, n]");
  Session session(program, {.threads = 2});
  std::mt19937_64 random(7);

  const std::vector<std::vector<int64_t>> sizes = {{1, 1, 1},   {3, 5, 7},   {64, 64, 64}, {17, 33, 129},
                                                   {1, 200, 3}, {100, 1, 9}, {0, 4, 2},    {2, 0, 3}};
  for (const std::vector<int64_t>& size : sizes) {
    int64_t m = size[0], n = size[1], k = size[2];
    INFO("m " << m << ", n " << n << ", k " << k);
    Tensor x = random_tensor({m, n}, random), w = random_tensor({k, n}, random);
    std::vector<Tensor> results = session.run({x, w});
    REQUIRE(results.size() == 1);
    REQUIRE(results[0].shape() == std::vector<int64_t>{m, k});
    int64_t wrong = 0;
    for (int64_t i = 0; i < m * k; ++i) {
      auto [value, magnitude] = expected_element(x, w, i / k, i % k);
      if (!(std::abs(results[0].data<float>()[i] - value) <= 1e-6 * magnitude + 1e-7)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("an input that does not fit is named with its dim and both values", "[modules]") {
  Session session(compile_file(RELAXC_SOURCE_DIR "/tests/modules/matmul_relu.py").load(), {.threads = 1});
  std::mt19937_64 random(7);
  Tensor x = random_tensor({3, 5}, random);

  std::string dim = error_of(session, {x, random_tensor({7, 6}, random)});
  INFO(dim);
  for (const char* part : {"'w'", "dim 1", "n", "6", "5"}) CHECK(dim.find(part) != std::string::npos);

  std::string rank = error_of(session, {x, random_tensor({7, 5, 1}, random)});
  INFO(rank);
  for (const char* part : {"'w'", "3", "2"}) CHECK(rank.find(part) != std::string::npos);

  std::string dtype = error_of(session, {x, Tensor::of({1, 5}, kFloat64, std::vector<double>(5, 1.0))});
  INFO(dtype);
  for (const char* part : {"'w'", "float64", "float32"}) CHECK(dtype.find(part) != std::string::npos);

  std::string count = error_of(session, {x});
  INFO(count);
  for (const char* part : {"1", "2"}) CHECK(count.find(part) != std::string::npos);

  // The session is as good as before.
  CHECK(session.run({x, x})[0].shape() == std::vector<int64_t>{3, 3});
}
