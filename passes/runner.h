// Runs passes: verifies, times, prints, dumps, stops and bisects, and says which pass a failure belongs to.
#pragma once
#include <iosfwd>

#include "passes/pass.h"

namespace relaxc {

struct RunnerOptions {
  bool verify_each = true;
  std::vector<std::string> print_after;  // pass names, or "all"
  std::string dump_dir;                  // numbered files of what each pass changed; empty: none
  std::string stop_after;                // the last pass to run; empty: all
  int bisect_limit = -1;                 // run only that many passes; -1: all
  bool time_passes = false;
  std::FILE* output = nullptr;  // of print_after and time_passes; null: stderr
};

// Throws CompileError for invalid modules that the user gave, InternalError (naming the pass and, with dump_dir, the
// reproducer) when a pass fails or leaves an invalid module.
IRModule run_passes(IRModule module, std::span<const Pass* const> passes, PassContext& context,
                    const RunnerOptions& options = {});

}  // namespace relaxc
