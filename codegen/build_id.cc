#include "codegen/build_id.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/TargetRegistry.h>

#include "support/version.h"
#include "vm/build_id.h"

namespace relaxc::codegen {

const std::string& compiler_build() {
  using Lookup = const llvm::Target*(llvm::StringRef, std::string&);
  Lookup* of_llvm = &llvm::TargetRegistry::lookupTarget;
  static const std::string kBuild =
      fmt::format("relaxc {} {}, LLVM {} {}", kVersion, vm::build_of(reinterpret_cast<const void*>(&compiler_build)),
                  LLVM_VERSION_STRING, vm::build_of(reinterpret_cast<const void*>(of_llvm)));
  return kBuild;
}

}  // namespace relaxc::codegen
