#include "vm/shipped_libraries.h"

#include <filesystem>

#include "support/diagnostic.h"

namespace relaxc::vm {

// Returns the path of the file in the first folder that has it, or else the name, for the dynamic linker.
static std::string path_of_shipped(const char* file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* folder : kLibraryFolders) {
    const fs::path path = (program / folder / file).lexically_normal();
    if (fs::exists(path, ignored)) return path.string();
  }
  return file;
}

std::shared_ptr<const UserLibrary> open_shipped_library(const ShippedLibrary& library) {
  try {
    return UserLibrary::open(path_of_shipped(library.file));
  } catch (const CompileError& error) {
    fail({}, "{} needs {}, which was not built or does not load ({}); install {} and build relaxc again (./dev build)",
         library.what, library.file, error.diagnostics().front().message, library.packages);
  }
}

}  // namespace relaxc::vm
