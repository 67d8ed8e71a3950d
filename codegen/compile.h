// <relaxc/relaxc.hpp>: the front door of the compiler.
//
//   relaxc::CompiledModule model = relaxc::compile_file("model.onnx");
//   relaxc::Session session(model.load());
//   std::vector<relaxc::Tensor> outputs = session.run({input});
//
// or model.write("model.so") and, elsewhere and without the compiler, relaxc::Program::load("model.so").
#pragma once
#if __cplusplus < 202002L
#error "C++20 is needed: compile with -std=c++20"
#endif
#include <map>
#include <set>
#include <string>

#include "codegen/backend.h"
#include "codegen/bind_values.h"
#include "codegen/grow_caches.h"
#include "ir/module.h"
#include "passes/runner.h"
#include "tir/interpret/interpreter.h"
#include "vm/program.h"
#include "vm/user_library.h"

namespace relaxc {

struct UnconvertedNode;  // frontend/onnx/import.h

struct CompileSettings : PassSettings {
  std::string target = "host";                   // codegen/target.h lists the forms
  std::string passes = "default";                // names of passes and pipelines
  std::map<std::string, int64_t> dims;           // symbolic dims of the inputs that get a fixed value
  DimRanges dim_ranges = {};                     // of others, which every run tests
  std::map<std::string, Tensor> params = {};     // params of the function that become constants: weights
  std::map<std::string, Type> types = {};        // of params that a text or model leaves open (codegen/open_types.h)
  std::map<std::string, Type> input_types = {};  // the same, of inputs that are to be given
  CacheNames caches = {};                        // of a decoder, that runs extend in place
  // Called for each contradiction in an ONNX model that compiles all the same (frontend/onnx/import.h).
  std::function<void(const Diagnostic&)> warn = nullptr;
  bool strict = false;  // these are errors
  // Called for each node of an ONNX model that cannot be converted, which otherwise are errors: the module that is read
  // then tells what becomes of the other nodes, and cannot be run.
  std::function<void(const UnconvertedNode&)> unconverted = nullptr;
  vm::UserLibraries libraries = {};      // of the user's C kernels; an artifact names those that it needs
  std::vector<std::string> linked = {};  // objects and archives (.o, .a) with C kernels, which become part of it
  // Symbols that these need and that the program which will load the artifact has; "GOMP_*" stands for all that begin
  // so. Others are errors of the compilation.
  std::vector<std::string> host_symbols = {};
  // Runs kernels in the tensor-program interpreter (codegen/interpret.h), in the form in which `passes` leaves them.
  // `passes` may end anywhere from "legalize" to "default". Without machine code write() refuses.
  std::optional<InterpretOptions> interpret = {};
  // The model or text in memory, of which the path is only a name; it is read while the module is. Weights in other
  // files are refused then.
  std::optional<std::span<const std::byte>> contents = {};
  RunnerOptions runner;
};

// The parts of a path such as "tutorial.py::MyModule", which names one of several modules of a text; `module` may be
// "".
struct TextPath {
  std::string file, module;
};
TextPath split_text_path(const std::string& path);
// Returns whether the name is that of a text, and not of a model.
bool is_text_path(const std::string& path);

// Reads an .onnx model or TVMScript (.py, .tvm, .test, .txt). Errors are CompileErrors. `files`, unless it is null,
// gets the files in which the module's constants lie.
IRModule read_module(const std::string& path, const CompileSettings& settings = {}, vm::MappedFiles* files = nullptr);
// Returns the module with the steps done that its text has on a tvm.tir.Schedule beside it.
IRModule read_scheduled_module(const std::string& path, const CompileSettings& settings = {},
                               vm::MappedFiles* files = nullptr);
// Reads a module and collects the errors of a text. The module then holds the parts that do not depend on them.
IRModule read_module(const std::string& path, const CompileSettings& settings, Diagnostics& diagnostics,
                     vm::MappedFiles* files = nullptr);
// Returns the contents of a file. Throws a CompileError when it cannot be read.
std::string read_text(const std::string& path);
// Returns the table of the built-in operators; Tables::ops() has those of plug-ins, too.
const OpTable& op_table();
// Returns whether the operator can be compiled. For some operators only types are inferred.
bool has_lowering(const OpRow& row);

class CompiledModule {
 public:
  // Returns the executable, whose inputs, outputs and functions can be read without loading it.
  const vm::Executable& executable() const { return executable_; }
  // Loads the module into this process. Throws CompileError when the CPU lacks a feature of the target.
  Program load(LoadOptions options = {}) const;
  // Writes one shared object with bytecode, weights and machine code. Throws RuntimeError when it cannot be written.
  void write(const std::string& path) const;
  // Adds a text to the artifact, which `relaxc inspect` shows.
  void set_metadata(const std::string& key, const std::string& text) { executable_.metadata[key] = text; }
  // Returns the files in which constants lie, and the model's own.
  const vm::MappedFiles& sources() const { return sources_; }
  // Returns the module after all passes.
  const IRModule& lowered() const { return lowered_; }
  const Target& target() const { return target_; }
  codegen::KernelMap kernels() const { return programs_of(lowered_); }

 private:
  friend CompiledModule compile(IRModule module, const CompileSettings& settings);
  friend CompiledModule compile_file(const std::string& path, const CompileSettings& settings);
  CompiledModule() = default;
  void generate(const CompileSettings& settings);  // bytecode and machine code of lowered_
  // Notes the libraries whose kernels and functions are called, but for those that are linked in.
  void note_libraries(const CompileSettings& settings, const std::set<std::string>& linked);
  IRModule lowered_;
  Target target_;
  vm::Executable executable_;
  codegen::KernelObjects objects_;
  vm::UserLibraries libraries_;                // that the kernels need
  std::vector<std::string> other_libraries_;   // of plug-ins, which are opened when the module is loaded
  vm::MappedFiles sources_;                    // in which constants lie
  std::optional<InterpretOptions> interpret_;  // then objects_ has only what is linked
};

// Returns why no backend takes a graph function that says it is for one (attribute Codegen); "" for others.
std::string why_no_backend(const std::string& name, const Function& function, const CompileSettings& settings);
// Returns the context of passes under these settings: operators, target, and a constant folder that runs code.
PassContext pass_context(const CompileSettings& settings = {});
// Returns the passes that these settings name, in order.
std::vector<const Pass*> passes_of(const CompileSettings& settings, const Target& target);
// Runs the passes only.
IRModule run_pipeline(IRModule module, const CompileSettings& settings = {});
CompiledModule compile(IRModule module, const CompileSettings& settings = {});
// Compiles a model's file, in which its constants stay. A change of the file is an error here, in write() and in runs.
CompiledModule compile_file(const std::string& path, const CompileSettings& settings = {});
// Loads an artifact, and compiles any other file.
Program load_program(const std::string& path, const CompileSettings& settings = {}, LoadOptions options = {});

}  // namespace relaxc
