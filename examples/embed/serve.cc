// Runs an artifact with the runtime library alone: no compiler, no LLVM, no protobuf. Usage: serve ARTIFACT
#include <fmt/format.h>

#include <relaxc/runtime.h>

int main(int argc, char** argv) try {
  if (argc != 2) return fmt::print(stderr, "usage: serve ARTIFACT\n"), 2;
  relaxc::Session session(relaxc::Program::load(argv[1]));
  std::vector<int64_t> shape;
  for (const auto& dim : *session.program().inputs()[0].dims) shape.push_back(dim.value < 0 ? 2 : dim.value);
  relaxc::Tensor input = relaxc::Tensor::empty(shape, relaxc::kFloat32);
  std::fill_n(input.data<float>(), input.size(), 0.5f);
  for (const relaxc::Tensor& output : session.run({input})) fmt::print("{}\n", describe(output));
} catch (const relaxc::RuntimeError& error) {  // an input that does not fit, for instance
  return fmt::print(stderr, "the run failed: {}\n", error.what()), 1;
} catch (const std::exception& error) {
  return fmt::print(stderr, "{}\n", error.what()), 1;
}
