// Runs an artifact with the runtime library alone: no compiler, no LLVM, no protobuf. Usage: serve ARTIFACT
#include <relaxc/runtime.h>

#include <algorithm>
#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: serve ARTIFACT\n"), 2;
  relaxc::Session session(relaxc::Program::load(argv[1]));
  std::vector<int64_t> shape;
  for (const auto& dim : *session.program().inputs()[0].dims) shape.push_back(dim.value < 0 ? 2 : dim.value);
  relaxc::Tensor input = relaxc::Tensor::empty(shape, relaxc::kFloat32);
  std::fill_n(input.data<float>(), input.size(), 0.5f);
  for (const relaxc::Tensor& output : session.run({input})) std::puts(describe(output).c_str());
} catch (const relaxc::RuntimeError& error) {  // an input that does not fit, for instance
  return std::fprintf(stderr, "the run failed: %s\n", error.what()), 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
