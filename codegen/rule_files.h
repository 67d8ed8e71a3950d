// Files of kernels and schedules, as --kernels and the C interface take them.
#pragma once
#include <filesystem>

#include "codegen/compile.h"
#include "passes/kernel_rules.h"

namespace relaxc {

// The files of a folder that MetaSchedule's tuners write.
inline constexpr const char *kTuningRecords = "database_tuning_record.json", *kWorkloads = "database_workload.json";

// Returns whether a line of the text begins a schedule, a rule or a kernel (S.).
bool has_schedule_rules(const std::string& text);

// Reads such files for a compilation. `settings` gets the schedules and, by finish(), the kernels.
class RuleFiles {
 public:
  explicit RuleFiles(CompileSettings& settings) : settings_(settings) {}
  // Reads a text, a library of C kernels (.so) or tuning records; a text that is the model itself, too, may hold
  // neither kernels nor schedules. A file is read once, under whatever names it comes. Throws a CompileError.
  void read(const std::string& file, bool is_model = false);
  // Throws a CompileError where two files have a kernel of one name.
  void finish();

  std::vector<std::string> notes;  // on tensor programs that implement nothing
  Diagnostics warnings;            // on kernels: programs with races, say

 private:
  void read_library(const std::string& file);
  void read_text_file(const std::string& file, bool is_model);

  CompileSettings& settings_;
  std::vector<KernelRule> rules_;
  std::set<std::filesystem::path> files_;
};

}  // namespace relaxc
