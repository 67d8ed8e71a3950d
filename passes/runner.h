// Runs passes over modules and over single tensor programs: verifies, times, prints, dumps, stops and bisects, and
// names the pass and the program of a failure.
#pragma once
#include "passes/pass.h"

namespace relaxc {

// Says when the results of passes are verified. Neighbouring passes over programs are a group, which is verified as
// one; when that fails, the group runs again with a verification after each pass, to name the one that is wrong.
enum class VerifyEach : uint8_t { kNever, kGroup, kPass };

struct RunnerOptions {
  VerifyEach verify_each = VerifyEach::kGroup;
  std::vector<std::string> print_after = {};  // passes and pipelines by name, or "all"; to stderr, as times are
  std::string dump_dir = {};                  // numbered files of what each pass changed; empty: none
  std::string stop_after = {};                // the last pass or pipeline to run; empty: all
  int bisect_limit = -1;                      // run only that many passes; -1: all
  std::string flags = {};    // of relaxc, each with a space before it, that reproducers of these settings need
  bool time_passes = false;  // print times; a pass over programs has the sum over all programs
  // For passes that the compiler runs by itself: nothing is printed, dumped, timed or left out.
  RunnerOptions verification_only() const { return {.verify_each = verify_each}; }
};

// Throws a CompileError when the user's module is invalid, and an InternalError that names the pass, the program and
// the reproducer when a pass fails or leaves an invalid module.
IRModule run_passes(IRModule module, std::span<const Pass* const> passes, PassContext& context,
                    const RunnerOptions& options = {});

// Runs one pass on every program, or on the module, and does nothing else.
IRModule run_pass(const Pass& pass, IRModule module, PassContext& context);

// Returns the names of the tensor programs that differ between two modules.
std::vector<std::string> changed_programs(const IRModule& before, const IRModule& after);

// Returns the command that runs the pass on a reproducer.
std::string reproducing_command(const std::string& path, const std::string& pass, const PassSettings& settings,
                                const RunnerOptions& options);
// Writes a text test that runs the pass on the module, or on one program of it, and returns its path. An empty folder
// stands for a new one for temporary files.
std::string write_reproducer(const std::string& folder, const Pass& pass, const IRModule& before,
                             const std::string& program = "");

}  // namespace relaxc
