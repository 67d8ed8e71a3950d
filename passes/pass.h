// <relaxc/pass.h>: a pass is a free function over a module, or over one tensor program for a target, and a row of the
// table in table.cc, {name, doc, function}. The runner alone verifies, times, dumps and bisects.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ops/user_kernel.h"
#include "support/progress.h"
#include "support/result_store.h"
#include "tir/schedule/rule.h"
#include "tir/target.h"
#include "vm/tensor.h"

namespace relaxc {

struct KernelRule;
class Tables;  // passes/tables.h

// Computes the results of a closed graph function ("main", without params). Without one nothing is folded.
using EvaluateModule = std::function<std::vector<Tensor>(const IRModule&)>;

// A gather that meets an index out of range ends the run with an error that names it, or takes the nearest element.
enum class OutOfRange : uint8_t { kError, kClamp };

// The error that Winograd's algorithm may have by default, as a multiple of that of direct sums.
constexpr double kWinogradError = 2.5;

// The numbers of 16 bits that products and weights of float32 become (passes/precision.h); kMixed: where that is
// faster.
enum class Precision : uint8_t { kFloat32, kBFloat16, kFloat16, kMixed };

// The settings of a compilation that passes and code generators read; CompileSettings has them from here.
struct PassSettings {
  // Threads that compile; 0: one per core. The result does not depend on it. One thread applies the user's schedules.
  int jobs = 0;
  int opt_level = 2;  // of generated code. 0: as emitted; 1: fast compilation; 2 and 3: for fast kernels
  // A program that equals one which this process compiled under the same settings is not lowered and compiled again.
  // It has no effect together with schedules, callbacks or check_bounds.
  bool reuse = true;
  // Where `reuse` has its effect, results are looked for and kept here, too, beyond this process; null: they are not.
  std::shared_ptr<ResultStore> store = nullptr;
  std::vector<ScheduleRule> schedules = {};  // the user's, tried in order before the built-in ones
  // Called with a line for each of them that was applied, and with the reason where one was not; with a line for each
  // of the user's kernels that was used nowhere, too.
  std::function<void(const std::string&)> report = nullptr;
  // Called with each piece of work that begins or ends, by any thread that compiles (support/progress.h).
  OnProgress progress = nullptr;
  // Called with each decision about an operator of the graph: rule, operator, decision (passes/graph_decisions.h).
  std::function<void(const std::string&, const std::string&, const Decision&)> decided = nullptr;
  OnScheduled scheduled = nullptr;  // is called for users' rules and for built-in ones
  // The user's kernels, tried in order (passes/kernel_rules.h); null: none.
  std::shared_ptr<const std::vector<KernelRule>> kernels = nullptr;
  OnClaim claimed = nullptr;  // is called for each node that a kernel implements, or claims without fitting
  // The most error of a 3x3 convolution by Winograd's algorithm, as a multiple of that of direct sums
  // (passes/winograd.h). 0: all convolutions are direct.
  double winograd_error = kWinogradError;
  // The numbers that convolutions and products read (passes/lower_precision.cc). They are added up in float32.
  Precision precision = Precision::kFloat32;
  // Sums of two products of bytes may be clamped to 16 bits where the target has no exact instruction for bytes.
  bool fast_int8 = false;
  // A gather treats an index out of range like this; a scatter always refuses it.
  OutOfRange gather = OutOfRange::kError;
  // Every access whose index is not provably in range, and every axis not provably in its domain, is tested by the
  // machine code; a kernel that fails such a test ends the run with an error (docs/relaxc.md says what it costs).
  bool check_bounds = false;
  // The one function that is to be run, public or not: a graph function, or a tensor program (passes/wrap_programs.cc).
  // Functions that it does not call are left out. Empty: every public one.
  std::string function = {};
  // Operators, passes, pipelines, rules, intrinsics and converters; null: the built-in ones. load_plugins() returns
  // those and the rows that plug-ins add.
  std::shared_ptr<const Tables> tables = nullptr;
};

struct PassContext : PassSettings {
  PassContext(const OpTable& table, Target machine, PassSettings settings = {})
      : PassSettings(std::move(settings)), ops(table), target(std::move(machine)) {}
  const OpTable& ops;
  Target target;
  EvaluateModule evaluate = nullptr;
};

using ModulePass = std::function<IRModule(IRModule module, PassContext& context)>;
// Programs of one module are handed to such a pass in any order and by several threads. The result depends on the
// arguments only: a program that equals an earlier one may get a copy of that one's result.
using ProgramPass =
    std::function<PrimFuncRef(const std::string& name, const PrimFuncRef& program, const PassContext& context)>;

struct Pass {
  std::string name;  // on the command line; function, file (<name>.cc) and test have the same name
  std::string doc;   // one line
  ModulePass on_module = nullptr;
  ProgramPass on_program = nullptr;  // one of the two is set
  // Throws a CompileError for modules that the pass cannot take.
  std::function<void(const IRModule& module, const PassContext& context)> expects = nullptr;
  bool PassSettings::* setting = nullptr;  // pipelines leave the pass out where this setting is off
};

// A named list of passes and pipelines, so that every pipeline can be typed: relaxc opt --passes=a,b,c.
struct Pipeline {
  std::string name;
  std::string doc;
  std::vector<std::string> passes;
};

// The built-in ones (table.cc); passes over modules come first.
const std::vector<Pass>& passes();
const std::vector<Pipeline>& pipelines();
const Pass* find_pass(std::string_view name);

// The pipeline that lowers tensor programs for CPUs. Other kinds of targets have other pipelines.
inline constexpr std::string_view kLowerKernels = "lower_kernels";
// Returns the passes of "default", "a,b,c" or a mix of both, from the settings' tables, which must outlive them;
// unknown names are a CompileError that lists the known ones. `lowering` is the pipeline that replaces lower_kernels
// inside of others.
std::vector<const Pass*> parse_passes(std::string_view text, const PassSettings& settings = {},
                                      std::string_view lowering = kLowerKernels);

using ProgramMap = std::map<std::string, PrimFuncRef>;
ProgramMap programs_of(const IRModule& module);

// Equal programs are scheduled, lowered and compiled once in a process. Within a compilation merge_kernels keeps one of
// equal private ones, and the runner and the code generator handle equal public ones once. The results for the programs
// of earlier compilations are kept by the runner (lowered programs) and by the code generator (object code).

// Returns a hash of all that the code depends on; nullopt where that includes the name. Unequal programs may have the
// same hash.
using ProgramKey = std::function<std::optional<uint64_t>(const std::string& name, const PrimFuncRef& program)>;
// Maps each program that equals an earlier one, except for its public name, to the name of that one. Public programs
// are the earlier ones.
std::map<std::string, std::string> equal_programs(const ProgramMap& programs, const ProgramKey& key);
// Does the same for public programs only.
std::map<std::string, std::string> equal_public_programs(ProgramMap programs, const ProgramKey& key);
// Returns a copy of the program under the public name of another one, or without one.
PrimFuncRef with_symbol_of(const PrimFuncRef& program, const PrimFuncRef& other);
PrimFuncRef without_symbol(const PrimFuncRef& program);

// Returns a function that hashes a program together with a text that says what else its result depends on. The keys are
// the same in every process.
ProgramKey program_keys(const std::string& circumstances);
// Returns such a text: the target, the settings that lowering reads, and the names of passes.
std::string circumstances_of(const PassContext& context, const std::string& passes);
// Returns program_keys() of that text; rules for operators count by name only. The key is nullopt where a user's rule
// names the program. Names of buffers, blocks and loops count where rules or annotations may mention them.
ProgramKey keys_in(const PassContext& context, const std::string& passes = "");

}  // namespace relaxc
