// <relaxc/runtime.h>: the front door for running a compiled model.
//
//   relaxc::Program program = relaxc::Program::load("model.so");
//   relaxc::Session session(program, {.threads = 4});
//   std::vector<relaxc::Tensor> outputs = session.run({input});
//
// A Program is immutable and shared by threads; each thread (caller) has one Session. Dims may change from run to
// run. Errors: CompileError when loading, RuntimeError when running: a UsageError among them where the call is wrong.
#pragma once
#if __cplusplus < 202002L
#error "C++20 is needed: compile with -std=c++20"
#endif
#include "vm/builtins.h"
#include "vm/caches.h"
#include "vm/error.h"
#include "vm/executable.h"
#include "vm/file_memory.h"
#include "vm/profiler.h"
#include "vm/thread_pool.h"

namespace relaxc {

namespace vm {
struct Image;
class UserLibrary;
class Interpreter;
}  // namespace vm

struct LoadOptions {
  vm::Registry registry = {};  // the host's functions and kernels
  vm::MappedFiles files = {};  // hold the constants of Program::from; a run fails when one has changed
  bool verify_hash = true;     // false: trust the file; true: loading checks code, the first run weights
  // Libraries of kernels, beside those that an artifact names; a run fails when one has changed.
  std::vector<std::shared_ptr<const vm::UserLibrary>> libraries = {};
  std::string name = {};  // of the artifact in messages; empty: its path, or that it is in the caller's memory
  std::shared_ptr<vm::RunWatcher> watcher = {};  // is notified of every run of the program's sessions
};

class Program {
 public:
  // Loads an artifact of `relaxc compile`. Weights are mapped, not copied or read. Throws CompileError when the file is
  // not an artifact, is damaged, or names kernels or functions that neither it nor the registry has. Load artifacts of
  // trusted origin only: they contain machine code.
  static Program load(const std::string& path, LoadOptions options = {});
  // Does the same with an artifact in memory: downloaded, or linked into the program. The bytes are copied once. Also
  // throws RuntimeError when memory is short.
  static Program load_memory(std::span<const std::byte> artifact, LoadOptions options = {});

  // Returns the kernel of a symbol (KernelSource::kArtifact), or nullptr.
  using KernelResolver = std::function<vm::Kernel(const std::string& symbol)>;
  // Makes a program for the JIT: `keep_alive` owns the machine code. Verifies the bytecode.
  static Program from(vm::Executable executable, const KernelResolver& resolver,
                      std::shared_ptr<const void> keep_alive = nullptr, LoadOptions options = {});

  const vm::Executable& executable() const;
  // Returns the bytes of the artifact that was loaded; none of a program that was made in this process.
  std::span<const std::byte> artifact() const;
  // Does now what the first run does: throws a RuntimeError where the weights of the artifact have changed.
  void check_weights() const;
  std::vector<std::string> functions() const;
  // Here and in Session, no name stands for "main", or for the only public function where there is no "main". These
  // throw a UsageError that lists the functions when the name is unknown or there are several.
  const vm::Function& function(std::string_view name = {}) const;
  const std::vector<vm::ValueInfo>& inputs(std::string_view function = {}) const;
  const std::vector<vm::ValueInfo>& outputs(std::string_view function = {}) const;
  // Returns the inputs that a run extends in place: it writes to their memory, which becomes that of outputs.
  const std::vector<vm::CacheInfo>& caches(std::string_view function = {}) const;

 private:
  friend class Session;
  explicit Program(std::shared_ptr<const vm::Image> image) : image_(std::move(image)) {}
  std::shared_ptr<const vm::Image> image_;
};

// Lets the error of Program::load for a file that is not an artifact name its kind: "it is an ONNX model; ...".
// Programs that do not call this stay smaller by the table of kinds.
void name_kinds_of_files();

struct SessionOptions {
  int threads = 0;                          // to 1024; 0: all cores of the process; unused with a host's pool
  std::shared_ptr<vm::TaskPool> pool = {};  // null: a new ThreadPool
  int64_t memory_limit = 0;                 // bytes of tensors and scratch at once; 0: twice the machine's memory
  vm::Allocator allocator = {};             // of tensors and scratch; the C library's without functions
  int64_t step_limit = 0;                   // backward jumps and calls per run, against endless loops; 0: none
};

// The state of one caller. Two threads must not use it at once.
class Session {
 public:
  explicit Session(Program program, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Runs a function. A tuple result is returned as its tensors in order, with nested tuples flattened. Checks the
  // count, dtype and rank of the inputs here, the dims in the bytecode. Where dims fail, and the function has another
  // for other sizes (kOtherwiseKey in vm/executable.h), that one runs. Results keep their memory alive and stay valid.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::string_view function = {});
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs, std::string_view function = {}) {
    return run(std::span(inputs.begin(), inputs.size()), function);
  }
  // Writes the results to the host's tensors: kernels write there directly when dtype and shape fit and no input
  // overlaps, else the result is copied. Throws RuntimeError when dtype or shape of a result differ from its tensor.
  void run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::string_view function = {});
  // Runs functions on values other than tensors (vm/value.h), which run() refuses. A sequence is
  // vm::Sequence{vm::Tuple({a, b})}, an optional its value or vm::Value() for none, a map vm::Map::of(keys, values).
  vm::Value run_values(std::span<const vm::Value> inputs, std::string_view function = {});

  // Ends the run that is in progress, with Cancelled, after the kernel that it is in. Any thread may call it; a later
  // run is not concerned.
  void cancel();
  // The session does not own the profiler; null turns profiling off.
  void set_profiler(vm::Profiler* profiler);
  // Return tensors in the session's memory, which its allocator gives and memory_limit counts: an uninitialised one,
  // and a copy.
  Tensor new_tensor(std::vector<int64_t> shape, DType dtype);
  Tensor copy_of(const Tensor& tensor);
  vm::MemoryPool::Stats memory_stats() const;
  // Returns idle memory to the system.
  void trim();
  const Program& program() const { return program_; }

 private:
  struct Lists;  // of one run, kept for their memory
  std::span<const Tensor> run_tensors(std::span<const Tensor> inputs, std::string_view function);

  Program program_;
  std::unique_ptr<vm::Interpreter> interpreter_;
  std::unique_ptr<Lists> lists_;
};

}  // namespace relaxc
