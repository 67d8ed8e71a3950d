#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include <unordered_map>

#include "codegen/llvm_compile.h"
#include "codegen/llvm_init.h"
#include "support/diagnostic.h"
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
    for (const std::string& library : kernels.libraries) {
      auto symbols = llvm::orc::DynamicLibrarySearchGenerator::Load(library.c_str(), prefix);
      std::string what = fmt::format("loading '{}', whose functions kernels call", library);
      jit_->getMainJITDylib().addGenerator(expect(std::move(symbols), what.c_str()));
    }
    for (const std::vector<char>& object : kernels.objects) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernels");
      expect(jit_->addObjectFile(std::move(buffer)), "loading object code");
    }
    // All symbols are resolved at once, so that find() only reads and is safe from any thread.
    for (const std::string& name : kernels.names) {
      std::string symbol = kernel_symbol(name);
      auto address = expect(jit_->lookup(symbol), "loading object code");
      functions_.emplace(symbol, address.toPtr<relaxc_kernel>());
    }
  }

  relaxc_kernel find(const std::string& symbol) const override {
    return copy_value(functions_, symbol).value_or(nullptr);
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::unordered_map<std::string, relaxc_kernel> functions_;
};

}  // namespace

std::shared_ptr<const vm::KernelLibrary> load_jit(const KernelObjects& kernels) {
  return std::make_shared<JitLibrary>(kernels);
}

}  // namespace relaxc::codegen
