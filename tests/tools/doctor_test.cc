// relaxc doctor: what it says of this machine, and of machines that a folder describes.
#include <filesystem>

#include "support/version.h"
#include "tests/folder.h"
#include "tests/patterns.h"
#include "tests/relaxc_command.h"
#include "tools/machine.h"

#include "tests/catch.h"  // last

using namespace relaxc;
using test::contains;
using test::Outcome;
using test::run_relaxc;
namespace fs = std::filesystem;

namespace {

// A machine with four processors: two cores with two threads each, and two L3 caches.
struct FakeMachine {
  test::Folder folder{"machine"};

  FakeMachine() {
    write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast Processor 9\nflags\t: avx2\n");
    write("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n");
    write("etc/os-release", "NAME=\"Linux\"\nPRETTY_NAME=\"Fine Linux 3\"\n");
    write("proc/self/cgroup", "0::/group/inner\n");
    write("sys/devices/system/cpu/online", "0-3\n");
    write("sys/devices/system/node/online", "0\n");
    write("sys/devices/system/node/node0/cpulist", "0-3\n");
    for (int cpu = 0; cpu < 4; ++cpu) {
      const std::string place = fmt::format("sys/devices/system/cpu/cpu{}/", cpu), pair = cpu < 2 ? "0-1\n" : "2-3\n";
      write(place + "topology/thread_siblings_list", pair);
      write(place + "cache/index3/level", "3\n");
      write(place + "cache/index3/shared_cpu_list", pair);
    }
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder.at(path)).parent_path());
    folder.write(path, text);
  }
  tools::Machine read() const { return tools::read_machine(folder.path.string()); }
  // Returns the problems but for those of the limits of this process.
  std::string problems() const {
    tools::Machine machine = read();
    machine.address_space = machine.stack = machine.open_files = std::nullopt;
    std::string text;
    for (const std::string& problem : tools::problems_of(machine)) text += problem + "\n";
    return text;
  }
};

}  // namespace

TEST_CASE("doctor describes the machine and runs a kernel", "[tools]") {
  test::Folder folder("doctor");
  setenv("HOME", folder.path.c_str(), 1);
  unsetenv("RELAXC_CACHE");
  setenv("XDG_CACHE_HOME", folder.at("caches").c_str(), 1);
  setenv("SECRET_TOKEN", "do-not-show", 1);
  const Outcome outcome = run_relaxc({"doctor", "--quick"});
  INFO(outcome.out << outcome.err);
  for (const std::string& part :
       {version_text(), std::string("llvm"), std::string("processor"), std::string("l2"), std::string("glibc"),
        std::string("kernel: a small one compiles, runs and is right"), std::string("~/caches/relaxc/artifacts")})
    CHECK(contains(outcome.out, part));
  CHECK_FALSE(contains(outcome.out, folder.path.string()));
  CHECK_FALSE(contains(outcome.out, "do-not-show"));
  const Outcome json = run_relaxc({"doctor", "--quick", "--json"});
  CHECK(json.out.starts_with("{\"versions\": {\"relaxc\": "));
  CHECK(contains(json.out, "\"problems\": ["));
  unsetenv("SECRET_TOKEN"), unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("doctor says what to do about a cache that cannot be used", "[tools]") {
  test::Folder folder("doctor_cache");
  const std::string file = folder.write("file", "");
  const Outcome outcome = run_relaxc({"doctor", "--quick", "--cache", file + "/cache"});
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "problem: compiled models are not kept: "));
  CHECK(contains(outcome.out, "--cache DIR or RELAXC_CACHE names a folder"));
  fs::create_directory(folder.at("open"));
  fs::permissions(folder.at("open"), fs::perms::all);
  CHECK(contains(run_relaxc({"doctor", "--quick", "--cache", folder.at("open")}).out, "chmod go-w lets it be used"));
  setenv("RELAXC_CACHE", "", 1);
  CHECK(contains(run_relaxc({"doctor", "--quick"}).out, "off, as RELAXC_CACHE is empty"));
  unsetenv("RELAXC_CACHE");
}

TEST_CASE("doctor knows which threads are near, and what limits them", "[tools]") {
  const FakeMachine fake;
  const tools::Machine machine = fake.read();
  CHECK(machine.processor == "Fast Processor 9");
  CHECK(machine.system == "Fine Linux 3");
  CHECK(machine.memory == int64_t{16000000} << 10);
  CHECK(tools::cpu_list(machine.usable) == "0-3");
  CHECK(machine.cores == std::vector<std::vector<int>>{{0, 1}, {2, 3}});
  CHECK(machine.near == std::vector<std::vector<int>>{{0, 1}, {2, 3}});
  CHECK(machine.nodes == std::vector<std::vector<int>>{{0, 1, 2, 3}});
  CHECK_FALSE(machine.group_cpus);
  CHECK(fake.problems().empty());
  CHECK(tools::cpu_list({0, 1, 4, 6, 7}) == "0-1,4,6-7");

  // The least limit of all groups counts.
  fake.write("sys/fs/cgroup/group/cpu.max", "150000 100000\n");
  fake.write("sys/fs/cgroup/group/inner/cpu.max", "max 100000\n");
  fake.write("sys/fs/cgroup/group/inner/memory.max", "500000000\n");
  CHECK(fake.read().group_cpus == 1.5);
  CHECK(contains(fake.problems(), "allows the time of 1.5 processors, and 4 threads run kernels"));
  CHECK(contains(fake.problems(), "give --threads 1"));
  CHECK(contains(fake.problems(), "allows 0.50 GB of memory"));
  fake.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");  // cgroup 1
  fake.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(fake.read().group_cpus == 0.5);
}

TEST_CASE("doctor knows the limits of cgroup 1", "[tools]") {
  const FakeMachine fake;
  fake.write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
  const std::string cpu = "sys/fs/cgroup/cpu/", memory = "sys/fs/cgroup/memory/";
  fake.write(cpu + "cpu.cfs_quota_us", "-1\n");
  fake.write(cpu + "cpu.cfs_period_us", "100000\n");
  fake.write(memory + "memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(fake.read().group_cpus);
  CHECK_FALSE(fake.read().group_memory);
  CHECK(fake.problems().empty());
  fake.write(cpu + "docker/abc/cpu.cfs_quota_us", "200000\n");
  fake.write(cpu + "docker/abc/cpu.cfs_period_us", "100000\n");
  fake.write(memory + "docker/memory.limit_in_bytes", "600000000\n");
  fake.write(memory + "docker/memory.usage_in_bytes", "1000\n");
  fake.write(memory + "docker/abc/memory.limit_in_bytes", "800000000\n");
  CHECK(fake.read().group_cpus == 2);
  CHECK(fake.read().group_memory == 600000000);
  CHECK(fake.read().group_memory_used == 1000);
  CHECK(contains(fake.problems(), "give --threads 2, or raise the quota (cpu.cfs_quota_us)"));
  CHECK(contains(fake.problems(),
                 "allows 0.60 GB of memory, and a compilation may need 1 GB: raise memory.limit_in_bytes"));
  // In a container, the top of the hierarchy is the container's group.
  fake.write(cpu + "cpu.cfs_quota_us", "100000\n");
  CHECK(fake.read().group_cpus == 1);
}
