#include "codegen/llvm_compile.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopStrengthReduce.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "codegen/function_emitter.h"
#include "codegen/llvm_init.h"
#include "ir/visit.h"
#include "support/diagnostic.h"
#include "support/parallel.h"

namespace relaxc::codegen {

namespace {

// The number of kernels per object file. It is fixed, so that the bytes do not depend on the number of threads, and
// small, so that the last thread does not work alone for long.
constexpr size_t kKernelsPerObject = 6;

// Schedules have tiled, vectorized and unrolled already, and there is nothing to inline. LLVM has to put local buffers
// into registers, to simplify, and to move and strengthen addresses. Its vectorizers do not run.
constexpr const char* kPipelines[] = {
    "",
    "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>)",
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-simplifycfg,licm),sroa,reassociate,"
    "loop-mssa(licm),simplifycfg,instcombine<no-verify-fixpoint>,loop(indvars,loop-deletion,loop-unroll-full),"
    "sroa,gvn,instcombine<no-verify-fixpoint>,dse,loop-mssa(licm),simplifycfg,adce,instcombine<no-verify-fixpoint>)",
};

// LLVM's loop strength reduction makes an induction variable for each address that advances with a loop. It searches
// many formulas for each, and took half of the time of code generation where a register tile is copied for each
// possible number of remaining rows. So initialize_llvm() takes it out of the code generators and it runs here, except
// on the large loops of functions with many loops: a few additions are free beside so many multiplications.
struct ReduceLoops : llvm::PassInfoMixin<ReduceLoops> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    constexpr int kMostInstructions = 32, kMostLoops = 12;
    int instructions = 0, loops = 0;
    for (const llvm::BasicBlock* block : loop.blocks()) instructions += static_cast<int>(block->size());
    for (const llvm::Loop* other : results.LI.getLoopsInPreorder()) loops += other->isInnermost();
    if (instructions > kMostInstructions && loops > kMostLoops) return llvm::PreservedAnalyses::all();
    return llvm::LoopStrengthReducePass().run(loop, analyses, results, updater);
  }
};

// The kernels that differ, and the further public names under which they are exported.
struct Kernels {
  explicit Kernels(const KernelMap& all) : programs(all) {
    auto hash = [](const std::string&, const PrimFuncRef& program) { return structural_hash(program); };
    for (const auto& [name, first] : equal_public_programs(all, hash)) {
      programs.erase(name);
      aliases.emplace(first, name);
    }
  }
  KernelMap programs;
  std::multimap<std::string, std::string> aliases;
};

