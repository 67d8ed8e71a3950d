// Finds the pass, and the tensor program, that makes the results of a module wrong, by running the module after some of
// its passes (Whalley, "Automatic Isolation of Compiler Errors", TOPLAS 1994). It looks for a program without whose
// scheduling and lowering the results are right, and then for the first pass that spoils it; where there is none, for
// the first pass over the module that spoils the results.
#pragma once
#include "codegen/compile.h"

namespace relaxc {

// A module as it ran, all passes done that a run needs, with the program that it became.
struct RanModule {
  IRModule module;
  Program program;
};
struct Culprit {
  std::string pass;          // its name, or kCodeGeneration
  std::string program = {};  // empty: a pass over the module, not over single programs
  // The difference in the results once this pass has changed this program.
  std::string difference = {};
  std::string reproducer = {};  // path of a text test that runs the pass on the program; empty: there is none
  // The last run with right results and the first with wrong ones, which differ by what the pass did; none where a
  // module did not even run. They keep the programs that find_culprit() compiled.
  std::optional<RanModule> right = {}, wrong = {};
  std::optional<PrimFuncRef> unscheduled = {};  // the program before the first pass over single programs
};
inline constexpr const char* kCodeGeneration = "code generation";

// Runs a program and says how its results differ from those expected. An empty text means that they do not differ.
using ResultCheck = std::function<std::string(const Program& program)>;

// Finds the culprit with the module after some of `passes`, some of its programs in the interpreter
// (codegen/interpret.h) and the others in machine code. Errors of a run count as differences. Returns nullopt when the
// results of machine code do not differ. Throws a CompileError when they differ before the first pass. Reproducers go
// to the folder `settings.runner.dump_dir`. Calls `report`, if any, with a line for each run.
std::optional<Culprit> find_culprit(const IRModule& module, std::span<const Pass* const> passes,
                                    const CompileSettings& settings, const ResultCheck& check,
                                    const std::function<void(const std::string&)>& report = nullptr);

}  // namespace relaxc
