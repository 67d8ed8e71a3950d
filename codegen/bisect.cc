#include "codegen/bisect.h"

#include "codegen/bytecode.h"
#include "codegen/interpret.h"
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

class Bisection {
 public:
  Bisection(const CompileSettings& settings, const ResultCheck& check)
      : settings_(settings), check_(check), context_(pass_context(settings)) {}

  std::optional<Culprit> run(const IRModule& module, std::span<const Pass* const> passes) {
    std::vector<IRModule> after{module};
    for (const Pass* pass : passes) after.push_back(run_pass(*pass, after.back(), context_));
    if (std::string difference = run_interpreted(after.front()); !difference.empty())
      fail({}, "the results differ before the first pass, so no pass is to blame: {}", difference);
    std::string difference = run_interpreted(after.back());
    if (difference.empty()) return in_code_generation(after.back());
    size_t guilty = first_wrong(passes.size(), [&](size_t n) { return is_wrong(after[n]); });
    return in_pass(*passes[guilty - 1], after[guilty - 1], after[guilty]);
  }

 private:
  std::string difference_of(const std::function<Program()>& program) const {
    try {
      return check_(program());
    } catch (const RuntimeError& error) {
      return error.what();
    } catch (const CompileError& error) {
      return error.what();
    }
  }
  // Runs the module after the passes that the interpreter needs. They change nothing if the module is lowered already.
  std::string run_interpreted(const IRModule& module) {
    IRModule prepared = module;
    for (const char* name : {"spread_tuples", "legalize", "destination_passing"}) {
      try {
        prepared = run_pass(*find_pass(name), prepared, context_);
      } catch (const CompileError& error) {
        return error.what();
      }
    }
    return run_mixed(prepared, {});
  }
  bool is_wrong(const IRModule& module) { return !run_interpreted(module).empty(); }

  Culprit in_pass(const Pass& pass, const IRModule& before, const IRModule& after) {
    Culprit culprit{pass.name, "", run_interpreted(after), ""};
    if (pass.on_program) {
      std::vector<std::string> names = changed_programs(before, after);
      auto with_first = [&](size_t count) {
        IRModule mixed = before;
        for (size_t i = 0; i < count; ++i) mixed.functions.insert_or_assign(names[i], after.functions.at(names[i]));
        return mixed;
      };
      size_t guilty = first_wrong(names.size(), [&](size_t count) { return is_wrong(with_first(count)); });
      culprit.program = names[guilty - 1];
    }
    culprit.reproducer = write_reproducer(settings_.runner.dump_dir, pass, before, culprit.program);
    return culprit;
  }

  std::optional<Culprit> in_code_generation(const IRModule& lowered) const {
    const ProgramMap kernels = programs_of(lowered);
    auto at = [&](size_t count) { return std::next(kernels.begin(), static_cast<int64_t>(count)); };
    auto with_first = [&](size_t count) { return run_mixed(lowered, {kernels.begin(), at(count)}); };
    std::string difference = with_first(kernels.size());
    if (difference.empty()) return std::nullopt;
    // The results were right without any machine code.
    size_t guilty = first_wrong(kernels.size(), [&](size_t count) { return !with_first(count).empty(); });
    return Culprit{kCodeGeneration, at(guilty - 1)->first, difference, ""};
  }

  // Runs the module with these kernels in machine code and the others in the interpreter. In a mixed run the
  // interpreter does not look for unwritten elements, because it does not see the stores of machine code.
  std::string run_mixed(const IRModule& lowered, const codegen::KernelMap& compiled) const {
    return difference_of([&] {
      auto interpreted =
          std::make_shared<codegen::InterpretedKernels>(lowered, InterpretOptions{.check_unwritten = compiled.empty()});
      LoadOptions options;
      if (compiled.empty()) options.watcher = interpreted;
      const Target& target = context_.target;
      const codegen::Backend& backend = codegen::backend_of(target);
      std::shared_ptr<const vm::KernelLibrary> machine;
      if (!compiled.empty())
        machine =
            backend.load(backend.compile(compiled, target, {.jobs = settings_.jobs, .opt_level = settings_.opt_level}));
      auto find = [machine, interpreted](const std::string& symbol) -> vm::Kernel {
        relaxc_kernel kernel = machine ? machine->find(symbol) : nullptr;
        return kernel ? vm::Kernel(kernel) : interpreted->find(symbol);
      };
      auto both = std::make_shared<std::pair<decltype(machine), decltype(interpreted)>>(machine, interpreted);
      return Program::from(codegen::lower_to_bytecode(lowered), find, both, std::move(options));
    });
  }

  const CompileSettings& settings_;
  const ResultCheck& check_;
  PassContext context_;
};

}  // namespace

std::optional<Culprit> find_culprit(const IRModule& module, std::span<const Pass* const> passes,
                                    const CompileSettings& settings, const ResultCheck& check) {
  return Bisection(settings, check).run(module, passes);
}

}  // namespace relaxc
