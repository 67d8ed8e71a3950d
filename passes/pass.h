// <relaxc/pass.h>: a pass is a free function over a module, or over one tensor program for a target, and a row of the
// table in table.cc, {name, doc, function}. The runner alone verifies, times, dumps and bisects; passes contain none of
// it.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "ir/op.h"
#include "tir/schedule/rule.h"
#include "tir/target.h"
#include "vm/tensor.h"

namespace relaxc {

// Computes the results of a closed graph function ("main", without params). Installed by who can run code; folding
// leaves everything as it is when there is none.
using EvaluateModule = std::function<std::vector<Tensor>(const IRModule&)>;

// A gather that meets an index out of range ends the run with an error that names it, or takes the nearest element.
enum class OutOfRange : uint8_t { kError, kClamp };

// The settings of a compilation that passes read; CompileSettings has them from here.
struct PassSettings {
  int jobs = 0;  // threads that compile; 0: one per core. Schedules of the user's are applied by one thread
  std::vector<ScheduleRule> schedules = {};  // the user's, tried in order before the built-in ones
  // Hears which of them were applied, and why others were not.
  std::function<void(const std::string&)> report = nullptr;
  // Hears of each decision about an operator of the graph: rule, operator, decision (passes/graph_decisions.h).
  std::function<void(const std::string&, const std::string&, const Decision&)> decided = nullptr;
  bool winograd = true;  // for 3x3 convolutions where it is faster, at an error of passes/winograd.h
  // A gather treats an index out of range like this; a scatter always refuses it.
  OutOfRange gather = OutOfRange::kError;
  // Every access whose index is not provably in range, and every axis not provably in its domain, is tested by the
  // machine code; a kernel that fails such a test ends the run with an error (docs/relaxc.md says what it costs).
  bool check_bounds = false;
};

struct PassContext : PassSettings {
  PassContext(const OpTable& table, Target machine, PassSettings settings = {})
      : PassSettings(std::move(settings)), ops(table), target(std::move(machine)) {}
  const OpTable& ops;
  Target target;
  EvaluateModule evaluate = nullptr;
};

using ModulePass = IRModule (*)(IRModule module, PassContext& context);
// Programs of one module are handed to such a pass in any order and by several threads.
using ProgramPass = PrimFuncRef (*)(const std::string& name, const PrimFuncRef& program, const PassContext& context);

struct Pass {
  const char* name;  // on the command line; also the function, the file (<name>.cc) and the test
  const char* doc;   // one line
  ModulePass on_module = nullptr;
  ProgramPass on_program = nullptr;  // one of the two is there
  // Throws a CompileError for modules whose programs the pass must not change.
  void (*expects)(const IRModule& module, const PassContext& context) = nullptr;
  bool PassSettings::* setting = nullptr;  // pipelines leave the pass out where this setting is off
};
std::span<const Pass> passes();  // those over modules come first
const Pass* find_pass(std::string_view name);

// A named list of passes and pipelines, so that every pipeline can be typed: relaxc opt --passes=a,b,c.
struct Pipeline {
  const char* name;
  const char* doc;
  std::vector<const char*> passes;
};
std::span<const Pipeline> pipelines();

// The lowering of tensor programs for CPUs. Other kinds of targets have pipelines of their own beside it.
inline constexpr std::string_view kLowerKernels = "lower_kernels";
// "default", "a,b,c", or a mix of both; unknown names are a CompileError that lists what there is. `lowering` is the
// pipeline that stands for lower_kernels inside of others.
std::vector<const Pass*> parse_passes(std::string_view text, const PassSettings& settings = {},
                                      std::string_view lowering = kLowerKernels);

// The passes of lower_kernels on one program, without a runner around them.
PrimFuncRef lower_program(const PrimFuncRef& program, const PassSettings& settings = {});

using ProgramMap = std::map<std::string, PrimFuncRef>;
ProgramMap programs_of(const IRModule& module);

// Within one compilation equal programs are scheduled, lowered and compiled once: merge_kernels leaves one of those
// that are private, the runner and the code generator handle the public ones as one.

// Returns a hash of what becomes code; nullopt: the program's name matters. Programs of one key are still to be
// compared.
using ProgramKey = std::function<std::optional<uint64_t>(const std::string& name, const PrimFuncRef& program)>;
// Returns the names of programs that equal another one but for a public name, each with that one's name; public names
// stand for private ones.
std::map<std::string, std::string> equal_programs(const ProgramMap& programs, const ProgramKey& key);
// The same for public programs only.
std::map<std::string, std::string> equal_public_programs(ProgramMap programs, const ProgramKey& key);
// Returns a copy of the program under the public name of another one.
PrimFuncRef with_symbol_of(const PrimFuncRef& program, const PrimFuncRef& other);

// Hashes the program, the target and the settings that lowering reads; rules for operators count by name only. nullopt:
// a rule of the user's names the program. A cache on disk would be asked with this key in GroupRun::on_programs
// (passes/runner.cc) and Worker::emit (codegen/llvm_compile.cc).
std::optional<uint64_t> program_key(const std::string& name, const PrimFuncRef& program, const PassContext& context);
ProgramKey keys_in(const PassContext& context);  // which lives as long

}  // namespace relaxc
