// The machine and the limits of this process, as the system tells them, for `relaxc doctor`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace relaxc::tools {

// Processors are the ones that Linux counts: with SMT several are one core.
struct Machine {
  std::string processor;                     // "AMD EPYC 9R14"; "" where the system does not say
  std::string system, kernel, c_library;     // "Debian GNU/Linux 12 (bookworm)", "Linux 6.1.0 x86_64", "glibc 2.36"
  std::vector<int> online, usable;           // processors; usable: by this process, from its affinity mask
  std::vector<std::vector<int>> cores;       // the usable processors that are one core
  std::vector<std::vector<int>> near;        // those that share an L3 cache; threads of other groups are far
  std::vector<std::vector<int>> nodes;       // those that are near one memory (NUMA)
  int64_t memory = 0, available_memory = 0;  // bytes; 0: not known
  // Limits of the process, and of the groups of processes that it is in (cgroup 1 and 2): the least one.
  std::optional<int64_t> address_space, stack, open_files;  // ulimit -v, -s in bytes, -n
  std::optional<int64_t> group_memory, group_memory_used;
  std::optional<double> group_cpus;                                // processors' worth of time
  const char *cpus_file = "cpu.max", *memory_file = "memory.max";  // where these limits stand
};

// Reads /proc, /sys and /etc below `root`, which is a folder in tests, and asks the system for the rest.
Machine read_machine(const std::string& root = "");

// Returns "0-3,8" for processors in ascending order.
std::string cpu_list(const std::vector<int>& cpus);
// Returns the problems that follow from this, each with what to do about it.
std::vector<std::string> problems_of(const Machine& machine);

}  // namespace relaxc::tools
