// Runs verified bytecode.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "vm/builtins.h"
#include "vm/executable.h"
#include "vm/memory.h"
#include "vm/profiler.h"
#include "vm/thread_pool.h"

namespace relaxc::vm {

// An executable with its names resolved; what a Program shares. Verified.
struct Image {
  Executable executable;
  std::vector<relaxc_kernel> kernels;      // per KernelInfo
  std::vector<BuiltinFunction> builtins;   // per builtin name
  std::shared_ptr<const void> keep_alive;  // of the machine code
};

struct InterpreterOptions {
  std::shared_ptr<TaskPool> pool;
  int64_t memory_limit = 0;
  int64_t step_limit = 0;
};

// The state of one caller. Frames live on two stacks that are kept between runs.
class Interpreter {
 public:
  Interpreter(std::shared_ptr<const Image> image, InterpreterOptions options);

  // `bound_outputs` (may be empty): memory for the flat results, used by new_tensor where dtype and shape fit.
  Value run(FunctionIndex function, std::span<const Value> inputs, std::span<const Tensor* const> bound_outputs);

  MemoryPool& memory() { return memory_; }
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }

 private:
  struct Frame;
  Value execute(FunctionIndex function, std::span<const Value> arguments);
  Value loop(const Frame& frame);
  void match_shape(const Frame& frame, const Word* operands);
  void check_tensor(const Frame& frame, const Word* operands) const;
  void call_kernel(const Frame& frame, const Word* operands);
  Value call_builtin(const Frame& frame, const Word* operands);
  Tensor alloc_tensor(const Frame& frame, const Word* operands);
  Tensor new_tensor(const Frame& frame, const Word* operands);
  void count_step();

  std::shared_ptr<const Image> image_;
  MemoryPool memory_;
  KernelRuntime kernels_;
  int64_t step_limit_;
  Profiler* profiler_ = nullptr;

  // Valid during a run.
  std::vector<std::unique_ptr<Frame>> idle_frames_;
  std::span<const Tensor* const> bound_outputs_;
  int depth_ = 0;
  int64_t steps_ = 0;
  std::vector<void*> kernel_data_;
  std::vector<int64_t> kernel_scalars_;
  std::vector<const Tensor*> kernel_tensors_;
};

}  // namespace relaxc::vm
