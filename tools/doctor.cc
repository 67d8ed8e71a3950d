// relaxc doctor: what a report of a bug needs to say about the machine and this installation, and what is wrong there.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "codegen/target.h"
#include "frontend/onnx/import.h"
#include "ir/text/parser.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"
#include "support/version.h"
#include "tools/limits.h"
#include "tools/machine.h"
#include "tools/report.h"
#include "tools/tool.h"
#include "vm/cpu.h"

namespace relaxc::tools {

namespace {

struct DoctorOptions {
  bool json = false, quick = false;
  CacheOptions cache;
};

// Everything that relaxc and its libraries read; no other variable is shown.
constexpr const char* kVariables[] = {"RELAXC_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR", "NO_COLOR", "TERM"};
// Instructions that kernels gain from, as LLVM calls them.
constexpr std::string_view kTellingFeatures[] = {"avx2",       "fma",        "f16c",       "avxvnni",  "avx512f",
                                                 "avx512vnni", "avx512bf16", "avx512fp16", "amx-int8", "amx-bf16",
                                                 "dotprod",    "fullfp16",   "bf16",       "i8mm",     "sve"};

// Puts ~ in the place of the home folder, whose name is often the user's.
std::string without_home(std::string text) {
  const char* home = std::getenv("HOME");
  const std::string_view folder = home ? home : "";
  if (folder.size() < 2) return text;
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at + 1)) {
    const size_t end = at + folder.size();
    if (end == text.size() || text[end] == '/' || text[end] == '\'' || text[end] == ':')
      text.replace(at, folder.size(), "~");
  }
  return text;
}

std::string bytes_text(double bytes) {
  constexpr std::pair<double, const char*> kUnits[] = {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes >= unit) return fmt::format("{:.4g} {}", bytes / unit, name);
  }
  return fmt::format("{} bytes", bytes);
}
std::string limit_text(const std::optional<int64_t>& bytes) {
  return bytes ? bytes_text(static_cast<double>(*bytes)) : "unlimited";
}

Report versions() {
  std::vector<std::string> opsets;
  for (const auto& [domain, newest] : newest_onnx_opsets())
    opsets.push_back(fmt::format("{} {}", domain.empty() ? "ai.onnx" : domain, newest));
  return {{"relaxc", version_text()},
          {"llvm", codegen::llvm_version()},
          {"onnx_opsets", joined(opsets)},
          {"compiler", __VERSION__}};
}

// Returns the highest level of x86-64 that the processor has; "" on another architecture.
std::string level_of_host(const Target& host) {
  if (!host.triple.starts_with("x86_64")) return {};
  std::string level;
  for (const char* name : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    const std::vector<std::string> needed = codegen::loadable_features(codegen::parse_target(name));
    if (std::ranges::all_of(needed, [](const std::string& feature) { return vm::host_has_feature(feature); }))
      level = name;
  }
  return level;
}

std::string cache_text(const Cache& cache) {
  std::string text = bytes_text(static_cast<double>(cache.bytes));
  return cache.shared_by > 1 ? fmt::format("{}, shared by {} processors", text, cache.shared_by) : text;
}

Report processor(const Machine& machine, const Target& host) {
  std::vector<std::string> features;
  for (std::string_view feature : kTellingFeatures) {
    if (vm::host_has_feature(feature)) features.emplace_back(feature);
  }
  return {{"model", machine.processor},        {"llvm_name", host.cpu},           {"level", level_of_host(host)},
          {"features", joined(features, " ")}, {"vector_bits", host.vector_bits}, {"l1", cache_text(host.l1)},
          {"l2", cache_text(host.l2)},         {"l3", cache_text(host.l3)}};
}

std::string groups_text(const std::vector<std::vector<int>>& groups) { return joined(groups, cpu_list, " | "); }

Report placement(const Machine& machine) {
  return {{"processors",
           fmt::format("{} usable of {} ({})", machine.usable.size(), machine.online.size(), cpu_list(machine.usable))},
          {"cores", fmt::format("{} ({})", machine.cores.size(), groups_text(machine.cores))},
          {"near_by_l3", groups_text(machine.near)},
          {"near_by_memory", groups_text(machine.nodes)},
          {"threads", fmt::format("{}, one for each usable processor", machine.usable.size())}};
}

Report system_of(const Machine& machine) {
  std::string group = "unlimited";
  if (machine.group_memory) {
    group = limit_text(machine.group_memory);
    if (machine.group_memory_used) group += fmt::format(", {} in use", limit_text(machine.group_memory_used));
  }
  return {{"system", machine.system},
          {"kernel", machine.kernel},
          {"c_library", machine.c_library},
          {"memory", fmt::format("{}, {} available", bytes_text(static_cast<double>(machine.memory)),
                                 bytes_text(static_cast<double>(machine.available_memory)))},
          {"ulimit_v", limit_text(machine.address_space)},
          {"ulimit_s", limit_text(machine.stack)},
          {"ulimit_n", machine.open_files ? std::to_string(*machine.open_files) : std::string("unlimited")},
          {"cgroup_memory", group},
          {"cgroup_processors",
           machine.group_cpus ? fmt::format("{:.3g}", *machine.group_cpus) : std::string("unlimited")}};
}

