// The interface between lowered tensor programs and code. A backend is a row of the table in backend.cc: the pipeline
// that lowers programs for it, and functions that turn lowered programs into code.
#pragma once
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"
#include "vm/artifact.h"
#include "vm/user_library.h"

namespace relaxc::codegen {

using KernelMap = ProgramMap;  // lowered tensor programs by name

struct KernelObjects {
  Target target;
  std::vector<std::string> names;                  // sorted; the symbols are kernel_symbol(name)
  std::vector<std::vector<char>> objects;          // object files of the target
  size_t num_reused = 0;                           // kernels whose code an earlier compilation made
  std::vector<std::string> called = {};            // C functions that they call, but those that are linked in
  std::vector<std::string> linked = {};            // object files and archives that become part of the artifact
  std::vector<std::string> linked_kernels = {};    // the kernels among their functions, by symbol
  std::vector<std::string> linked_functions = {};  // those that other kernels call by name
};

// Returns the C functions that tensor programs call by name, but for those of libm and the like, which are called
// directly. Others are reached through variables (vm::slot_symbol).
std::set<std::string> called_functions(const KernelMap& kernels, const Target& target);

// Returns the functions that object files and archives (.o, .a) define. Throws a CompileError for another file.
std::set<std::string> functions_of(const std::vector<std::string>& files);
// Reports functions that the files call and that none of them and no library of the process has, but for those in
// `of_host`, in which "f*" stands for all that begin so. Members of archives count where they are needed for the
// functions in `called`, or for another one that is linked.
void check_linked(const std::vector<std::string>& files, const std::set<std::string>& called, const Target& target,
                  const std::vector<std::string>& of_host);
// Returns the functions that a shared library exports.
std::set<std::string> exported_functions(const std::string& library);

// Notes of the functions that the objects call which ones the files define (KernelObjects::linked_functions, `called`).
void link_functions(KernelObjects& objects, const std::set<std::string>& called, const std::vector<std::string>& files);
// Loads the kernels into this process by the backend of their target, and gives them the functions that they call
// (vm::connect_functions). Throws a CompileError that lists those that are missing.
std::shared_ptr<const vm::KernelLibrary> load_connected(const KernelObjects& objects,
                                                        const vm::UserLibraries& libraries = {});

// Returns "relaxc_k_" + name.
std::string kernel_symbol(std::string_view name);

struct Backend {
  const char* name;
  // Returns whether the backend makes code for the target. The first row that takes a target compiles for it.
  bool (*takes)(const Target& target);
  // The pipeline of passes over tensor programs (passes/table.cc) whose result the functions below take.
  const char* pipeline;
  // Compiles the kernels. The same kernels, target and settings give the same bytes. Safe to call from several threads.
  KernelObjects (*compile)(const KernelMap& kernels, const Target& target, const PassSettings& settings);
  // Returns the bytes of a shared object that exports the kernels.
  std::vector<char> (*link)(const KernelObjects& kernels);
  // Loads the kernels into this process. They are callable as long as the library lives.
  std::shared_ptr<const vm::KernelLibrary> (*load)(const KernelObjects& kernels);
  // A textual form of the kernels between compile()'s steps: a level of `relaxc compile --emit`.
  struct Text {
    const char* level;
    std::string (*print)(const KernelMap& kernels, const Target& target, const PassSettings& settings);
  };
  std::vector<Text> texts;
};
std::span<const Backend> backends();
// Returns the backend that makes code for this target. Throws a CompileError that lists the backends if none does.
const Backend& backend_of(const Target& target);

}  // namespace relaxc::codegen
