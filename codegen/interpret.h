// Kernels that the tensor-program interpreter runs instead of machine code, in any form between legalize and
// lower_kernels. What the interpreter calls an error ends the run: an index out of range, an axis outside of its
// domain, a read of an element that nobody has written, in this kernel (unless it is scheduled: check_unwritten in
// tir/interpret/interpreter.h) or in the one that made the tensor.
#pragma once
#include <map>
#include <mutex>
#include <thread>

#include "codegen/backend.h"
#include "tir/interpret/interpreter.h"
#include "vm/program.h"

namespace relaxc::codegen {

class InterpretedKernels final : public vm::RunWatcher {
 public:
  // The module as lower_to_bytecode() takes it, but with tensor programs of any form. What the interpreter does not
  // know in one of them is a CompileError (kUnsupported).
  InterpretedKernels(const IRModule& module, const InterpretOptions& options);
  ~InterpretedKernels() override;

  // By symbol; empty when there is none. Valid as long as this object. Safe to call from several threads.
  vm::Kernel find(const std::string& symbol);

  void begins() override;
  // Results with elements that no kernel wrote are a RuntimeError.
  void ends(const vm::Value& result) override;

 private:
  struct Program;
  // Memory that a kernel left unwritten in places.
  struct Unwritten {
    WrittenBytes written;
    std::string buffer;  // of which kernel, for messages
  };
  // Of one run, by address.
  using Memory = std::map<const char*, Unwritten>;

  void call(Program& program, const relaxc_kernel_args& args);
  void check_result(const Memory& memory, const vm::Value& result, const std::string& name) const;
  static void forget(Memory& memory, const char* begin, int64_t bytes);

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Program>> programs_;  // by symbol
  std::map<std::thread::id, Memory> memory_;                  // of the runs under way, each on a thread of its own
};

}  // namespace relaxc::codegen
