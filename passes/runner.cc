#include "passes/runner.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "ir/sequence.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"
#include "ir/visit.h"
#include "passes/stored_programs.h"
#include "passes/tables.h"
#include "support/guard.h"
#include "support/joined.h"
#include "support/parallel.h"
#include "support/recently_used.h"
#include "support/temporary_folder.h"
#include "vm/error.h"
#include "vm/output_file.h"

namespace relaxc {

namespace {

using Clock = std::chrono::steady_clock;

bool changed(const IRModule& a, const IRModule& b) {
  return !std::ranges::equal(a.functions, b.functions, [](const auto& x, const auto& y) {
    return x.first == y.first && same_node(x.second, y.second);
  });
}

// Returns a module of one tensor program, or the whole module where the name is empty.
IRModule only_program(const IRModule& module, const std::string& program) {
  return program.empty() ? module : IRModule{{{program, module.prim_func(program)}}, {}, {}};
}

// Returns "pass 'fuse'", and for that of a plug-in which one.
std::string name_of(const Pass& pass, const PassContext& context) {
  std::string origin = tables_of(context).origin(Tables::Kind::kPass, pass.name);
  return fmt::format("pass '{}'{}{}", pass.name, origin.empty() ? "" : " of ", origin);
}

std::string advice(const RunnerOptions& options, const Pass& pass, const PassContext& context, const IRModule& before,
                   const std::string& program) {
  try {
    std::string path = write_reproducer(options.dump_dir, pass, before, program);
    return "reproduce with: " + reproducing_command(path, pass.name, context, options);
  } catch (const std::exception&) {
    return "no reproducer could be written";
  }
}

// A program before and after passes, kept for further compilations in this process.
struct LoweredProgram {
  PrimFuncRef before, after;  // `before` has no public name
};
RecentlyUsed<LoweredProgram>& lowered_programs() {
  constexpr size_t kMostPrograms = 512;
  static RecentlyUsed<LoweredProgram> programs(kMostPrograms);
  return programs;
}

using Passes = std::span<const Pass* const>;

// The programs that groups of passes work on, one group after the other: a stage of the compilation.
struct ProgramRounds {
  StageProgress progress;
  size_t left;  // groups, with the one that runs
};

// Runs one pass over the module, or several over programs: each program goes through all of them at once, while it is
// in the cache. An InternalError names the reproducer, unless `options` is null.
class GroupRun {
 public:
  GroupRun(Passes passes, PassContext& context, const RunnerOptions* options, ProgramRounds& rounds)
      : passes_(passes), context_(context), options_(options), rounds_(rounds), milliseconds_(passes.size()) {}

  IRModule operator()(IRModule module) {
    if (passes_[0]->on_program) return on_programs(std::move(module));
    return with_reproducer(*passes_[0], module, "", milliseconds_[0],
                           [&] { return passes_[0]->on_module(module, context_); });
  }
  // Returns the time of each pass.
  const std::vector<double>& milliseconds() const { return milliseconds_; }

 private:
  IRModule on_programs(IRModule module) {
    for (const Pass* pass : passes_) {
      if (pass->expects) pass->expects(module, context_);
    }
    const ProgramMap before = programs_of(module);
    std::map<std::string, std::string> equal;
    ProgramKey key = keys_in(context_, joined(passes_, &Pass::name));
    // With check_bounds equal programs differ: the tests of indices name lines. `scheduled` hears of each.
    if (!context_.check_bounds && !context_.scheduled) equal = equal_public_programs(before, key);
    if (may_reuse()) {
      key_ = key;
      if (may_store()) circumstances_ = circumstances_of(context_, joined(passes_, &Pass::name));
    }
    std::vector<std::pair<const std::string, Expr>*> programs;
    for (auto& entry : module.functions) {
      if (entry.second.is<PrimFunc>() && !equal.contains(entry.first)) programs.push_back(&entry);
    }
    std::vector<std::vector<double>> times(programs.size(), milliseconds_);
    const std::vector<FunctionRef> callers = graph_functions(module);
    rounds_.progress.begin_round(programs.size(), rounds_.left--);
    auto work = [&](size_t i) {
      StageProgress::Piece piece(rounds_.progress, programs[i]->first);
      try {
        on_program(programs[i]->first, programs[i]->second, times[i]);
      } catch (const CompileError& error) {
        throw at_its_call(error, programs[i]->first, callers);
      }
    };
    // The user's rules and reports need not be thread-safe.
    int jobs = context_.schedules.empty() && !context_.scheduled ? context_.jobs : 1;
    for_each_parallel(programs.size(), jobs, [&]() -> IndexedWork { return work; });
    for (const auto& [name, first] : equal) {
      PrimFuncRef result = module.prim_func(first);
      if (!same_node(result, before.at(first)))
        module.functions.insert_or_assign(name, with_symbol_of(result, before.at(name)));
    }
    for (const std::vector<double>& of_program : times)
      std::ranges::transform(milliseconds_, of_program, milliseconds_.begin(), std::plus());
    return module;
  }

