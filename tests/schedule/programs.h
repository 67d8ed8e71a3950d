// Tensor programs that schedules are tried on: each with numbers for its dims, and with symbolic ones.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace relaxc::test {

struct TestProgram {
  std::string name;
  PrimFuncRef function;
  // Dims by name; empty for static programs. Several, all from one schedule.
  std::vector<std::map<std::string, int64_t>> sizes;
};
std::vector<TestProgram> schedule_programs();

}  // namespace relaxc::test
