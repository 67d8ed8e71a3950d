// Runs verified bytecode.
#pragma once
#include <atomic>
#include <ctime>

#include "vm/caches.h"
#include "vm/memory.h"
#include "vm/program.h"

namespace relaxc::vm {

enum class Opcode : uint8_t;  // bytecode.h
class WeightsCheck;           // artifact.h

// An executable with its names resolved, which a Program shares. It is verified.
struct Image {
  Executable executable;
  std::vector<std::shared_ptr<const UserLibrary>> libraries;  // of kernels and other functions
  std::vector<Kernel> kernels;                                // per KernelInfo
  std::vector<TensorKernel> on_tensors;                       // per KernelInfo; one of the two is set
  std::vector<BuiltinFunction> builtins;                      // per builtin name
  std::vector<std::vector<CacheInfo>> caches;                 // per function
  std::vector<const Function*> otherwise;            // per function, the one for inputs of other sizes; may be null
  std::shared_ptr<const void> keep_alive;            // owns the machine code
  MappedFiles files;                                 // they hold constants and machine code
  std::shared_ptr<const WeightsCheck> weights = {};  // before the first run; may be null
  std::shared_ptr<const MappedFile> artifact = {};   // from which it was loaded; may be null
  std::shared_ptr<RunWatcher> watcher;               // may be null
};

// The state of one caller. Frames, argument arrays and freed tensor memory are kept between runs.
class Interpreter {
 public:
  // The options have a pool.
  Interpreter(std::shared_ptr<const Image> image, SessionOptions options);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Begins a run of the host, of one function or of two in turn: a cancel() from here on ends it. Throws RuntimeError
  // inside of a run.
  void begin();
  // There are as many inputs as the function has. `bound_outputs` (may be empty) is memory for the flat results, which
  // new_tensor uses where dtype and shape fit; null entries are allocated. Throws RuntimeError; the interpreter can be
  // used again afterwards.
  Value run(const Function& function, std::span<const Value> inputs, std::span<const Tensor* const> bound_outputs);

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  MemoryPool& memory() { return memory_; }
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }

 private:
  struct Frame;  // frame.h
  template <Opcode kOp>
  class In;             // operands of an instruction; frame.h
  struct Instructions;  // instructions.cc
  using SharedShape = std::shared_ptr<const Shape>;
  // Instructions that make a tensor have at least this many words, so word offset / kWordsPerShape is unique for each.
  static constexpr size_t kWordsPerShape = 4;

  std::unique_ptr<Frame> enter(const Function& function);
  Value execute(std::unique_ptr<Frame> frame);
  // `pc` is the instruction that runs, also after an exception; it is null after the return.
  void run_code(Frame& frame, const Word*& pc);
  void count_step();
  void check_files();  // throws RuntimeError when a file in use has changed
  void check_cancelled() const {
    if (cancelled_.load(std::memory_order_relaxed)) [[unlikely]]
      throw Cancelled("the run was cancelled");
  }

  std::shared_ptr<const Image> image_;
  MemoryPool memory_;
  KernelRuntime kernels_;
  int64_t step_limit_;
  std::atomic<bool> cancelled_{false};
  Profiler* profiler_ = nullptr;
  std::vector<std::shared_ptr<Shape>> shapes_;  // that of the last tensor, per instruction that makes one
  std::vector<std::unique_ptr<Frame>> idle_frames_;

  // Memory for the flat results of the function at bound_depth_: of the run, or of a loop's iteration.
  std::span<const Tensor* const> bound_outputs_;
  int bound_depth_ = 1;
  int depth_ = 0;
  int64_t steps_ = 0;
  timespec files_checked_at_{.tv_sec = -1, .tv_nsec = 0};
  std::vector<int64_t> index_dims_;  // the dims of check_indices, a member to reuse its memory
  // The following members are valid during a kernel call.
  std::vector<void*> kernel_data_;
  std::vector<int64_t> kernel_scalars_;
  std::vector<const Tensor*> kernel_tensors_;
};

}  // namespace relaxc::vm