  static std::vector<FunctionRef> graph_functions(const IRModule& module) {
    std::vector<FunctionRef> result;
    for (const auto& [name, function] : module.functions) {
      if (function.is<Function>()) result.push_back(cast<Function>(function));
    }
    return result;
  }
  // Errors of a program that have no place, as a pass made it, get that of the program's call: the model's node.
  static CompileError at_its_call(const CompileError& error, const std::string& name,
                                  const std::vector<FunctionRef>& callers) {
    Span place;
    for (const FunctionRef& caller : callers) {
      for_each_binding(caller->body, [&](const Binding& binding) {
        walk(binding.value, [&](const GlobalVar& callee) {
          if (place || callee.name != name) return;
          place = span_of(binding);
        });
      });
    }
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      if (!diagnostic.span) diagnostic.span = place;
    }
    return CompileError(std::move(diagnostics));
  }

  // The rules and callbacks of a user, and rows that a host program added, may do anything for each program.
  bool may_reuse() const {
    if (!tables_of(context_).identity()) return false;
    return context_.reuse && context_.schedules.empty() && !context_.report && !context_.decided &&
           !context_.scheduled && !context_.check_bounds;
  }

  // Passes that are to be seen at work run.
  bool may_store() const {
    const bool is_seen = options_ && (options_->time_passes || !options_->dump_dir.empty() ||
                                      options_->verify_each == VerifyEach::kPass);
    return context_.store && !is_seen;
  }

  void on_program(const std::string& name, Expr& function, std::vector<double>& times) const {
    const PrimFuncRef before = cast<PrimFunc>(function);
    const std::optional<uint64_t> key = key_ ? key_(name, before) : std::nullopt;
    if (!key) {
      function = passed(name, before, times);
      return;
    }
    const std::optional<LoweredProgram> known = lowered_programs().find(*key);
    if (known && structural_equal(known->before, without_symbol(before))) {
      function = with_symbol_of(known->after, before);
      return;
    }
    const PrimFuncRef after = passed_or_stored(name, before, times);
    if (!same_node(before, after)) lowered_programs().add(*key, {without_symbol(before), after});
    function = after;
  }
  PrimFuncRef passed(const std::string& name, PrimFuncRef program, std::vector<double>& times) const {
    for (size_t i = 0; i < passes_.size(); ++i)
      program = with_reproducer(*passes_[i], program, name, times[i],
                                [&] { return passes_[i]->on_program(name, program, context_); });
    return program;
  }
  PrimFuncRef passed_or_stored(const std::string& name, const PrimFuncRef& program, std::vector<double>& times) const {
    ResultStore* store = may_store() ? context_.store.get() : nullptr;
    const std::optional<std::string> key = store ? key_in_store(circumstances_, program) : std::nullopt;
    if (!key) return passed(name, program, times);
    if (const auto stored = find_program(*store, *key, context_.ops)) return with_symbol_of(*stored, program);
    PrimFuncRef result = passed(name, program, times);
    keep_program(*store, *key, result);
    return result;
  }

  static IRModule module_of(const IRModule& module, const std::string&) { return module; }
  static IRModule module_of(const PrimFuncRef& program, const std::string& name) { return {{{name, program}}, {}, {}}; }
  // A pass of a plug-in may throw anything. Its errors of the user's input say whose they are.
  template <class Work>
  auto of_plugin(const Pass& pass, const Work& work) const -> decltype(work()) {
    if (tables_of(context_).origin(Tables::Kind::kPass, pass.name).empty()) return work();
    try {
      return work();
    } catch (const CompileError& error) {
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      diagnostics.back().notes.push_back("this is an error of " + name_of(pass, context_));
      throw CompileError(std::move(diagnostics));
    } catch (const RuntimeError&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      throw InternalError(fmt::format("internal error: {}", error.what()));
    } catch (...) {
      throw InternalError("internal error: an exception that is not a std::exception");
    }
  }
  template <class Before, class Work>
  Before with_reproducer(const Pass& pass, const Before& before, const std::string& program, double& milliseconds,
                         const Work& work) const {
    auto where = [&] {
      return fmt::format("{}{}", name_of(pass, context_), program.empty() ? "" : fmt::format(" on '{}'", program));
    };
    Clock::time_point start = Clock::now();
    try {
      Before result = guarded(where, [&] { return of_plugin(pass, work); });
      milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      return result;
    } catch (const InternalError& error) {
      if (!options_) throw;
      std::string text = advice(*options_, pass, context_, module_of(before, program), program);
      throw InternalError(fmt::format("{}\n  {}", error.what(), text));
    }
  }

