#include <dlfcn.h>
#include <link.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Object/Archive.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "support/diagnostic.h"
#include "vm/cpu.h"
#include "vm/output_file.h"

LLD_HAS_DRIVER(elf)

namespace relaxc::codegen {

namespace {

// A temporary folder below TMPDIR, which is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("relaxc", path_))
      fail({}, "cannot make a temporary folder: {}", error.message());
  }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return std::string(path_.str()) + "/" + name; }

 private:
  llvm::SmallString<128> path_;
};

// Returns the path of a library of this process, so that linking does not need development packages.
std::optional<std::string> loaded_library(const char* soname) {
  void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return std::nullopt;
  link_map* entry = nullptr;
  bool found = dlinfo(handle, RTLD_DI_LINKMAP, &entry) == 0 && entry->l_name && *entry->l_name;
  std::optional<std::string> path;
  if (found) path = entry->l_name;
  dlclose(handle);
  return path;
}

}  // namespace

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
  for (const std::string& file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) refuse(file, llvm::errorCodeToError(buffer.getError()));
    if (is_bitcode(**buffer)) refuse_lto(file);
    auto binary = llvm::object::createBinary(file);
    if (!binary) refuse(file, binary.takeError());
    if (auto* object = llvm::dyn_cast<llvm::object::ObjectFile>(binary->getBinary())) add(file, *object);
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

std::vector<char> link_shared_object(const KernelObjects& kernels) {
  if (!llvm::Triple(kernels.target.triple).isOSBinFormatELF())
    fail_unsupported({}, "shared objects of '{}' are not ELF files", kernels.target.triple);
  TemporaryFolder folder;
  std::string output = folder.file("kernels.so");
  std::vector<std::string> args{"ld.lld",        "-shared",          "-o",         output, "--build-id=none",
                                "--strip-debug", "--hash-style=gnu", "-z",         "now",  "-z",
                                "noexecstack",   "-Bsymbolic",       "--as-needed"};
  for (size_t i = 0; i < kernels.objects.size(); ++i) {
    args.push_back(folder.file(fmt::format("{:04}.o", i)));
    vm::write_file(args.back(), {kernels.objects[i].data(), kernels.objects[i].size()});
  }
  // The loader looks for them where they are now, and then as it does for any library.
  for (const std::string& library : kernels.libraries) {
    size_t folder_end = library.rfind('/');
    if (folder_end != std::string::npos) args.insert(args.end(), {"-rpath", library.substr(0, folder_end)});
    args.push_back(library);
  }
  for (const std::string& file : kernels.linked) args.push_back(file);
  for (const std::string& symbol : kernels.linked_kernels) args.push_back("--undefined=" + symbol);
  // For another machine the symbols of libm stay undefined, and the library is not named.
  for (const char* soname : {"libm.so.6", "libc.so.6"}) {
    std::optional<std::string> path = loaded_library(soname);
    if (path && architecture(kernels.target) == vm::host_architecture()) args.push_back(*path);
  }

  std::vector<const char*> pointers;
  for (const std::string& arg : args) pointers.push_back(arg.c_str());
  std::string text;
  llvm::raw_string_ostream messages(text);
  static std::mutex mutex;  // lld keeps its state in globals
  std::lock_guard lock(mutex);
  constexpr lld::DriverDef kElf{lld::Gnu, &lld::elf::link};
  lld::Result result = lld::lldMain(pointers, messages, messages, {kElf});
  if (result.retCode != 0) fail({}, "linking the kernels failed: {}", messages.str());
  auto file = llvm::MemoryBuffer::getFile(output);
  if (!file) fail({}, "cannot read '{}': {}", output, file.getError().message());
  return {(*file)->getBufferStart(), (*file)->getBufferEnd()};
}

}  // namespace relaxc::codegen