Report measured_speed() {
  const MachineLimits limits = machine_limits(std::make_shared<vm::ThreadPool>(0));
  constexpr double kGiga = 1e9;
  auto speed = [&](ProductKind kind) { return fmt::format("{:.4g} GFLOP/s", limits.rate_of(kind) / kGiga); };
  Report report{{"arithmetic", speed(ProductKind::kFloat32)},
                {"int8", speed(ProductKind::kInt8)},
                {"bfloat16", speed(ProductKind::kBFloat16)}};
  for (const MemoryLevel& level : limits.levels)
    report.set(level.name, fmt::format("{:.4g} GB/s", level.bytes_per_s / kGiga));
  return report;
}

Report cache_report(const CacheOptions& cache, std::vector<std::string>& problems) {
  const char* stated = std::getenv("RELAXC_CACHE");
  if (cache.folder.empty() && stated && !*stated) return {{"state", "off, as RELAXC_CACHE is empty"}};
  const std::string why = why_nothing_is_cached(cache.folder);
  for (const std::string& problem : cache.problems()) problems.push_back(without_home(problem));
  uint64_t bytes = 0;
  const std::vector<CachedArtifact> artifacts = cached_artifacts(cache.folder);
  for (const CachedArtifact& artifact : artifacts) bytes += artifact.bytes;
  Report report{{"folder", without_home(cache.folder)},
                {"state", why.empty() ? "writable" : without_home(why)},
                {"artifacts", fmt::format("{}, {}", artifacts.size(), bytes_text(static_cast<double>(bytes)))}};
  if (const auto free = cache.free_bytes()) report.set("free", bytes_text(static_cast<double>(*free)));
  return report;
}

Report environment() {
  Report report;
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);
    if (value) report.set(name, printable(without_home(value)));
  }
  return report;
}

// Compiles a sum of products and runs it. Returns what is wrong with that, or "".
std::string check_of_kernel() {
  constexpr const char* kText =
      "@I.ir_module\nclass Module:\n    @R.function\n"
      "    def main(x: R.Tensor((3, 40), \"float32\"), w: R.Tensor((40, 2), \"float32\")):\n"
      "        y = R.nn.relu(R.matmul(x, w))\n        return y\n";
  try {
    Diagnostics diagnostics;
    IRModule module = parse_module(kText, "doctor.py", op_table(), diagnostics);
    Tensor x = Tensor::empty({3, 40}, kFloat32), w = Tensor::empty({40, 2}, kFloat32);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i % 7) - 2);
    for (int64_t i = 0; i < w.size(); ++i) w.set_double(i, static_cast<double>(i % 5) - 1.5);
    const Tensor y = Session(compile(std::move(module)).load()).run({x, w}).at(0);
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t column = 0; column < 2; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < 40; ++k) sum += x.as_double(row * 40 + k) * w.as_double(k * 2 + column);
        const double found = y.as_double(row * 2 + column), expected = std::max(sum, 0.0);
        if (found != expected)
          return fmt::format("element [{}, {}] of a product is {}, expected {}", row, column, found, expected);
      }
    }
  } catch (const CompileError& error) {
    return error.what();
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return {};
}

void check_temporary_folder(std::vector<std::string>& problems) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error || access(folder.c_str(), W_OK) != 0)
    problems.push_back(fmt::format("the folder of temporary files, '{}', cannot be written to: TMPDIR names another",
                                   error ? "TMPDIR" : without_home(folder.string())));
}

void check_level(const Target& host, std::vector<std::string>& problems) {
  const std::string level = level_of_host(host);
  if (level.empty() || level >= "x86-64-v3") return;
  problems.push_back(
      fmt::format("the processor has the level {}, without AVX2 and FMA, and kernels take several times "
                  "as long; a virtual machine may hide them: give it the host's processor",
                  level));
}

int examine(const DoctorOptions& options) {
  const Machine machine = read_machine();
  const Target host = codegen::parse_target("host");
  std::vector<std::string> problems = problems_of(machine);
  check_temporary_folder(problems);
  check_level(host, problems);
  Report report{{"versions", versions()},
                {"processor", processor(machine, host)},
                {"placement", placement(machine)},
                {"system", system_of(machine)}};
  if (!options.quick) report.set("speed", measured_speed());
  report.set("cache", cache_report(options.cache, problems));
  report.set("environment", environment());
  const std::string wrong = check_of_kernel();
  if (!wrong.empty())
    problems.push_back(
        fmt::format("a small kernel, compiled for this machine, fails: {}; --target x86-64 makes plainer "
                    "code; please report it",
                    without_home(wrong)));
  report.set("kernel", wrong.empty() ? "a small one compiles, runs and is right" : "fails");
  ReportList list;
  for (const std::string& problem : problems) list.emplace_back(problem);
  if (options.json) {
    report.set("problems", std::move(list));
    print_text(report.json() + "\n");
  } else {
    print_message("{}", report.text());
    for (const std::string& problem : problems) print_message("problem: {}\n", problem);
    if (problems.empty()) print_message("no problem was found\n");
  }
  return problems.empty() ? kRight : kWrong;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", "describe the machine and this installation, for a bug report");
  command->add_flag("--json", options->json, "print it as JSON");
  command->add_flag("--quick", options->quick, "measure nothing");
  command->add_option("--cache", options->cache.folder, "the folder of compiled models")->type_name("DIR");
  command->footer("Example: relaxc doctor > doctor.txt");
  command->callback([options, &exit_code] { exit_code = examine(*options); });
}

}  // namespace relaxc::tools
