#include "codegen/bisect.h"

#include <algorithm>
#include <tuple>

#include "codegen/bytecode.h"
#include "codegen/interpret.h"
#include "codegen/shipped.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "vm/error.h"

namespace relaxc {

namespace {

// Returns an n in (0, count] for which `is_wrong` holds, but not for n - 1. It must hold for `count` and not for 0.
template <class IsWrong>
size_t first_wrong(size_t count, const IsWrong& is_wrong) {
  size_t right = 0, wrong = count;
  while (wrong - right > 1) {
    size_t middle = right + (wrong - right) / 2;
    (is_wrong(middle) ? wrong : right) = middle;
  }
  return wrong;
}

constexpr std::string_view kRequired[] = {"spread_tuples", "legalize", "destination_passing"};  // by bytecode

using Names = std::vector<std::string>;
Names joined_names(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Interpreting a program takes some 1000 times as long as its machine code. So a program is interpreted only while it
// is under suspicion, and the others run as machine code.
class Bisection {
 public:
  Bisection(const IRModule& module, std::span<const Pass* const> passes, const CompileSettings& settings,
            const ResultCheck& check, const std::function<void(const std::string&)>& report)
      : passes_(passes), settings_(settings), check_(check), report_(report), context_(pass_context(settings)) {
    for (const std::string& path : tables_of(settings).libraries())
      libraries_.push_back(vm::UserLibrary::open(path, vm::UserLibrary::Table::kOptional));
    // The passes that the compiler always runs first are not suspects: the reference run needs them, too.
    IRModule entries = run_pass(*find_pass("gradient"), module, context_);
    entries = run_pass(*find_pass("wrap_programs"), std::move(entries), context_);
    after_.push_back(run_pass(*find_pass("lambda_lift"), std::move(entries), context_));
    for (const Pass* pass : passes) after_.push_back(run_pass(*pass, after_.back(), context_));
    first_ = static_cast<size_t>(std::ranges::find_if(passes, is_over_programs) - passes.begin());
  }

  std::optional<Culprit> run() {
    if (std::string difference = interpreted(0); !difference.empty())
      fail({}, "the results differ before the first pass, so no pass is to blame: {}", difference);
    IRModule lowered = prepared(after_.back());
    if (auto machine = try_compile(lowered)) {
      if (difference_of("all programs as machine code", lowered, machine, {}).empty()) return std::nullopt;
      if (auto culprit = in_program(lowered, machine)) return culprit;
    } else if (interpreted(passes_.size()).empty()) {
      return std::nullopt;
    }
    return in_pass();
  }

 private:
  static bool is_over_programs(const Pass* pass) { return pass->on_program != nullptr; }
  static bool is_over_modules(const Pass* pass) { return !is_over_programs(pass); }
  static bool is_required(const Pass* pass) {
    return is_over_programs(pass) || std::ranges::count(kRequired, pass->name);
  }
  // Runs those of the passes after the first n for which the condition holds.
  IRModule completed(size_t n, bool (*which)(const Pass*)) {
    IRModule module = after_[n];
    for (const Pass* pass : passes_.subspan(n)) {
      if (which(pass)) module = run_pass(*pass, module, context_);
    }
    return module;
  }
  // Runs what bytecode needs, which changes nothing where it has run.
  IRModule prepared(IRModule module) {
    for (std::string_view name : kRequired) module = run_pass(*find_pass(name), std::move(module), context_);
    return module;
  }

  // ---- Runs

  // Returns what `run` returns, or the text of its error.
  static std::string error_or(const std::function<std::string()>& run) {
    try {
      return run();
    } catch (const RuntimeError& error) {
      return error.what();
    } catch (const CompileError& error) {
      return error.what();
    }
  }
  using Machine = std::shared_ptr<const vm::KernelLibrary>;
  // Returns null for a module that is not lowered.
  Machine try_compile(const IRModule& lowered) const {
    const codegen::Backend& backend = codegen::backend_of(context_.target);
    const codegen::KernelMap kernels = programs_of(lowered);
    try {
      codegen::KernelObjects objects = backend.compile(kernels, context_.target, settings_);
      codegen::link_functions(objects, codegen::called_functions(kernels, context_.target), settings_.linked);
      return codegen::load_connected(objects, libraries_);
    } catch (const CompileError&) {
      return nullptr;
    }
  }
  // Runs the module with these programs in the interpreter (all, without machine code), and reports how it went. In a
  // mixed run the interpreter does not look for unwritten elements, since it does not see the stores of machine code.
  std::string difference_of(const std::string& what, const IRModule& module, const Machine& machine,
                            const Names& interpreted) {
    last_.reset();
    std::string difference = error_or([&] {
      IRModule runnable = prepared(module), some = runnable;
      if (machine) {
        std::erase_if(some.functions, [&](const auto& entry) {
          return entry.second.template is<PrimFunc>() && !std::ranges::count(interpreted, entry.first);
        });
      }
      codegen::LinkedFunctions linked = codegen::load_linked(runnable, settings_.linked, context_.target);
      vm::Executable executable = codegen::lower_to_bytecode(runnable);
      vm::UserLibraries libraries = libraries_;
      std::ranges::move(codegen::shipped_libraries(executable, libraries), std::back_inserter(libraries));
      LoadOptions options;
      linked.libraries = libraries;
      linked.add_to(options.registry);
      vm::add_libraries(libraries, options.registry);
      auto slow = std::make_shared<codegen::InterpretedKernels>(some, InterpretOptions{.check_unwritten = !machine},
                                                                std::move(linked));
      if (!machine) options.watcher = slow;
      auto find = [machine, slow](const std::string& symbol) -> vm::Kernel {
        vm::Kernel kernel = slow->find(symbol);
        return kernel || !machine ? kernel : vm::Kernel(machine->find(symbol));
      };
      using Owned = std::tuple<Machine, decltype(slow), vm::UserLibraries>;
      auto owned = std::make_shared<Owned>(machine, slow, std::move(libraries));
      last_ = {std::move(runnable), Program::from(std::move(executable), find, owned, std::move(options))};
      return check_(last_->program);
    });
    if (report_) report_(fmt::format("{}: {}", what, difference.empty() ? "right" : "wrong"));
    return difference;
  }
  // Runs the module after the first n passes in the interpreter.
  std::string interpreted(size_t n) {
    std::string what = fmt::format("{} of {} passes, all programs interpreted", n, passes_.size());
    return difference_of(what, after_[n], nullptr, {});
  }
  // Runs it as machine code instead, after those of the other passes that this needs.
  std::string compiled(size_t n) {
    return error_or([&]() -> std::string {
      IRModule module = completed(n, is_required);
      Machine machine = try_compile(module);
      std::string what = fmt::format("{} of {} passes, and those that code needs", n, passes_.size());
      return machine ? difference_of(what, module, machine, {}) : "no machine code";
    });
  }

  // ---- Searches

  // Searches the passes over programs, and code generation. Returns nullopt where the results are wrong without them.
  std::optional<Culprit> in_program(const IRModule& lowered, const Machine& machine) {
    IRModule plain = prepared(completed(first_, is_over_modules));
    Names names;
    for (const auto& [name, program] : programs_of(lowered)) {
      if (plain.find(name)) names.push_back(name);
    }
    auto with = [&](IRModule module, const Names& safe) {
      for (const std::string& name : safe) module.functions.insert_or_assign(name, plain.functions.at(name));
      return module;
    };
    auto is_right = [&](const Names& safe) {
      std::string what =
          fmt::format("{} of {} programs unscheduled and interpreted", safe.size(), programs_of(lowered).size());
      return difference_of(what, with(lowered, safe), machine, safe).empty();
    };
    if (!is_right(names)) return std::nullopt;
    Names safe;  // with these unscheduled, the results are wrong; with the suspects, too, they are right
    while (names.size() > 1) {
      Names rest(names.begin() + static_cast<int64_t>(names.size() / 2), names.end());
      names.resize(names.size() / 2);
      if (is_right(joined_names(safe, names))) continue;
      if (!is_right(joined_names(safe, rest))) safe = joined_names(std::move(safe), names);
      names = std::move(rest);
    }
    const std::string& guilty = names.at(0);
    auto difference = [&](size_t n) {
      IRModule module = with(lowered, safe);
      module.functions.insert_or_assign(guilty, prepared(completed(n, is_over_modules)).functions.at(guilty));
      std::string what = fmt::format("'{}' after {} of {} passes", guilty, n, passes_.size());
      return difference_of(what, module, machine, joined_names(safe, {guilty}));
    };
    const auto unscheduled = cast<PrimFunc>(plain.functions.at(guilty));
    if (difference(passes_.size()).empty()) {
      Culprit culprit{.pass = kCodeGeneration, .program = guilty, .right = std::move(last_)};
      culprit.difference = difference_of("machine code", with(lowered, safe), machine, safe);
      culprit.wrong = std::move(last_);
      culprit.unscheduled = unscheduled;
      return culprit;
    }
    size_t n = first_ + first_wrong(passes_.size() - first_, [&](size_t n) { return !difference(first_ + n).empty(); });
    Culprit culprit = culprit_of(n, guilty, difference);
    culprit.unscheduled = unscheduled;
    return culprit;
  }

  // Searches all passes; for those over single programs it finds the program, too.
  Culprit in_pass() {
    bool runs_compiled = compiled(0).empty() && !compiled(first_).empty();
    auto difference = [&](size_t n) { return runs_compiled ? compiled(n) : interpreted(n); };
    size_t n = first_wrong(runs_compiled ? first_ : passes_.size(), [&](size_t n) { return !difference(n).empty(); });
    if (is_over_modules(passes_[n - 1])) return culprit_of(n, "", difference);
    Names names = changed_programs(after_[n - 1], after_[n]);
    auto with_first = [&](size_t count) {
      IRModule mixed = after_[n - 1];
      for (size_t i = 0; i < count; ++i) mixed.functions.insert_or_assign(names[i], after_[n].functions.at(names[i]));
      return !difference_of(fmt::format("{} of {} programs", count, names.size()), mixed, nullptr, {}).empty();
    };
    return culprit_of(n, names[first_wrong(names.size(), with_first) - 1], difference);
  }

  // `difference` says how the results differ after so many passes.
  Culprit culprit_of(size_t n, const std::string& program, const std::function<std::string(size_t)>& difference) {
    const Pass& pass = *passes_[n - 1];
    Culprit culprit{.pass = pass.name, .program = program};
    if (difference(n - 1).empty()) culprit.right = std::move(last_);
    culprit.difference = difference(n);
    culprit.wrong = std::move(last_);
    culprit.reproducer = write_reproducer(settings_.runner.dump_dir, pass, after_[n - 1], program);
    return culprit;
  }

  std::span<const Pass* const> passes_;
  const CompileSettings& settings_;
  vm::UserLibraries libraries_ = settings_.libraries;
  const ResultCheck& check_;
  const std::function<void(const std::string&)>& report_;
  PassContext context_;
  std::vector<IRModule> after_;    // after the first n passes
  size_t first_;                   // the number of passes before the first over programs
  std::optional<RanModule> last_;  // of the last run, where it began
};

}  // namespace

std::optional<Culprit> find_culprit(const IRModule& module, std::span<const Pass* const> passes,
                                    const CompileSettings& settings, const ResultCheck& check,
                                    const std::function<void(const std::string&)>& report) {
  return Bisection(module, passes, settings, check, report).run();
}

}  // namespace relaxc
