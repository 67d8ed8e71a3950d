// <relaxc/relaxc.h>: the front door of the compiler.
//
//   relaxc::CompiledModule model = relaxc::compile_file("model.onnx");
//   relaxc::Session session(model.load());
//   std::vector<relaxc::Tensor> outputs = session.run({input});
//
// or model.write("model.so") and, elsewhere and without the compiler, relaxc::Program::load("model.so").
#pragma once
#include <map>
#include <string>

#include "codegen/backend.h"
#include "ir/module.h"
#include "passes/runner.h"
#include "tir/interpret/interpreter.h"
#include "vm/program.h"

namespace relaxc {

struct CompileSettings : PassSettings {
  std::string target = "host";          // codegen/target.h says what is accepted
  std::string passes = "default";       // names of passes and pipelines
  std::map<std::string, int64_t> dims;  // symbolic dims of an ONNX model that get a fixed value
  int opt_level = 2;                    // codegen/backend.h
  // Hears what contradicts itself in an ONNX model that compiles all the same (frontend/onnx/import.h).
  std::function<void(const Diagnostic&)> warn = nullptr;
  bool strict = false;  // these are errors
  // Kernels run in the tensor-program interpreter (codegen/interpret.h), in the form in which `passes` leaves them, and
  // `passes` may end anywhere from "legalize" to "default". There is no machine code, so write() refuses.
  std::optional<InterpretOptions> interpret = {};
  RunnerOptions runner;
};

// Reads an .onnx model or TVMScript (.py, .tvm, .test, .txt). Errors are CompileErrors.
IRModule read_module(const std::string& path, const CompileSettings& settings = {});
// The same with the errors of a text collected: the module then holds what does not depend on them.
IRModule read_module(const std::string& path, const CompileSettings& settings, Diagnostics& diagnostics);
// Every operator there is.
const OpTable& op_table();
// Whether it compiles; some are only known by their types yet.
bool has_lowering(const OpRow& row);

class CompiledModule {
 public:
  // Inputs, outputs and functions, without loading.
  const vm::Executable& executable() const { return executable_; }
  // Ready to run in this process. Throws CompileError when the CPU lacks what the target has.
  Program load(LoadOptions options = {}) const;
  // One shared object with bytecode, weights and machine code. Throws RuntimeError when it cannot be written.
  void write(const std::string& path) const;
  // After all passes.
  const IRModule& lowered() const { return lowered_; }
  const Target& target() const { return target_; }
  codegen::KernelMap kernels() const;

 private:
  friend CompiledModule compile(IRModule module, const CompileSettings& settings);
  friend CompiledModule compile_file(const std::string& path, const CompileSettings& settings);
  CompiledModule() = default;
  IRModule lowered_;
  Target target_;
  vm::Executable executable_;
  codegen::KernelObjects objects_;
  vm::MappedFiles sources_;                    // in which constants lie
  std::optional<InterpretOptions> interpret_;  // then there are no objects
};

// What passes get under these settings: operators, target, and folding that runs code.
PassContext pass_context(const CompileSettings& settings = {});
// The passes that these settings name, in order.
std::vector<const Pass*> passes_of(const CompileSettings& settings, const Target& target);
// Runs the passes only.
IRModule run_pipeline(IRModule module, const CompileSettings& settings = {});
CompiledModule compile(IRModule module, const CompileSettings& settings = {});
// Of a model's file, its constants stay there: a file that changes is an error here, of write(), and of each later run.
CompiledModule compile_file(const std::string& path, const CompileSettings& settings = {});
// One run of `main` after these passes, with every kernel in the interpreter; the same as compile() and load() under
// CompileSettings::interpret. The results of one module after more and more passes tell which of them goes wrong.
std::vector<Tensor> interpret_module(const IRModule& module, std::span<const Tensor> inputs,
                                     const std::string& passes = "legalize", const InterpretOptions& options = {});
// An artifact is loaded, anything else is compiled.
Program load_program(const std::string& path, const CompileSettings& settings = {}, LoadOptions options = {});

}  // namespace relaxc
