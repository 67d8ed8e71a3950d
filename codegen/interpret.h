// Runs kernels in the tensor-program interpreter instead of in machine code, in any form between legalize and
// lower_kernels. An error that the interpreter finds ends the run: an index out of range, an axis outside of its
// domain, or a read of an element that was never written. This kernel should have written it (this is not tested when
// it is scheduled: check_unwritten in tir/interpret/interpreter.h), or the one that produced the tensor.
#pragma once
#include <map>
#include <mutex>
#include <thread>

#include "codegen/backend.h"
#include "tir/interpret/interpreter.h"
#include "vm/program.h"

namespace relaxc::codegen {

// The functions of the user's object files and archives (--link) that a module calls, loaded into this process.
struct LinkedFunctions {
  std::vector<std::string> names = {};
  std::shared_ptr<const vm::KernelLibrary> code = nullptr;  // null: there are none
  vm::UserLibraries libraries = {};                         // that programs may call, too

  // Registers those that kernels of the module are.
  void add_to(vm::Registry& registry) const;
};
LinkedFunctions load_linked(const IRModule& module, const std::vector<std::string>& files, const Target& target);

class InterpretedKernels final : public vm::RunWatcher {
 public:
  // Takes the module as lower_to_bytecode() does, but with tensor programs of any form. A node that the interpreter
  // does not know is a CompileError (kUnsupported). Programs may call the linked functions.
  InterpretedKernels(const IRModule& module, const InterpretOptions& options, LinkedFunctions linked = {});
  ~InterpretedKernels() override;

  // Finds a kernel by its symbol; empty when there is none. The result lives as long as this object. Thread-safe.
  vm::Kernel find(const std::string& symbol);

  void begins() override;
  // Throws a RuntimeError for results with elements that no kernel wrote.
  void ends(const vm::Value& result) override;

 private:
  struct Program;
  // Memory that a kernel left partly unwritten.
  struct Unwritten {
    WrittenBytes written;
    std::string buffer;  // its name and its kernel's, for messages
  };
  // The unwritten memory of one run, by address.
  using Memory = std::map<const char*, Unwritten>;

  void call(Program& program, const relaxc_kernel_args& args);
  void check_result(const Memory& memory, const vm::Value& result, const std::string& name) const;
  static void forget(Memory& memory, const char* begin, int64_t bytes);

  LinkedFunctions linked_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Program>> programs_;  // by symbol
  std::map<std::thread::id, Memory> memory_;                  // of the current runs, one per thread
};

}  // namespace relaxc::codegen
