// relaxc inside another program: compiles a model, looks at its inputs, runs it on the host's own memory with changing
// shapes, and writes an artifact for programs that have the runtime only (serve.cc). Usage: embed MODEL ARTIFACT
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <numeric>

#include <relaxc/dlpack.h>
#include <relaxc/relaxc.hpp>

// The host's memory as a DLPack tensor: nothing is copied, and the host keeps what it owns.
relaxc::Tensor borrow(std::vector<float>& values, std::vector<int64_t>& shape) {
  auto* managed = new DLManagedTensor{};
  managed->dl_tensor = {values.data(), {kDLCPU, 0}, int(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  managed->deleter = [](DLManagedTensor* self) { delete self; };
  return relaxc::Tensor::from_dlpack(managed);
}

int main(int argc, char** argv) try {
  if (argc != 3) return fmt::print(stderr, "usage: embed MODEL ARTIFACT\n"), 2;
  relaxc::CompiledModule compiled = relaxc::compile_file(argv[1]);
  compiled.write(argv[2]);

  relaxc::Session session(compiled.load());
  for (const auto& input : session.program().inputs()) fmt::print("input  {}\n", to_string(input));
  for (const auto& output : session.program().outputs()) fmt::print("output {}\n", to_string(output));

  for (int64_t batch : {1, 3, 16}) {
    std::vector<int64_t> shape;  // symbolic dims take the value of this run
    for (const auto& dim : *session.program().inputs()[0].dims) shape.push_back(dim.value < 0 ? batch : dim.value);
    std::vector<float> values(std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>()), 0.5f);
    relaxc::Tensor input = borrow(values, shape), output = session.run({input})[0];
    fmt::print("{} at {} the host's memory -> {}\n", describe(input), input.raw() == values.data() ? "exactly" : "not",
               describe(output));
  }
} catch (const relaxc::CompileError& error) {
  return fmt::print(stderr, "the model cannot be compiled:\n{}\n", error.what()), 1;
} catch (const relaxc::RuntimeError& error) {
  return fmt::print(stderr, "the run failed: {}\n", error.what()), 1;
} catch (const std::exception& error) {
  return fmt::print(stderr, "{}\n", error.what()), 1;
}
