#include "tools/machine.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/joined.h"
#include "support/whole_number.h"

namespace relaxc::tools {

namespace {

// Returns the first line of a file; "" where there is none.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}
std::optional<int64_t> number_in(const std::string& path) { return whole_number(line_of(path)); }

// Returns what follows the key in a file of lines such as "model name	: AMD EPYC" or NAME="value".
std::string value_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t:=\"", key.size());
    const size_t end = line.find_last_not_of(" \t\"");
    return begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
  }
  return {};
}

// Parses "0-3,8".
std::vector<int> cpus_in(const std::string& text) {
  std::vector<int> cpus;
  for (std::string_view part : parts_of(text, ',')) {
    const size_t hyphen = part.find('-');
    const auto first = whole_number(part.substr(0, hyphen));
    const auto last = hyphen == part.npos ? first : whole_number(part.substr(hyphen + 1));
    constexpr int64_t kMostCpus = 1 << 16;
    if (!first || !last || *last >= kMostCpus) continue;
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Groups processors by the text that a file of each has.
template <class PathOf>
std::vector<std::vector<int>> grouped(const std::vector<int>& cpus, const PathOf& path_of) {
  std::map<std::string, std::vector<int>> groups;
  for (int cpu : cpus) groups[line_of(path_of(cpu))].push_back(cpu);
  std::vector<std::vector<int>> result;
  for (auto& [text, group] : groups) {
    if (!text.empty()) result.push_back(std::move(group));
  }
  std::ranges::sort(result);
  return result;
}

std::string path_of_l3(const std::string& root, int cpu) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/cache/index{}/", root, cpu, index);
    if (line_of(folder + "level") == "3") return folder + "shared_cpu_list";
  }
  return {};
}

void read_places(Machine& machine, const std::string& root) {
  const std::string cpus = root + "/sys/devices/system/cpu/";
  machine.online = cpus_in(line_of(cpus + "online"));
  machine.usable = usable_cpus();
  if (!root.empty()) machine.usable = machine.online;
  machine.cores =
      grouped(machine.usable, [&](int cpu) { return fmt::format("{}cpu{}/topology/thread_siblings_list", cpus, cpu); });
  machine.near = grouped(machine.usable, [&](int cpu) { return path_of_l3(root, cpu); });
  const std::set<int> usable(machine.usable.begin(), machine.usable.end());
  for (int node : cpus_in(line_of(root + "/sys/devices/system/node/online"))) {
    std::vector<int> here = cpus_in(line_of(fmt::format("{}/sys/devices/system/node/node{}/cpulist", root, node)));
    std::erase_if(here, [&](int cpu) { return !usable.contains(cpu); });
    if (!here.empty()) machine.nodes.push_back(std::move(here));
  }
}

// A line is "QUOTA PERIOD" in microseconds, or "max PERIOD".
std::optional<double> cpus_of_quota(const std::string& quota, const std::string& period) {
  const auto time = whole_number(quota), of = whole_number(period);
  if (!time || !of || *of == 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*of);
}

void keep_memory(Machine& machine, std::optional<int64_t> most, std::optional<int64_t> used, const char* file) {
  if (!most || (machine.group_memory && *machine.group_memory <= *most)) return;
  machine.group_memory = most, machine.group_memory_used = used, machine.memory_file = file;
}
void keep_cpus(Machine& machine, std::optional<double> cpus, const char* file) {
  if (!cpus || (machine.group_cpus && *machine.group_cpus <= *cpus)) return;
  machine.group_cpus = cpus, machine.cpus_file = file;
}

// Reads the limits of a folder of cgroup 2.
void read_group(Machine& machine, const std::string& folder) {
  std::istringstream quota(line_of(folder + "/cpu.max"));
  std::string time, period;
  quota >> time >> period;
  keep_cpus(machine, cpus_of_quota(time, period), "cpu.max");
  keep_memory(machine, number_in(folder + "/memory.max"), number_in(folder + "/memory.current"), "memory.max");
}
// Reads those of a folder of cgroup 1, where each kind of limit has a hierarchy of its own. Without a limit the quota
// is -1, and that of memory the largest number of pages.
void read_cpu_group(Machine& machine, const std::string& folder) {
  keep_cpus(machine, cpus_of_quota(line_of(folder + "/cpu.cfs_quota_us"), line_of(folder + "/cpu.cfs_period_us")),
            "cpu.cfs_quota_us");
}
void read_memory_group(Machine& machine, const std::string& folder) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  const auto most = number_in(folder + "/memory.limit_in_bytes");
  if (most && *most < kNoLimit)
    keep_memory(machine, most, number_in(folder + "/memory.usage_in_bytes"), "memory.limit_in_bytes");
}

