#include "codegen/llvm_compile.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopStrengthReduce.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <ranges>

#include "codegen/function_emitter.h"
#include "codegen/llvm_init.h"
#include "ir/visit.h"
#include "passes/stored_programs.h"
#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/parallel.h"
#include "support/recently_used.h"

namespace relaxc::codegen {

namespace {

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
// on the large loops of functions with many loops: a few additions cost nothing next to so many multiplications.
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
    set_target(*module);
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

  void set_target(llvm::Module& module) const {
#if LLVM_VERSION_MAJOR >= 21
    module.setTargetTriple(llvm::Triple(target_.triple));
#else
    module.setTargetTriple(target_.triple);
#endif
    module.setDataLayout(machine_->createDataLayout());
  }

  std::vector<char> write(llvm::Module& module, llvm::CodeGenFileType type) {
    if (!writer_) {
      writer_ = std::make_unique<llvm::legacy::PassManager>();
      bool fails = machine_->addPassesToEmitFile(*writer_, out_, nullptr, type);
      RELAXC_CHECK(!fails, "{} cannot emit a file", target_.triple);
    }
    bytes_.clear();
    writer_->run(module);
    return {bytes_.begin(), bytes_.end()};
  }

 private:
  static llvm::PipelineTuningOptions tuning() {
    llvm::PipelineTuningOptions options;
    options.LoopVectorization = options.SLPVectorization = options.LoopInterleaving = false;
    return options;
  }

  const Target& target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::LLVMContext> context_;  // owns the types and constants of the last module
  llvm::LoopAnalysisManager loop_analyses_;
  llvm::FunctionAnalysisManager function_analyses_;
  llvm::CGSCCAnalysisManager cgscc_analyses_;
  llvm::ModuleAnalysisManager module_analyses_;
  llvm::PassBuilder builder_;
  llvm::ModulePassManager passes_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream out_{bytes_};
  std::unique_ptr<llvm::legacy::PassManager> writer_;  // to out_
};

// Code that this process has compiled, under the symbol of a kernel without a name.
struct CompiledCode {
  PrimFuncRef program;
  std::shared_ptr<const std::vector<char>> object;
};
RecentlyUsed<CompiledCode>& compiled_code() {
  constexpr size_t kMostBytes = 64 << 20;
  static RecentlyUsed<CompiledCode> code(kMostBytes);
  return code;
}

// Returns a copy of an ELF object in which each symbol that begins with `prefix` begins with `replacement` instead.
std::vector<char> rename_symbols(const std::vector<char>& object, std::string_view prefix,
                                 std::string_view replacement) {
  auto parsed = llvm::object::ObjectFile::createObjectFile({{object.data(), object.size()}, "kernel"});
  RELAXC_CHECK(parsed, "object code cannot be read: {}", llvm::toString(parsed.takeError()));
  llvm::objcopy::ConfigManager config;
  config.Common.InputFilename = config.Common.OutputFilename = "kernel";
  std::deque<std::string> names;  // owns the new names; the config refers to them
  for (const llvm::object::SymbolRef& symbol : (*parsed)->symbols()) {
    llvm::StringRef name = llvm::cantFail(symbol.getName());
    if (!name.starts_with(prefix)) continue;
    names.push_back(std::string(replacement) + name.drop_front(prefix.size()).str());
    config.Common.SymbolsToRename[name] = names.back();
  }
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **parsed, out);
  RELAXC_CHECK(!error, "object code cannot be renamed: {}", llvm::toString(std::move(error)));
  return {bytes.begin(), bytes.end()};
}

// Compiles each kernel into a separate file.
class Compilation {
 public:
  Compilation(const KernelMap& kernels, const Target& target, const PassSettings& settings, llvm::CodeGenFileType type)
      : kernels_(kernels),
        target_(target),
        settings_(settings),
        type_(type),
        progress_(settings.progress, CompileStage::kKernels, kernels.size()) {
    bool is_elf = llvm::Triple(target.triple).isOSBinFormatELF();
    if (settings.reuse && is_elf && type == llvm::CodeGenFileType::ObjectFile) {
      circumstances_ = fmt::format("code {} {}", print_target(target), settings.opt_level);
      key_ = program_keys(circumstances_);
    }
  }

  std::vector<std::vector<char>> run() {
    std::vector<KernelMap::const_iterator> kernels;
    for (auto it = kernels_.programs.begin(); it != kernels_.programs.end(); ++it) kernels.push_back(it);
    std::vector<std::vector<char>> files(kernels.size());
    auto make_work = [&]() -> IndexedWork {
      return [&, worker = std::make_shared<Worker>(target_, settings_.opt_level)](size_t i) {
        StageProgress::Piece piece(progress_, kernels[i]->first);
        files[i] = file_of(kernels[i], *worker);
      };
    };
    constexpr size_t kShare = 4;  // setting LLVM up takes as long as a few small kernels
    for_each_parallel(files.size(), settings_.jobs, make_work, kShare);
    return files;
  }
  size_t num_reused() const { return progress_.num_reused(); }