// Objects that a thread reuses for all its modules, because making them costs more than compiling a small kernel.
class Worker {
 public:
  Worker(const Target& target, int opt_level)
      : target_(target), machine_(make_target_machine(target, opt_level)), builder_(machine_.get(), tuning()) {
    builder_.registerModuleAnalyses(module_analyses_);
    builder_.registerCGSCCAnalyses(cgscc_analyses_);
    builder_.registerFunctionAnalyses(function_analyses_);
    builder_.registerLoopAnalyses(loop_analyses_);
    builder_.crossRegisterProxies(loop_analyses_, function_analyses_, cgscc_analyses_, module_analyses_);
    const char* pipeline = kPipelines[std::clamp(opt_level, 0, 2)];
    if (*pipeline) {
      llvm::Error error = builder_.parsePassPipeline(passes_, pipeline);
      RELAXC_CHECK(!error, "pipeline '{}': {}", pipeline, llvm::toString(std::move(error)));
      passes_.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::createFunctionToLoopPassAdaptor(ReduceLoops())));
    }
  }

  std::unique_ptr<llvm::Module> emit(const Kernels& kernels, KernelMap::const_iterator begin,
                                     KernelMap::const_iterator end) {
    context_ = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("relaxc", *context_);
#if LLVM_VERSION_MAJOR >= 21
    module->setTargetTriple(llvm::Triple(target_.triple));
#else
    module->setTargetTriple(target_.triple);
#endif
    module->setDataLayout(machine_->createDataLayout());
    for (auto kernel = begin; kernel != end; ++kernel) {
      try {
        emit_kernel(*module, kernel_symbol(kernel->first), kernel->second, target_);
      } catch (const CompileError& error) {
        throw CompileError(with_place(error.diagnostics(), kernel->second.span()));
      }
      auto [alias, last] = kernels.aliases.equal_range(kernel->first);
      for (llvm::Function* code = module->getFunction(kernel_symbol(kernel->first)); alias != last; ++alias)
        llvm::GlobalAlias::create(kernel_symbol(alias->second), code);
    }
    std::string problems;
    llvm::raw_string_ostream out(problems);
    RELAXC_CHECK(!llvm::verifyModule(*module, &out), "the emitted LLVM module is invalid: {}", problems);
    passes_.run(*module, module_analyses_);
    module_analyses_.clear();  // they refer to the module
    function_analyses_.clear();
    loop_analyses_.clear();
    cgscc_analyses_.clear();
    return module;
  }

  void write(llvm::Module& module, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type) {
    llvm::legacy::PassManager passes;
    RELAXC_CHECK(!machine_->addPassesToEmitFile(passes, out, nullptr, type), "{} cannot emit a file", target_.triple);
    passes.run(module);
  }

 private:
  static llvm::PipelineTuningOptions tuning() {
    llvm::PipelineTuningOptions options;
    options.LoopVectorization = options.SLPVectorization = options.LoopInterleaving = false;
    return options;
  }

  const Target& target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::LLVMContext> context_;  // of the last module
  llvm::LoopAnalysisManager loop_analyses_;
  llvm::FunctionAnalysisManager function_analyses_;
  llvm::CGSCCAnalysisManager cgscc_analyses_;
  llvm::ModuleAnalysisManager module_analyses_;
  llvm::PassBuilder builder_;
  llvm::ModulePassManager passes_;
};

std::vector<std::vector<char>> compile_chunks(const KernelMap& all, const Target& target, const CompileOptions& options,
                                              llvm::CodeGenFileType type) {
  initialize_llvm();
  const Kernels kernels(all);
  std::vector<KernelMap::const_iterator> starts;
  size_t position = 0;
  for (auto it = kernels.programs.begin(); it != kernels.programs.end(); ++it, ++position) {
    if (position % kKernelsPerObject == 0) starts.push_back(it);
  }
  starts.push_back(kernels.programs.end());
  std::vector<std::vector<char>> files(starts.size() - 1);
  for_each_parallel(files.size(), options.jobs, [&]() -> IndexedWork {
    return [&, worker = std::make_shared<Worker>(target, options.opt_level)](size_t i) {
      std::unique_ptr<llvm::Module> module = worker->emit(kernels, starts[i], starts[i + 1]);
      llvm::SmallVector<char, 0> bytes;
      llvm::raw_svector_ostream out(bytes);
      worker->write(*module, out, type);
      files[i].assign(bytes.begin(), bytes.end());
    };
  });
  return files;
}

}  // namespace

KernelObjects compile_kernels(const KernelMap& kernels, const Target& target, const CompileOptions& options) {
  KernelObjects result{target, {}, compile_chunks(kernels, target, options, llvm::CodeGenFileType::ObjectFile)};
  std::ranges::copy(std::views::keys(kernels), std::back_inserter(result.names));
  return result;
}

std::string to_assembly(const KernelMap& kernels, const Target& target, const CompileOptions& options) {
  std::string text;
  for (const std::vector<char>& file : compile_chunks(kernels, target, options, llvm::CodeGenFileType::AssemblyFile))
    text.append(file.begin(), file.end());
  return text;
}

std::string to_llvm_ir(const KernelMap& all, const Target& target, const CompileOptions& options) {
  initialize_llvm();
  const Kernels kernels(all);
  Worker worker(target, options.opt_level);
  std::string text;
  llvm::raw_string_ostream out(text);
  worker.emit(kernels, kernels.programs.begin(), kernels.programs.end())->print(out, nullptr);
  return text;
}

}  // namespace relaxc::codegen