  Passes passes_;
  PassContext& context_;
  const RunnerOptions* options_;
  ProgramRounds& rounds_;
  std::vector<double> milliseconds_;
  ProgramKey key_;             // null where results are not reused
  std::string circumstances_;  // of keys in the store of the settings
};

class Runner {
 public:
  Runner(Passes passes, PassContext& context, const RunnerOptions& options)
      : passes_(passes), context_(context), options_(options) {
    size_t limit = options.bisect_limit >= 0 ? static_cast<size_t>(options.bisect_limit) : passes.size();
    end_ = std::min(passes.size(), limit);
    if (!options.stop_after.empty()) end_ = std::min(end_, *ends_of(options.stop_after).begin());
    for (const std::string& name : options.print_after) printed_.merge(ends_of(name));
  }

  IRModule run(IRModule module) {
    begin(module);
    const size_t all = groups([](const Pass&) { return true; });
    const size_t on_programs = groups([](const Pass& pass) { return bool(pass.on_program); });
    StageProgress progress(context_.progress, CompileStage::kPasses, all);
    ProgramRounds rounds{{context_.progress, CompileStage::kPrograms, 0}, on_programs};
    for (size_t i = 0, end; i < end_; i = end) {
      end = end_of_group(i);
      StageProgress::Piece piece(progress, passes_[i]->name);
      GroupRun run(passes_.subspan(i, end - i), context_, &options_, rounds);
      IRModule before = std::exchange(module, run(module));
      times_.insert(times_.end(), run.milliseconds().begin(), run.milliseconds().end());
      bool goes_on = end < end_ && passes_[end - 1]->on_program && passes_[end]->on_program;
      if (!goes_on || options_.verify_each == VerifyEach::kPass) verify_until(module, end);
      show(before, module, end - 1);
    }
    rounds.progress.finish();
    if (options_.time_passes) print_times();
    return module;
  }

 private:
  // Returns the numbers of passes after which a pass or pipeline of that name, which may occur again, has run.
  std::set<size_t> ends_of(const std::string& name) const {
    std::vector<const Pass*> wanted;
    if (name != "all") wanted = parse_passes(name, context_);
    size_t size = std::max<size_t>(wanted.size(), 1);
    std::set<size_t> ends;
    for (size_t end = size; end <= passes_.size(); ++end) {
      if (name == "all" || std::ranges::equal(passes_.subspan(end - size, size), wanted)) ends.insert(end);
    }
    if (ends.empty()) fail_usage({}, "pass '{}' is not among those that run; --passes says which do", name);
    return ends;
  }

  // Passes over programs run together unless the module between them is shown or verified.
  size_t end_of_group(size_t begin) const {
    size_t end = begin + 1;
    bool is_shown_each = !options_.dump_dir.empty() || options_.verify_each == VerifyEach::kPass;
    if (is_shown_each || !passes_[begin]->on_program) return end;
    while (end < end_ && passes_[end]->on_program && !printed_.contains(end)) ++end;
    return end;
  }

  // Returns the number of groups of passes that run, of which `counts` is true for the first pass.
  template <class Counts>
  size_t groups(const Counts& counts) const {
    size_t count = 0;
    for (size_t i = 0; i < end_; i = end_of_group(i)) count += counts(*passes_[i]);
    return count;
  }

  void begin(const IRModule& module) {
    verified_ = module;
    if (options_.verify_each != VerifyEach::kNever) {
      Diagnostics diagnostics;
      verify(module, context_.ops, diagnostics);
      if (!diagnostics.has_errors()) verify_ranges(module, Ranges::kAxes, diagnostics);
      diagnostics.throw_if_errors();
    }
    if (options_.dump_dir.empty()) return;
    vm::make_folder(options_.dump_dir);
    vm::write_file(options_.dump_dir + "/00-input.py", print_module(module));
  }

  std::string problem_of(const IRModule& module, const IRModule& known) const {
    Diagnostics diagnostics;
    verify(module, context_.ops, diagnostics, &known);
    return diagnostics.has_errors() ? CompileError(diagnostics.all()).what() : "";
  }

