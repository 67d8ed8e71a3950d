// A problem of the kernel benchmark: one kernel at one shape, its data, and the libraries that compute it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench/kernels/peaks.h"
#include "vm/tensor.h"

namespace relaxc::bench {

// C[m, n] = A[m, k] * B[k, n] with constant B; or a convolution (NCHW, OIHW) with constant weights, bias and relu.
// Products of bytes are u8 * s8 with sums in int32. A convolution of bytes gives bytes again, as a quantized network
// does: the sum and a bias in int32, multiplied by a scale of the channel, rounded (passes/integer_regions.cc).
struct Problem {
  enum class Kind : uint8_t { kMatmul, kConvolution } kind = Kind::kMatmul;
  std::string kernel;           // name in the output: "matmul", "conv2d", "resnet50", ...
  Peak peak = Peak::kFloat32;   // kFloat32, kInt8 or kBFloat16: the numbers
  int64_t m = 0, n = 0, k = 0;  // matmul
  int64_t channels = 0, size = 0, filters = 0, window = 0, stride = 1,
          groups = 1;     // square images and windows, batch 1
  bool symbolic = false;  // m is not known when compiling

  int64_t padding() const { return window / 2; }
  int64_t out_size() const { return (size + 2 * padding() - window) / stride + 1; }
  bool is_requantized() const { return kind == Kind::kConvolution && peak == Peak::kInt8; }
  int64_t products() const;  // multiply-adds
  std::string shape() const;
  DType input_dtype() const, weight_dtype() const, output_dtype() const;
  std::vector<int64_t> input_shape() const, weight_shape() const, output_shape() const;
};

// Every problem of the benchmark.
std::vector<Problem> problems();

// How relaxc lays a convolution out: the channels of a block, and the zeros in each row of the window of a picture.
struct Blocking {
  int64_t block = 1, zeros = 0;
};
// A module whose main(x, w), main(x, w, b) or main(x, w, b, s) computes the problem. Images are as inside of a network
// that relaxc lays out (ops/convolution_layouts.cc): channels in blocks of that many, the last one padded; pictures are
// as they are, or have a fourth channel where their numbers are narrower than float32.
std::string module_text(const Problem& problem, const Blocking& blocking);

struct Data {
  Tensor input, weight;
  Tensor bias, scale;          // of the channels of convolutions; scale: of requantized ones, powers of two
  std::vector<double> sample;  // of the right answer, at element (i * kSampleStride) % size
};
inline constexpr int64_t kSampleStride = 7919, kSamples = 64;
Data make_data(const Problem& problem);
// The largest difference between the output and the sample, relative to the largest of the sample.
double difference(const Problem& problem, const Data& data, const Tensor& output);
// The largest difference of a right output: none of integers.
double allowed_difference(const Problem& problem);

// A library that computes a problem.
struct Runner {
  std::string name;
  Tensor output;
  std::function<void()> run;
  std::function<void()> finish = {};  // brings the result to `output` when run() leaves it elsewhere
};

// OpenBLAS and BLIS by dlopen (float32 matmul), oneDNN when the build found it. Absent ones give nothing.
std::vector<Runner> blas_runners(const Problem& problem, const Data& data, int threads);
std::vector<Runner> onednn_runners(const Problem& problem, const Data& data, int threads);
// One line on what was found, for the output.
std::string describe_blas();
std::string describe_onednn();

}  // namespace relaxc::bench
