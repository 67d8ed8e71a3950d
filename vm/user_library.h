// Shared libraries with kernels of the user's (vm/kernel_table.h).
#pragma once
#include <memory>
#include <string>

#include "vm/builtins.h"
#include "vm/kernel_table.h"

namespace relaxc::vm {

class UserLibrary {
 public:
  // Opens the library. Throws a CompileError when it does not load, exports no table, or has one of another version or
  // with rows that are incomplete. A path without a slash is searched for as the dynamic linker does.
  static std::shared_ptr<const UserLibrary> open(const std::string& path);
  ~UserLibrary();
  UserLibrary(const UserLibrary&) = delete;
  UserLibrary& operator=(const UserLibrary&) = delete;

  const std::string& path() const { return path_; }
  std::span<const relaxc_kernel_row> rows() const { return rows_; }
  // Returns a symbol of the library, or null.
  void* find_symbol(const std::string& name) const;

 private:
  UserLibrary() = default;
  std::string path_;
  void* handle_ = nullptr;
  std::span<const relaxc_kernel_row> rows_;
};
using UserLibraries = std::vector<std::shared_ptr<const UserLibrary>>;

// Throws a CompileError where two libraries have different kernels of one name.
void check_names(const UserLibraries& libraries);
// Adds the rows of the libraries, which have to live as long as the registry. What the registry has already stays.
void add_libraries(const UserLibraries& libraries, Registry& registry);

// Key of Executable::metadata: the libraries that the kernels come from, one path a line.
inline constexpr const char* kNeededLibrariesKey = "needed_libraries";
// Key of Executable::metadata: the C kernels that are linked into the machine code, one symbol a line.
inline constexpr const char* kLinkedKernelsKey = "linked_kernels";
// Opens the libraries that an artifact names: a file of the name beside the artifact, the path that it names, or what
// the dynamic linker finds under the name.
UserLibraries open_needed_libraries(const std::string& names, const std::string& artifact);

}  // namespace relaxc::vm
