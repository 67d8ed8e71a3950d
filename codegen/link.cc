#include <dlfcn.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <climits>
#include <mutex>

#include "codegen/llvm_compile.h"
#include "codegen/target.h"
#include "support/diagnostic.h"
#include "vm/cpu.h"
#include "vm/error.h"
#include "vm/output_file.h"

LLD_HAS_DRIVER(elf)

namespace relaxc::codegen {

namespace {

// A temporary folder below TMPDIR, which is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("relaxc", path_)) {
      llvm::SmallString<128> parent;
      llvm::sys::path::system_temp_directory(true, parent);
      fail({}, "cannot make a temporary folder in '{}': {}; the environment variable TMPDIR names another place",
           std::string(parent.str()), error.message());
    }
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
  char folder[PATH_MAX + 1] = {};
  bool found = dlinfo(handle, RTLD_DI_ORIGIN, folder) == 0;
  dlclose(handle);
  return found ? std::optional(fmt::format("{}/{}", folder, soname)) : std::nullopt;
}

}  // namespace

std::vector<char> link_shared_object(const KernelObjects& kernels) {
  if (!llvm::Triple(kernels.target.triple).isOSBinFormatELF())
    fail_unsupported({}, "shared objects of '{}' are not ELF files", kernels.target.triple);
  TemporaryFolder folder;
  std::string output = folder.file("kernels.so");
  std::vector<std::string> args{"ld.lld",        "-shared",          "-o",         output, "--build-id=none",
                                "--strip-debug", "--hash-style=gnu", "-z",         "now",  "-z",
                                "noexecstack",   "-Bsymbolic",       "--as-needed"};
  // Threads of the linker would outlive this call, and a process that forks would wait for them for ever.
  args.emplace_back("--threads=1");
  auto add_object = [&](const std::string& name, const std::vector<char>& object) {
    args.push_back(folder.file(name));
    try {
      vm::write_file(args.back(), {object.data(), object.size()});
    } catch (const RuntimeError& error) {
      throw_runtime_error("{}; the environment variable TMPDIR names another place", error.what());
    }
  };
  for (size_t i = 0; i < kernels.objects.size(); ++i) add_object(fmt::format("{:04}.o", i), kernels.objects[i]);
  // The linker needs a file, also for a graph that calls functions of the runtime only.
  if (!kernels.linked_functions.empty() || kernels.objects.empty()) add_object("slots.o", slots_of_linked(kernels));
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
  const bool is_full = messages.str().find("No space left") != std::string::npos;
  if (result.retCode != 0)
    fail({}, "linking the kernels failed: {}{}", messages.str(),
         is_full ? "\n  note: the environment variable TMPDIR names another place for temporary files" : "");
  auto file = llvm::MemoryBuffer::getFile(output);
  if (!file) fail({}, "cannot read '{}': {}", output, file.getError().message());
  return {(*file)->getBufferStart(), (*file)->getBufferEnd()};
}

}  // namespace relaxc::codegen
