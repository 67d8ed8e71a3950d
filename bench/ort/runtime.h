// The part of ONNX Runtime's C interface that times a model, from the library that npm's onnxruntime-node holds.
//
// Node's own binding copies each output to fresh memory after a run, which takes longer than many an operator.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/executable.h"
#include "vm/value.h"

namespace relaxc::bench {

// An object of the library.
using OrtHandle = void*;

// The level of ONNX Runtime's graph optimizations. Some of them compute other numbers, such as products with
// activations that are rounded to 8 bits.
enum class OrtOptimizations : int { kNone = 0, kAll = 99 };

class OrtSession {
 public:
  // Loads a model with that many threads, which run its nodes one after the other. Throws a RuntimeError when the
  // library or the model cannot be loaded.
  OrtSession(const std::string& library, const std::string& model, int threads,
             OrtOptimizations optimizations = OrtOptimizations::kAll);

  const std::string& version() const { return version_; }
  // Tensors only; their symbolic dims are names.
  const std::vector<vm::ValueInfo>& inputs() const { return inputs_; }

  // Sets the inputs of all runs, which stay in the caller's memory, and runs twice. Results of the same sizes in both
  // runs keep their memory from then on.
  void set_inputs(std::vector<Tensor> inputs);
  bool has_bound_outputs() const { return has_bound_outputs_; }
  // Runs once more and returns the results. Throws a RuntimeError where one is not a tensor.
  std::vector<Tensor> results() const;
  // Returns the milliseconds of a run.
  double run();

 private:
  template <class... Args>
  void call(size_t entry, Args... args) const;
  OrtHandle wrap(const Tensor& tensor) const;
  Tensor copy_of(OrtHandle value, const char* name) const;
  std::vector<int64_t> shape_of(OrtHandle value) const;
  std::optional<DType> dtype_of(OrtHandle tensor_info) const;
  vm::ValueInfo input_info(size_t index, const char* name) const;
  const char* name_of(size_t entry, size_t index) const;
  void run_into(std::vector<OrtHandle>& outputs) const;
  void release(std::vector<OrtHandle>& values) const;

  void* const* functions_ = nullptr;
  OrtHandle session_ = nullptr;
  std::string version_;
  std::vector<vm::ValueInfo> inputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<Tensor> tensors_;  // hold the memory of the input values
  std::vector<OrtHandle> input_values_, output_values_;
  bool has_bound_outputs_ = false;
};

}  // namespace relaxc::bench