// Reads the group and each one above it, which limits it, too. Inside of a container the path may be that of the host,
// of which only the top is mounted.
template <class Read>
void read_upwards(Machine& machine, const std::string& base, std::string path, const Read& read) {
  for (; path.size() > 1; path = path.substr(0, path.rfind('/'))) read(machine, base + path);
  read(machine, base);
}

// Lines of /proc/self/cgroup are "0::/path" of cgroup 2 and "4:cpu,cpuacct:/path" of cgroup 1.
void read_groups(Machine& machine, const std::string& root) {
  const std::string base = root + "/sys/fs/cgroup";
  std::map<std::string, std::string> paths;  // by the controller; that of cgroup 2 has none
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) paths[""] = path;
    for (std::string_view controller : parts_of(controllers, ',')) paths[std::string(controller)] = path;
  }
  read_upwards(machine, base, paths[""], read_group);
  read_upwards(machine, base + "/cpu", paths["cpu"], read_cpu_group);
  read_upwards(machine, base + "/memory", paths["memory"], read_memory_group);
}

std::optional<int64_t> process_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

int64_t kilobytes_in(const std::string& path, const std::string& key) {
  const std::string text = value_in(path, key);
  return whole_number(text.substr(0, text.find(' '))).value_or(0) << 10;
}

}  // namespace

Machine read_machine(const std::string& root) {
  Machine machine;
  machine.processor = value_in(root + "/proc/cpuinfo", "model name");
  machine.system = value_in(root + "/etc/os-release", "PRETTY_NAME");
  utsname names{};
  if (uname(&names) == 0) machine.kernel = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  machine.c_library = fmt::format("glibc {}", gnu_get_libc_version());
  read_places(machine, root);
  machine.memory = kilobytes_in(root + "/proc/meminfo", "MemTotal:");
  machine.available_memory = kilobytes_in(root + "/proc/meminfo", "MemAvailable:");
  machine.address_space = process_limit(RLIMIT_AS);
  machine.stack = process_limit(RLIMIT_STACK);
  machine.open_files = process_limit(RLIMIT_NOFILE);
  read_groups(machine, root);
  return machine;
}

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (end > i + 1) text += fmt::format("-{}", cpus[end - 1]);
    i = end;
  }
  return text;
}

std::vector<std::string> problems_of(const Machine& machine) {
  std::vector<std::string> problems;
  constexpr double kGigabyte = 1e9;
  constexpr int64_t kLeastMemory = 1'000'000'000, kLeastStack = 1 << 20, kLeastFiles = 64;
  const auto threads = static_cast<double>(machine.usable.size());
  if (machine.group_cpus && *machine.group_cpus < threads)
    problems.push_back(fmt::format(
        "the cgroup allows the time of {:.3g} processors, and {} threads run kernels: the system then stops them for "
        "parts of each period; give --threads {}, or raise the quota ({})",
        *machine.group_cpus, machine.usable.size(), std::max(1, static_cast<int>(*machine.group_cpus)),
        machine.cpus_file));
  if (machine.group_memory && *machine.group_memory < kLeastMemory)
    problems.push_back(
        fmt::format("the cgroup allows {:.2f} GB of memory, and a compilation may need 1 GB: raise "
                    "{}, or compile elsewhere and run the artifact with relaxc-run",
                    static_cast<double>(*machine.group_memory) / kGigabyte, machine.memory_file));
  if (machine.address_space && *machine.address_space < 4 * kLeastMemory)
    problems.push_back(
        fmt::format("ulimit -v allows {:.2f} GB of addresses; mapped models count, too: ulimit -v "
                    "unlimited",
                    static_cast<double>(*machine.address_space) / kGigabyte));
  if (machine.stack && *machine.stack < kLeastStack)
    problems.push_back(fmt::format("ulimit -s allows a stack of {} KiB; kernels keep their tiles there: ulimit -s 8192",
                                   *machine.stack >> 10));
  if (machine.open_files && *machine.open_files < kLeastFiles)
    problems.push_back(fmt::format("ulimit -n allows {} open files: ulimit -n 1024", *machine.open_files));
  if (machine.available_memory > 0 && machine.available_memory < kLeastMemory)
    problems.push_back(fmt::format("{:.2f} GB of memory are available, and a compilation may need 1 GB",
                                   static_cast<double>(machine.available_memory) / kGigabyte));
  return problems;
}

}  // namespace relaxc::tools
