#include "codegen/rename_symbols.h"

#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <deque>

#include "support/check.h"

namespace relaxc::codegen {

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

}  // namespace relaxc::codegen