 private:
  std::vector<char> file_of(KernelMap::const_iterator kernel, Worker& worker) {
    const auto& [name, program] = *kernel;
    if (!key_ || kernels_.aliases.contains(name))
      return worker.write(*worker.emit(kernels_, kernel, std::next(kernel)), type_);
    PrimFuncRef nameless = without_symbol(program);
    uint64_t key = *key_(name, nameless);
    std::optional<CompiledCode> code = compiled_code().find(key);
    if (code && structural_equal(code->program, nameless)) {
      progress_.count_reused();
    } else {
      auto object = std::make_shared<const std::vector<char>>(compiled_or_stored(kernel, nameless, worker));
      code = {nameless, object};
      compiled_code().add(key, *code, code->object->size());
    }
    return rename_symbols(*code->object, kernel_symbol(""), kernel_symbol(name));
  }

  std::vector<char> compiled_or_stored(KernelMap::const_iterator kernel, const PrimFuncRef& nameless, Worker& worker) {
    ResultStore* store = settings_.store.get();
    const std::optional<std::string> key = store ? key_in_store(circumstances_, nameless) : std::nullopt;
    if (key) {
      if (const auto stored = store->find(*key)) {
        progress_.count_reused();
        return {stored->begin(), stored->end()};
      }
    }
    std::vector<char> object = without_name(kernel, worker);
    if (key) store->keep(*key, {object.data(), object.size()});
    return object;
  }

  std::vector<char> without_name(KernelMap::const_iterator kernel, Worker& worker) {
    KernelMap alone{{"", kernel->second}};
    try {
      return worker.write(*worker.emit(Kernels(alone), alone.begin(), alone.end()), type_);
    } catch (const CompileError&) {
      worker.emit(kernels_, kernel, std::next(kernel));  // throws the same error, which names the kernel
      throw;
    }
  }

  const Kernels kernels_;
  const Target& target_;
  const PassSettings& settings_;
  const llvm::CodeGenFileType type_;
  ProgramKey key_;             // where code is reused
  std::string circumstances_;  // of these keys
  StageProgress progress_;
};

}  // namespace

bool has_code_generator(const Target& target) {
  initialize_llvm();
  std::string error;  // says the same
  return llvm::TargetRegistry::lookupTarget(target.triple, error) != nullptr;
}

KernelObjects compile_kernels(const KernelMap& kernels, const Target& target, const PassSettings& settings) {
  Compilation compilation(kernels, target, settings, llvm::CodeGenFileType::ObjectFile);
  KernelObjects result{target, {}, compilation.run(), compilation.num_reused()};
  std::ranges::copy(std::views::keys(kernels), std::back_inserter(result.names));
  return result;
}

std::set<std::string> called_functions(const KernelMap& kernels, const Target& target) {
  std::set<std::string> result;
  const llvm::TargetLibraryInfoImpl known{llvm::Triple(target.triple)};
  auto add = [&](const Ref<Call>& call) {
    const StringImm* symbol = is_extern_call(call) ? call->args.at(0).as<StringImm>() : nullptr;
    if (symbol && !is_known_function(known, symbol->value)) result.insert(symbol->value);
  };
  for (const auto& [_, program] : kernels) walk(program->body, add);
  return result;
}

std::vector<char> slots_of_linked(const KernelObjects& kernels) {
  llvm::LLVMContext context;
  llvm::Module module("slots", context);
  auto* pointer = llvm::PointerType::getUnqual(context);
  auto* signature = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  for (const std::string& name : kernels.linked_functions) {
    auto* function = llvm::cast<llvm::Constant>(module.getOrInsertFunction(name, signature).getCallee());
    new llvm::GlobalVariable(module, pointer, false, llvm::GlobalValue::ExternalLinkage, function,
                             vm::slot_symbol(name));
  }
  Worker worker(kernels.target, 0);
  worker.set_target(module);
  return worker.write(module, llvm::CodeGenFileType::ObjectFile);
}

std::string to_assembly(const KernelMap& kernels, const Target& target, const PassSettings& settings) {
  std::string text;
  for (const std::vector<char>& file :
       Compilation(kernels, target, settings, llvm::CodeGenFileType::AssemblyFile).run())
    text.append(file.begin(), file.end());
  return text;
}

std::string to_llvm_ir(const KernelMap& all, const Target& target, const PassSettings& settings) {
  const Kernels kernels(all);
  Worker worker(target, settings.opt_level);
  std::string text;
  llvm::raw_string_ostream out(text);
  worker.emit(kernels, kernels.programs.begin(), kernels.programs.end())->print(out, nullptr);
  return text;
}

}  // namespace relaxc::codegen
