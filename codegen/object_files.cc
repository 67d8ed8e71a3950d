// The functions that object files, archives and shared libraries of the user's have.
#include <llvm/Object/Archive.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include "codegen/backend.h"
#include "support/diagnostic.h"

namespace relaxc::codegen {

// The intermediate code of clang -flto; gcc's is an object file with a symbol that says so.
static bool is_bitcode(const llvm::MemoryBufferRef& file) {
  return file.getBuffer().starts_with("BC\xC0\xDE") || file.getBuffer().starts_with("\xDE\xC0\x17\x0B");
}
[[noreturn]] static void refuse_lto(const std::string& file) {
  fail({},
       "'{}' holds intermediate code for link-time optimization, which this linker does not compile; compile it "
       "without -flto",
       file);
}

std::set<std::string> functions_of(const std::vector<std::string>& files) {
  std::set<std::string> result;
  auto add = [&](const std::string& file, const llvm::object::ObjectFile& object) {
    for (const llvm::object::SymbolRef& symbol : object.symbols()) {
      auto flags = symbol.getFlags();
      auto name = symbol.getName();
      if (!flags || !name) {
        llvm::consumeError(flags.takeError());
        llvm::consumeError(name.takeError());
        continue;
      }
      if (*name == "__gnu_lto_slim") refuse_lto(file);
      using llvm::object::SymbolRef;
      if ((*flags & SymbolRef::SF_Global) && !(*flags & SymbolRef::SF_Undefined)) result.insert(name->str());
    }
  };
  auto refuse = [](const std::string& file, llvm::Error error) {
    fail({}, "'{}' is not an object file or an archive that can be linked: {}", file, llvm::toString(std::move(error)));
  };
  auto check_relocatable = [](const std::string& file, const llvm::object::ObjectFile& object) {
    const auto* elf = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(&object);
    if (elf && elf->getEType() != llvm::ELF::ET_REL)
      fail({},
           "'{}' is a shared object or a program, and only object files (.o) and archives (.a) are linked into an "
           "artifact; --kernels takes a library of C kernels",
           file);
  };
  for (const std::string& file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) refuse(file, llvm::errorCodeToError(buffer.getError()));
    if (is_bitcode(**buffer)) refuse_lto(file);
    auto binary = llvm::object::createBinary(file);
    if (!binary) refuse(file, binary.takeError());
    if (auto* object = llvm::dyn_cast<llvm::object::ObjectFile>(binary->getBinary())) {
      check_relocatable(file, *object);
      add(file, *object);
    }
    auto* archive = llvm::dyn_cast<llvm::object::Archive>(binary->getBinary());
    if (!archive) continue;
    llvm::Error problem = llvm::Error::success();
    for (const llvm::object::Archive::Child& child : archive->children(problem)) {
      if (auto content = child.getMemoryBufferRef()) {
        if (is_bitcode(*content)) refuse_lto(file);
      } else {
        refuse(file, content.takeError());
      }
      auto member = child.getAsBinary();
      if (!member) refuse(file, member.takeError());
      if (auto* object = llvm::dyn_cast<llvm::object::ObjectFile>(member->get())) add(file, *object);
    }
    if (problem) refuse(file, std::move(problem));
  }
  return result;
}

std::set<std::string> exported_functions(const std::string& library) {
  std::set<std::string> result;
  auto binary = llvm::object::createBinary(library);
  if (!binary) fail({}, "library '{}' cannot be read: {}", library, llvm::toString(binary.takeError()));
  const auto* elf = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(binary->getBinary());
  if (!elf) fail({}, "'{}' is not a shared library", library);
  for (const llvm::object::ELFSymbolRef& symbol : elf->getDynamicSymbolIterators()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    bool is_defined = flags && name && !(*flags & llvm::object::SymbolRef::SF_Undefined);
    if (is_defined) result.insert(name->str());
    llvm::consumeError(flags.takeError());
    llvm::consumeError(name.takeError());
  }
  return result;
}

}  // namespace relaxc::codegen
