// Hand-assembled programs that several tests run.
#pragma once
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "vm/builder.h"
#include "vm/error.h"
#include "vm/program.h"

namespace relaxc::vm::test {

// A folder that goes away with the test.
struct TemporaryFolder {
  std::string path = "/tmp/relaxc_test_XXXXXX";
  TemporaryFolder() { RELAXC_CHECK(mkdtemp(path.data()) != nullptr); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
};

// out[i] = a[i] + b[i]; scalars: n.
inline int32_t add_kernel(const relaxc_kernel_args* args) {
  struct Closure {
    const float* a;
    const float* b;
    float* out;
  } closure{static_cast<const float*>(args->data[0]), static_cast<const float*>(args->data[1]),
            static_cast<float*>(args->data[2])};
  auto body = [](void* opaque, int64_t begin, int64_t end) -> int32_t {
    auto* c = static_cast<Closure*>(opaque);
    for (int64_t i = begin; i < end; ++i) c->out[i] = c->a[i] + c->b[i];
    return 0;
  };
  return args->context->parallel_for(args->context, args->scalars[0], body, &closure);
}

inline ValueInfo tensor_info(std::string name, std::vector<DimInfo> dims, DType dtype = kFloat32) {
  return {std::move(name), ValueKind::kTensor, dtype, std::move(dims)};
}

// main(x: float32[n, 4], w: float32[n, 4]) = (x + w) + w, the first sum in planned storage; weights() = a constant.
inline Executable add_program(KernelSource source = KernelSource::kArtifact) {
  ExecutableBuilder builder;
  KernelIndex add =
      builder.kernel({source == KernelSource::kArtifact ? "relaxc_k_add" : "host.add", "fused_add", source, 3, 1});
  FunctionBuilder main(builder, "main");
  Reg x = main.add_input(tensor_info("x", {{-1, "n"}, {4, ""}}));
  Reg w = main.add_input(tensor_info("w", {{-1, "n"}, {4, ""}}));
  main.add_output(tensor_info("", {{-1, "n"}, {4, ""}}));
  Slot n = main.new_slot("n");
  Slot count = main.new_slot("4 * n");
  Slot bytes = main.new_slot();
  Reg storage = main.new_register(), sum = main.new_register(), out = main.new_register();
  main.emit(Opcode::kMatchShape, {x, std::vector{MatchDim::bind(n), MatchDim::check(4)}, builder.string("input 'x'")});
  main.emit(Opcode::kMatchShape, {w, std::vector{MatchDim::check(n), MatchDim::check(4)}, builder.string("input 'w'")});
  main.emit(Opcode::kSlotOp, {count, SlotOp::kMul, n, 4});
  main.emit(Opcode::kSlotOp, {bytes, SlotOp::kMul, count, 4});
  main.emit(Opcode::kAllocStorage, {storage, bytes});
  main.emit(Opcode::kAllocTensor, {sum, storage, 0, kFloat32, std::vector<Scalar>{n, 4}});
  main.emit(Opcode::kCallKernel,
            {add, std::vector{x, w, sum}, std::vector<Scalar>{count}, builder.string("node Add_1")});
  main.emit(Opcode::kNewTensor, {out, kFloat32, std::vector<Scalar>{n, 4}, 0});
  main.emit(Opcode::kCallKernel, {add, std::vector{sum, w, out}, std::vector<Scalar>{count}, -1});
  main.emit(Opcode::kRet, {out});
  main.finish();
  FunctionBuilder weights(builder, "weights");
  weights.add_output(tensor_info("", {{4, ""}}));
  Reg constant = weights.new_register();
  weights.emit(Opcode::kConstLoad, {constant, builder.constant(Tensor::of<float>({4}, kFloat32, {1, 2, 3, 4}))});
  weights.emit(Opcode::kRet, {constant});
  weights.finish();
  builder.constant(Tensor::of<int64_t>({2, 1}, kInt64, {7, 8}));
  builder.set_metadata("peak_bytes", "16 * n");
  return builder.finish();
}

inline Program make_add_program() {
  return Program::from(add_program(), [](const std::string&) { return add_kernel; });
}

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace relaxc::vm::test
