#include "passes/runner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "support/guard.h"
#include "vm/output_file.h"

namespace relaxc {

namespace {

// A text test that runs the pass on the module it failed on.
std::string write_reproducer(const RunnerOptions& options, const IRModule& before, const Pass& pass) {
  std::string path;
  try {
    std::string dir = options.dump_dir.empty() ? std::filesystem::temp_directory_path().string() : options.dump_dir;
    path = fmt::format("{}/relaxc-{}.test", dir, pass.name);
    vm::write_file(path, fmt::format("# test: passes={}\n{}", pass.name, print_module(before)));
  } catch (const std::exception&) {
    return "no reproducer could be written";
  }
  return fmt::format("reproduce with: relaxc opt {} --passes={}", path, pass.name);
}

bool changed(const IRModule& a, const IRModule& b) {
  if (a.functions.size() != b.functions.size()) return true;
  return !std::equal(a.functions.begin(), a.functions.end(), b.functions.begin(),
                     [](const auto& x, const auto& y) { return x.first == y.first && same_node(x.second, y.second); });
}

}  // namespace

IRModule run_passes(IRModule module, std::span<const Pass* const> passes, PassContext& context,
                    const RunnerOptions& options) {
  std::FILE* output = options.output ? options.output : stderr;
  if (options.verify_each) {
    Diagnostics diagnostics;
    verify(module, context.ops, diagnostics);
    if (!diagnostics.has_errors()) verify_ranges(module, Ranges::kAxes, diagnostics);
    diagnostics.throw_if_errors();
  }
  if (!options.dump_dir.empty()) {
    vm::make_folder(options.dump_dir);
    vm::write_file(options.dump_dir + "/00-input.py", print_module(module));
  }
  std::vector<std::pair<const Pass*, double>> times;
  int count = 0;
  for (const Pass* pass : passes) {
    if (options.bisect_limit >= 0 && count >= options.bisect_limit) break;
    ++count;
    IRModule before = module;
    auto start = std::chrono::steady_clock::now();
    try {
      module = guarded([&] { return fmt::format("pass '{}'", pass->name); },
                       [&] { return pass->run(std::move(module), context); });
    } catch (const InternalError& error) {
      throw InternalError(fmt::format("{}\n  {}", error.what(), write_reproducer(options, before, *pass)));
    }
    times.emplace_back(pass,
                       std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (options.verify_each && changed(before, module)) {  // `before` was verified
      Diagnostics diagnostics;
      verify(module, context.ops, diagnostics);
      if (diagnostics.has_errors()) {
        throw InternalError(fmt::format("internal error: pass '{}' left an invalid module\n{}\n  {}", pass->name,
                                        CompileError(diagnostics.all()).what(),
                                        write_reproducer(options, before, *pass)));
      }
    }
    bool prints = std::any_of(options.print_after.begin(), options.print_after.end(),
                              [&](const std::string& name) { return name == "all" || name == pass->name; });
    if (prints) vm::print_to(output, fmt::format("# after {}\n{}\n", pass->name, print_module(module)));
    if (!options.dump_dir.empty() && changed(before, module)) {
      vm::write_file(fmt::format("{}/{:02}-{}.py", options.dump_dir, count, pass->name), print_module(module));
    }
    if (options.stop_after == pass->name) break;
  }
  if (options.time_passes) {
    double total = 0;
    for (const auto& [pass, ms] : times) {
      vm::print_to(output, fmt::format("{:9.2f} ms  {}\n", ms, pass->name));
      total += ms;
    }
    vm::print_to(output, fmt::format("{:9.2f} ms  all passes\n", total));
  }
  return module;
}

}  // namespace relaxc
