// Two profiles side by side: the kernels of both that compute the same nodes of the model are one row, however each
// compilation has fused them.
#pragma once
#include <string>
#include <vector>

#include "tools/report.h"

namespace relaxc::tools {

struct ProfiledKernel {
  std::string name;
  std::string nodes;                // of the model, "/conv1/Conv, /relu/Relu"; may be empty
  double run_us = 0, limit_us = 0;  // of the median of the runs
};

// What `relaxc bench --profile --json` wrote.
struct ReadProfile {
  std::string name;  // of the file
  double median_ms = 0, limit_ms = 0;
  std::vector<ProfiledKernel> kernels;
  std::vector<std::pair<std::string, std::string>> settings;  // threads, target, version, dims: as text
};
// Reads it from a text; `name` is that of its file. Throws a CompileError that names the file and the remedy where it
// does not hold a profile.
ReadProfile read_profile(const std::string& name, const std::string& figures);

struct ProfileRow {
  std::string nodes;  // all of both; the kernel's name where there are none
  double a_us = 0, b_us = 0, a_limit_us = 0, b_limit_us = 0;
  std::vector<std::string> a_kernels, b_kernels;
};
struct ProfilePair {
  ReadProfile a, b;
  std::vector<ProfileRow> rows;  // those that differ most first
  std::string verdict = {};      // whether the difference of the medians is clear, for a person
};
ProfilePair pair_of(ReadProfile a, ReadProfile b);

// Returns a table for people; and what tools/pages/compare.js draws.
std::string text_of(const ProfilePair& pair);
Report report_of(const ProfilePair& pair);

}  // namespace relaxc::tools
