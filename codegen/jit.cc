#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include <unordered_map>

#include "codegen/llvm_compile.h"
#include "codegen/llvm_init.h"
#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/lists.h"

namespace relaxc::codegen {

namespace {

template <class T>
T expect(llvm::Expected<T> value, const char* what) {
  if (!value) fail({}, "{}: {}", what, llvm::toString(value.takeError()));
  return std::move(*value);
}
void expect(llvm::Error error, const char* what) {
  if (error) fail({}, "{}: {}", what, llvm::toString(std::move(error)));
}

std::string missing_functions(const llvm::orc::SymbolsNotFound& missing) {
  std::vector<std::string> names = map_each(missing.getSymbols(), [](const llvm::orc::SymbolStringPtr& symbol) {
    return fmt::format("'{}'", (*symbol).str());
  });
  return fmt::format("no library of this process has the external function {}; link the file that has it in (--link)",
                     joined(names));
}

class JitLibrary final : public vm::KernelLibrary {
 public:
  explicit JitLibrary(const KernelObjects& kernels) {
    initialize_llvm();
    llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(kernels.target.triple)};
    jit_ =
        expect(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create(), "starting the JIT");
    char prefix = jit_->getDataLayout().getGlobalPrefix();
    jit_->getMainJITDylib().addGenerator(
        expect(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix), "starting the JIT"));
    auto add_object = [&](const std::vector<char>& object) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernels");
      expect(jit_->addObjectFile(std::move(buffer)), "loading object code");
    };
    if (!kernels.linked_functions.empty()) add_object(slots_of_linked(kernels));
    for (const std::vector<char>& object : kernels.objects) add_object(object);
    // LLVM would print it. The error that follows says only that something failed.
    std::string problem;
    jit_->getExecutionSession().setErrorReporter([&](llvm::Error error) {
      llvm::handleAllErrors(
          std::move(error), [&](const llvm::orc::SymbolsNotFound& missing) { problem = missing_functions(missing); },
          [&](const llvm::ErrorInfoBase& other) { problem = problem.empty() ? other.message() : problem; });
    });
    add_linked(kernels, problem);
    // All symbols are resolved at once, so that find() only reads and is safe from any thread.
    for (const std::string& name : kernels.names) {
      std::string symbol = kernel_symbol(name);
      auto found = jit_->lookup(symbol);
      if (!found && !problem.empty()) {
        llvm::consumeError(found.takeError());
        fail({}, "tensor program '{}': {}", name, problem);
      }
      auto address = expect(std::move(found), "loading object code");
      functions_.emplace(symbol, address.toPtr<relaxc_kernel>());
    }
    jit_->getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
    for (const std::string& function : kernels.called) {
      auto slot = jit_->lookup(vm::slot_symbol(function));
      if (slot) slots_.emplace(function, slot->toPtr<void**>());
      if (!slot) llvm::consumeError(slot.takeError());  // the code does not call it after all
    }
  }

  relaxc_kernel find(const std::string& symbol) const override {
    return copy_value(functions_, symbol).value_or(nullptr);
  }

  void** find_slot(const std::string& function) const override {
    return copy_value(slots_, function).value_or(nullptr);
  }

 private:
  // Loads the user's object files, whose kernels are looked for in them alone and not in the process.
  // `problem` is what LLVM reports.
  void add_linked(const KernelObjects& kernels, const std::string& problem) {
    if (kernels.linked.empty()) return;
    auto created = jit_->createJITDylib("linked");
    if (!created) expect(created.takeError(), "starting the JIT");
    llvm::orc::JITDylib& linked = *created;
    for (const std::string& file : kernels.linked) {
      std::string what = fmt::format("loading '{}'", file);
      if (file.ends_with(".a")) {
        linked.addGenerator(expect(
            llvm::orc::StaticLibraryDefinitionGenerator::Load(jit_->getObjLinkingLayer(), file.c_str()), what.c_str()));
        continue;
      }
      auto buffer = llvm::MemoryBuffer::getFile(file);
      if (!buffer) fail({}, "{}: {}", what, buffer.getError().message());
      expect(jit_->addObjectFile(linked, std::move(*buffer)), what.c_str());
    }
    linked.addToLinkOrder(jit_->getMainJITDylib());
    jit_->getMainJITDylib().addToLinkOrder(linked);
    for (const std::string& symbol : kernels.linked_kernels) {
      auto found = jit_->lookup(linked, symbol);
      if (!found && !problem.empty()) {
        llvm::consumeError(found.takeError());
        // The code may lie anywhere. A shared object cannot have such a reference either.
        bool is_relocation = problem.find("out of range") != std::string::npos;
        fail({}, "linked kernel '{}': {}{}", symbol, problem,
             is_relocation ? "; recompile the object file with -fPIC" : "");
      }
      functions_.emplace(symbol, expect(std::move(found), "linking").toPtr<relaxc_kernel>());
    }
  }

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::unordered_map<std::string, relaxc_kernel> functions_;
  std::unordered_map<std::string, void**> slots_;
};

}  // namespace

std::shared_ptr<const vm::KernelLibrary> load_jit(const KernelObjects& kernels) {
  return std::make_shared<JitLibrary>(kernels);
}

}  // namespace relaxc::codegen
