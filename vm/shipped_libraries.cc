#include "vm/shipped_libraries.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/printable.h"
#include "support/version.h"

namespace relaxc::vm {

namespace {

std::string folder_of_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(path.substr(0, slash));
}

// Returns the folder of the library or program that this function is in, and that of the program.
std::array<std::string, 2> own_folders() {
  Dl_info code{};
  const bool has_name = dladdr(reinterpret_cast<void*>(&own_folders), &code) != 0 && code.dli_fname;
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  return {has_name ? folder_of_path(code.dli_fname) : ".",
          folder_of_path({program, static_cast<size_t>(std::max<ssize_t>(size, 0))})};
}

// Returns the path of the file in the first folder that has it, or else the name, for the dynamic linker.
std::string path_of_shipped(const char* file) {
  for (const std::string& own : own_folders()) {
    for (const char* folder : kLibraryFolders) {
      const std::string path = formatted("{}{}/{}", folder[0] == '/' ? "" : own + "/", folder, file);
      if (access(path.c_str(), R_OK) == 0) return path;
    }
  }
  return file;
}

}  // namespace

std::shared_ptr<const UserLibrary> open_shipped_library(const ShippedLibrary& library) {
  try {
    return UserLibrary::open(path_of_shipped(library.file));
  } catch (const CompileError& error) {
    fail({}, "{} needs {}, which was not built or does not load ({}); install {} and build relaxc again (./dev build)",
         library.what, library.file, error.diagnostics().front().message, library.packages);
  }
}

const Builtin* open_builtin(const std::string& name, const Span& span) {
  if (!name.starts_with("vm.builtin.")) return nullptr;
  constexpr const char* kFile = "librelaxc_builtins.so";
  const std::string path = path_of_shipped(kFile);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // it stays open, since it has the code of values
  using Entry = const BuiltinLibrary*();
  auto* entry = handle ? reinterpret_cast<Entry*>(dlsym(handle, "relaxc_builtins_library")) : nullptr;
  constexpr const char* kRemedy =
      "put that file of this relaxc beside librelaxc.so or the program, or link relaxc::builtins (docs/deploy.md)";
  if (!entry)
    fail(span, "function '{}' is one of {}, which does not load ({}); {}", printable(name), kFile, printable(dlerror()),
         kRemedy);
  const BuiltinLibrary& library = *entry();
  if (std::strcmp(library.version, kVersion) != 0 || std::strcmp(library.commit, kCommit) != 0)
    fail(span, "'{}' is of relaxc {} {}, expected {} {}; {}", printable(path), library.version, library.commit,
         kVersion, kCommit, kRemedy);
  return find_item(library.rows, name, &Builtin::name);
}

}  // namespace relaxc::vm
