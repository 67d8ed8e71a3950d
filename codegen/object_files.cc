// The functions that object files, archives and shared libraries of the user's have.
#include <dlfcn.h>
#include <llvm/Object/Archive.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <filesystem>

#include "codegen/backend.h"
#include "codegen/target.h"
#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "vm/cpu.h"

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

namespace {

// An object file that is linked, or a member of an archive, which is linked where another one calls a function of it.
struct LinkedObject {
  std::string name;  // "unit.o", "libunits.a(mma.o)"
  bool is_member = false;
  std::set<std::string> defined = {}, undefined = {};  // symbols; undefined ones that may stay so are not in it
};

[[noreturn]] void refuse_file(const std::string& file, llvm::Error error) {
  fail({}, "'{}' is not an object file or an archive that can be linked: {}", file, llvm::toString(std::move(error)));
}

void check_relocatable(const std::string& file, const llvm::object::ObjectFile& object) {
  const auto* elf = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(&object);
  if (elf && elf->getEType() != llvm::ELF::ET_REL)
    fail({},
         "'{}' is a shared object or a program, and only object files (.o) and archives (.a) are linked into an "
         "artifact; --kernels takes a library of C kernels",
         file);
}

LinkedObject symbols_of(const std::string& file, const llvm::object::ObjectFile& object) {
  using llvm::object::SymbolRef;
  LinkedObject result{file};
  for (const SymbolRef& symbol : object.symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      continue;
    }
    if (*name == "__gnu_lto_slim") refuse_lto(file);
    if ((*flags & SymbolRef::SF_Global) == 0 || name->empty()) continue;
    if ((*flags & SymbolRef::SF_Undefined) == 0)
      result.defined.insert(name->str());
    else if ((*flags & SymbolRef::SF_Weak) == 0)
      result.undefined.insert(name->str());
  }
  return result;
}

void add_members(const std::string& file, const llvm::object::Archive& archive, std::vector<LinkedObject>& objects) {
  llvm::Error problem = llvm::Error::success();
  for (const llvm::object::Archive::Child& child : archive.children(problem)) {
    if (auto content = child.getMemoryBufferRef()) {
      if (is_bitcode(*content)) refuse_lto(file);
    } else {
      refuse_file(file, content.takeError());
    }
    auto member = child.getAsBinary();
    if (!member) refuse_file(file, member.takeError());
    auto* object = llvm::dyn_cast<llvm::object::ObjectFile>(member->get());
    if (!object) continue;
    LinkedObject& added = objects.emplace_back(symbols_of(file, *object));
    added.name = fmt::format("{}({})", file, std::filesystem::path(object->getFileName().str()).filename().string());
    added.is_member = true;
  }
  if (problem) refuse_file(file, std::move(problem));
}

std::vector<LinkedObject> read_objects(const std::vector<std::string>& files) {
  std::vector<LinkedObject> result;
  for (const std::string& file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) refuse_file(file, llvm::errorCodeToError(buffer.getError()));
    if (is_bitcode(**buffer)) refuse_lto(file);
    const auto content = content_of_file(file);
    if (content && content->kind != ContentKind::kLibrary)
      fail({}, "'{}' is not an object file or an archive that can be linked; it is {}", file, content->what);
    auto binary = llvm::object::createBinary(file);
    if (!binary) refuse_file(file, binary.takeError());
    if (auto* object = llvm::dyn_cast<llvm::object::ObjectFile>(binary->getBinary())) {
      check_relocatable(file, *object);
      result.push_back(symbols_of(file, *object));
    } else if (auto* archive = llvm::dyn_cast<llvm::object::Archive>(binary->getBinary())) {
      add_members(file, *archive, result);
    }
  }
  return result;
}

// Returns the objects that become part of the artifact: all but members of archives that nothing calls.
std::vector<const LinkedObject*> objects_that_are_linked(const std::vector<LinkedObject>& objects,
                                                         const std::set<std::string>& called) {
  std::set<std::string> wanted = called, defined;
  std::vector<const LinkedObject*> result;
  auto link = [&](const LinkedObject& object) {
    result.push_back(&object);
    wanted.insert(object.undefined.begin(), object.undefined.end());
    defined.insert(object.defined.begin(), object.defined.end());
  };
  auto is_missing = [&](const std::string& name) { return wanted.contains(name) && !defined.contains(name); };
  for (const LinkedObject& object : objects) {
    if (!object.is_member) link(object);
  }
  for (size_t before = SIZE_MAX; before != result.size();) {
    before = result.size();
    for (const LinkedObject& object : objects) {
      if (object.is_member && std::ranges::any_of(object.defined, is_missing)) link(object);
    }
  }
  return result;
}

// Returns whether the linker defines the symbol, or the process has it, whose C library stands for that of the machine
// where the artifact will run. Functions of another machine's compiler are not known here.
bool is_found_elsewhere(const std::string& symbol, const Target& target) {
  constexpr std::string_view kOfLinker[] = {
      "_GLOBAL_OFFSET_TABLE_", "_DYNAMIC", "_end",  "_etext", "_edata",
      "__bss_start",           "_init",    "_fini", "end",    "__global_pointer$"};
  if (std::ranges::count(kOfLinker, symbol) > 0) return true;
  if (symbol.starts_with("__") && architecture(target) != vm::host_architecture()) return true;
  constexpr std::string_view kPrefixes[] = {"__start_",     "__stop_",      "__ehdr_start",      "__dso_handle",
                                            "__init_array", "__fini_array", "__executable_start"};
  if (std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return symbol.starts_with(prefix); })) return true;
  return dlsym(RTLD_DEFAULT, symbol.c_str()) != nullptr;
}

// Returns whether one of the names is the symbol's, or is "f*" and the symbol begins so.
bool is_among(const std::vector<std::string>& names, const std::string& symbol) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return name.ends_with('*') ? symbol.starts_with(name.substr(0, name.size() - 1)) : name == symbol;
  });
}

}  // namespace

std::set<std::string> functions_of(const std::vector<std::string>& files) {
  std::set<std::string> result;
  for (LinkedObject& object : read_objects(files)) result.merge(object.defined);
  return result;
}

void check_linked(const std::vector<std::string>& files, const std::set<std::string>& called, const Target& target,
                  const std::vector<std::string>& of_host) {
  const std::vector<LinkedObject> objects = read_objects(files);
  const std::vector<const LinkedObject*> linked = objects_that_are_linked(objects, called);
  std::set<std::string> defined;
  for (const LinkedObject* object : linked) defined.insert(object->defined.begin(), object->defined.end());
  Diagnostics diagnostics;
  for (const LinkedObject* object : linked) {
    for (const std::string& symbol : object->undefined) {
      if (!defined.contains(symbol) && !is_found_elsewhere(symbol, target) && !is_among(of_host, symbol))
        diagnostics.error({},
                          "'{}' needs '{}', which no linked file and no library of this process has; link the file "
                          "that has it, too (--link), or, where the program that loads the artifact has it, name it "
                          "(--host-symbols {})",
                          object->name, symbol, symbol);
    }
  }
  diagnostics.throw_if_errors();
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
