// Shared libraries of the user's: with kernels, which a table lists (vm/kernel_table.h), and with other C functions,
// which machine code calls by name (T.call_extern).
#pragma once
#include <memory>
#include <string>

#include "support/diagnostic.h"
#include "vm/artifact.h"
#include "vm/builtins.h"
#include "vm/kernel_table.h"

namespace relaxc::vm {

class UserLibrary {
 public:
  enum class Table : uint8_t { kExpected, kOptional };
  // Opens the library. Throws a CompileError when it does not load, exports no table although it is expected to, or has
  // one of another version or with rows that are incomplete. A path without a slash is searched for as the dynamic
  // linker does. A library that has replaced an open one is another one, and so is one that was written over.
  static std::shared_ptr<const UserLibrary> open(const std::string& path, Table table = Table::kExpected);
  ~UserLibrary();
  UserLibrary(const UserLibrary&) = delete;
  UserLibrary& operator=(const UserLibrary&) = delete;

  const std::string& path() const { return file_->path(); }
  // Throws RuntimeError where the file was written to: its functions cannot be called any more.
  void check_unchanged() const { file_->check_unchanged(); }
  std::span<const relaxc_kernel_row> rows() const { return rows_; }
  // Returns a symbol of the library, or null.
  void* find_symbol(const std::string& name) const;

 private:
  UserLibrary() = default;
  void read_table(Table table);
  std::shared_ptr<const MappedFile> file_;
  void* handle_ = nullptr;
  std::span<const relaxc_kernel_row> rows_;
};
using UserLibraries = std::vector<std::shared_ptr<const UserLibrary>>;

// Throws a CompileError where two libraries have different kernels of one name.
void check_names(const UserLibraries& libraries);
// Adds the rows of the libraries, which have to live as long as the registry. What the registry has already stays.
void add_libraries(const UserLibraries& libraries, Registry& registry);

// Keys of Executable::metadata, each with one name a line: the libraries of the kernels and of other functions (paths),
// the C kernels that are linked into the machine code, and the C functions that it calls and that are not linked in.
inline constexpr const char* kNeededLibrariesKey = "needed_libraries";
inline constexpr const char* kLinkedKernelsKey = "linked_kernels";
inline constexpr const char* kCalledFunctionsKey = "called_functions";

// Opens the libraries that an artifact names. Each is looked for beside the artifact, where it was when the model was
// compiled, and as the dynamic linker does. Throws a CompileError at the span that names the library and the remedy.
void open_needed_libraries(const std::string& names, const std::string& artifact, const Span& span,
                           UserLibraries& libraries);
// Gives machine code the addresses of the functions that it calls: of the first library that has one, else of the
// process. Reports those that are missing.
void connect_functions(const std::string& names, const KernelLibrary& code, const UserLibraries& libraries,
                       const Span& span, Diagnostics& diagnostics);

}  // namespace relaxc::vm
