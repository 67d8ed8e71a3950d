// Runs a quantized network on the CPU and on the matrix unit, and compares. Usage: accelerator_demo PLUGIN MODEL
// SAMPLES
#include <relaxc/npy.h>
#include <relaxc/plugin.h>
#include <relaxc/relaxc.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "mxu.h"

using namespace relaxc;

namespace {

// Returns the multiply-adds of convolutions and products that the graph leaves to the CPU.
int64_t multiply_adds(const IRModule& module) {
  int64_t result = 0;
  walk(static_cast<const Expr&>(module.functions.at("main")), [&](const Ref<Call>& call) {
    const std::string& op = op_name(call);
    if (op != "relax.nn.conv2d" && op != "relax.matmul") return;
    int64_t count = 1;
    for (const Expr& dim : *known_shape(call.type())) count *= as_int(dim).value();
    const std::vector<Expr>& shape = *known_shape(call->args[1].type());  // [o, i, h, w] or [k, n]
    if (shape.size() == 2) count *= as_int(shape[0]).value();
    for (size_t d = 1; shape.size() == 4 && d < 4; ++d) count *= as_int(shape[d]).value();
    result += count;
  });
  return result;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double result = 0;
  for (int64_t i = 0; i < a.size(); ++i) result = std::max(result, std::abs(a.as_double(i) - b.as_double(i)));
  return result;
}

int run(const std::string& plugin, const std::string& model, const std::string& samples) {
  CompileSettings cpu, accelerated;
  accelerated.tables = load_plugins({plugin});
  Tensor images = read_npy(samples);
  cpu.dims = {{"batch", images.shape()[0]}};
  IRModule module = read_module(model, cpu);
  CompileSettings graph = accelerated;
  graph.passes = "simplify";
  int64_t all = multiply_adds(module), left = multiply_adds(run_pipeline(module, graph));

  cpu.dims = {};  // compiled for any batch
  Tensor expected = Session(compile_file(model, cpu).load()).run({images})[0];
  Program program = compile_file(model, accelerated).load();
  mxu_reset_counters();
  Tensor result = Session(program).run({images})[0];
  mxu_counters counters = mxu_read_counters();

  bool is_same = std::memcmp(result.raw(), expected.raw(), static_cast<size_t>(expected.bytes())) == 0;
  // In a network of floats that were integers the CPU rounds sums, and a value between two integers may become the
  // other.
  const double difference = largest_difference(result, expected);
  const bool is_right = difference < 0.01;
  std::printf("multiply-adds of the network  %10lld\n", static_cast<long long>(all));
  std::printf("on the matrix unit            %10lld  %.1f %%\n", static_cast<long long>(all - left),
              100 * static_cast<double>(all - left) / static_cast<double>(all));
  std::printf("counted by it, with padding   %10lld  in %lld tiles\n", static_cast<long long>(counters.multiply_adds),
              static_cast<long long>(counters.multiplications));
  std::printf("bytes in and out              %10lld  %lld\n", static_cast<long long>(counters.bytes_in),
              static_cast<long long>(counters.bytes_out));
  if (is_same) std::printf("the results are the same bits as the CPU's\n");
  if (!is_same) std::printf("the results are %s: they differ by %.6f\n", is_right ? "right" : "wrong", difference);
  return is_right && counters.multiply_adds >= all - left && left * 10 <= all ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: accelerator_demo PLUGIN MODEL SAMPLES\n"), 2;
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