  // Verifies the module that the first `count` passes made, and on failure the results since the last verification.
  void verify_until(const IRModule& module, size_t count) {
    size_t from = std::exchange(num_verified_, count);
    IRModule before = std::exchange(verified_, module);
    if (options_.verify_each == VerifyEach::kNever || !changed(before, module)) return;
    std::string problem = problem_of(module, before);
    PassContext afresh = context_;
    afresh.reuse = false;
    afresh.progress = nullptr;
    for (size_t i = from; !problem.empty() && i < count; ++i) {
      IRModule after = from + 1 == count ? module : run_pass(*passes_[i], before, afresh);
      std::string found = problem_of(after, before);
      if (!found.empty()) fail_invalid(*passes_[i], before, after, found);
      before = std::move(after);
    }
    if (problem.empty()) return;
    throw InternalError(fmt::format(
        "internal error: the passes up to '{}' left an invalid module, and a second run of them does not\n{}",
        passes_[count - 1]->name, problem));
  }

  [[noreturn]] void fail_invalid(const Pass& pass, const IRModule& before, const IRModule& after,
                                 const std::string& problem) const {
    std::vector<std::string> names;
    if (pass.on_program) names = changed_programs(before, after);
    auto found = std::ranges::find_if(
        names, [&](const std::string& name) { return !problem_of(only_program(after, name), {}).empty(); });
    std::string culprit = found == names.end() ? "" : *found;
    std::string of_program = culprit.empty() ? "" : fmt::format(" in '{}'", culprit);
    throw InternalError(fmt::format("internal error: {} left an invalid module{}\n{}\n  {}", name_of(pass, context_),
                                    of_program, problem, advice(options_, pass, context_, before, culprit)));
  }

  void show(const IRModule& before, const IRModule& module, size_t i) const {
    const Pass& pass = *passes_[i];
    if (printed_.contains(i + 1))
      vm::print_to(stderr, fmt::format("# after {}\n{}\n", pass.name, print_module(module)));
    if (options_.dump_dir.empty() || !changed(before, module)) return;
    IRModule shown = module;
    if (pass.on_program) {
      std::vector<std::string> names = changed_programs(before, module);
      std::erase_if(shown.functions, [&](const auto& entry) { return !std::ranges::count(names, entry.first); });
    }
    vm::write_file(fmt::format("{}/{:02}-{}.py", options_.dump_dir, i + 1, pass.name), print_module(shown));
  }

  void print_times() const {
    auto print = [&](double time, const char* name) {
      vm::print_to(stderr, fmt::format("{:9.2f} ms  {}\n", time, name));
    };
    for (size_t i = 0; i < times_.size(); ++i) print(times_[i], passes_[i]->name.c_str());
    print(std::accumulate(times_.begin(), times_.end(), 0.0), "all passes");
  }

  Passes passes_;
  PassContext& context_;
  const RunnerOptions& options_;
  size_t end_ = 0;            // the number of passes that run
  std::set<size_t> printed_;  // the module is printed after that many passes
  std::vector<double> times_;
  IRModule verified_;        // the module as it was verified last
  size_t num_verified_ = 0;  // the passes that had run by then
};

}  // namespace

IRModule run_passes(IRModule module, std::span<const Pass* const> passes, PassContext& context,
                    const RunnerOptions& options) {
  return Runner(passes, context, options).run(std::move(module));
}

IRModule run_pass(const Pass& pass, IRModule module, PassContext& context) {
  const Pass* passes[] = {&pass};
  ProgramRounds rounds{{context.progress, CompileStage::kPrograms, 0}, 1};
  return GroupRun(passes, context, nullptr, rounds)(std::move(module));
}

std::vector<std::string> changed_programs(const IRModule& before, const IRModule& after) {
  std::vector<std::string> names;
  for (const auto& [name, function] : after.functions) {
    const Expr* old = before.find(name);
    if (function.is<PrimFunc>() && !(old && same_node(*old, function))) names.push_back(name);
  }
  return names;
}

std::string reproducing_command(const std::string& path, const std::string& pass, const PassSettings& settings,
                                const RunnerOptions& options) {
  return fmt::format("relaxc opt {} --passes={}{}{}", path, pass, tables_of(settings).flags(), options.flags);
}

std::string write_reproducer(const std::string& folder, const Pass& pass, const IRModule& before,
                             const std::string& program) {
  if (!folder.empty()) vm::make_folder(folder);
  const std::string parent = folder.empty() ? make_temporary_folder("relaxc") : folder;
  if (parent.empty()) throw_runtime_error("cannot make a folder for temporary files: {}", std::strerror(errno));
  std::string path = fmt::format("{}/relaxc-{}{}{}.test", parent, pass.name, program.empty() ? "" : "-", program);
  PrintOptions print{.constants_file = path.substr(0, path.rfind('.')) + ".safetensors"};  // if there are large ones
  vm::write_file(path,
                 fmt::format("# test: passes={}\n{}", pass.name, print_module(only_program(before, program), print)));
  return path;
}

}  // namespace relaxc
