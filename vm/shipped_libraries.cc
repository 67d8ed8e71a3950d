#include "vm/shipped_libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>

#include "support/diagnostic.h"
#include "support/lists.h"
#include "support/printable.h"
#include "support/version.h"
#include "vm/error.h"
#include "vm/open_library.h"

namespace relaxc::vm {

namespace {

std::string folder_of_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(path.substr(0, slash));
}

// Returns the folder of the library that this function is in; "" where a program has it linked in, or nothing tells.
std::string find_library_folder() noexcept {
  Dl_info code{};
  link_map* object = nullptr;
  // A program has no name there, and that of dli_fname is its argv[0], which its caller chooses.
  if (dladdr1(reinterpret_cast<void*>(&find_library_folder), &code, reinterpret_cast<void**>(&object),
              RTLD_DL_LINKMAP) == 0 ||
      !object || !object->l_name || !std::strchr(object->l_name, '/'))
    return "";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(object->l_name, error);
  return error ? "" : folder_of_path(path.native());
}

// It is found when the library is loaded, since a relative name means another file after a chdir() of the host.
const std::string kLibraryFolder = find_library_folder();

// Returns the folder of the library that this function is in, and that of the program.
std::vector<std::string> own_folders() {
  std::vector<std::string> result;
  if (!kLibraryFolder.empty()) result.push_back(kLibraryFolder);
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size > 0) result.push_back(folder_of_path({program, static_cast<size_t>(size)}));
  return result;
}

}  // namespace

std::vector<std::string> places_of(const char* file) {
  std::vector<std::string> result;
  auto add = [&](const std::string& path) {
    if (!std::ranges::count(result, path)) result.push_back(path);
  };
  for (const std::string& own : own_folders()) {
    for (const char* folder : kLibraryFolders) {
      const std::string_view inside = std::string_view(folder) == "." ? "" : folder;
      add(formatted("{}{}{}{}", folder[0] == '/' ? "" : own + "/", inside, inside.empty() ? "" : "/", file));
    }
  }
  result.emplace_back(file);
  return result;
}

bool is_static_program() {
  bool result = true;
  dl_iterate_phdr(
      [](dl_phdr_info* program, size_t, void* to) {
        for (int i = 0; i < program->dlpi_phnum; ++i) {
          if (program->dlpi_phdr[i].p_type == PT_INTERP) *static_cast<bool*>(to) = false;
        }
        return 1;  // the program is the first object
      },
      &result);
  return result;
}

namespace {

// Returns the path of the file in the first folder that has it, or else the name, for the dynamic linker.
std::string path_of_shipped(const char* file) {
  for (const std::string& path : places_of(file)) {
    if (access(path.c_str(), F_OK) == 0) return path;
  }
  return file;
}

// Opens the library of builtins at a place. Returns null where it does not fit, with the reason in `problem`.
const BuiltinLibrary* open_builtins_at(const std::string& path, std::string& problem) {
  std::string reason;
  void* handle = open_library(path, RTLD_NOW | RTLD_LOCAL, reason);  // it stays open, since it has the code of values
  using Entry = const BuiltinLibrary*();
  auto* entry = handle ? reinterpret_cast<Entry*>(dlsym(handle, "relaxc_builtins_library")) : nullptr;
  if (!entry) {
    problem = printable(handle ? dlerror() : reason);
    return nullptr;
  }
  const BuiltinLibrary* library = entry();
  if (std::strcmp(library->version, kVersion) == 0 && std::strcmp(library->commit, kCommit) == 0) return library;
  problem = formatted("'{}' is of relaxc {} {}, expected {} {}", printable(path), printable(library->version),
                      printable(library->commit), kVersion, kCommit);
  return nullptr;
}

// Opens the library that has a builtin. Reports every place in which it was looked for.
const BuiltinLibrary& open_builtins(const std::string& name, const Span& span) {
  if (is_static_program())
    fail_unsupported(span,
                     "function '{}' is one of {}, which a static program cannot open; link relaxc::builtins into it, "
                     "or link it without -static (docs/embed.md)",
                     printable(name), kBuiltinsFile);
  std::vector<std::string> notes;
  for (const std::string& path : places_of(kBuiltinsFile)) {
    std::string problem;
    if (path.find('/') != std::string::npos && access(path.c_str(), F_OK) != 0) {
      notes.push_back(formatted("'{}' does not exist", printable(path)));
    } else if (const BuiltinLibrary* library = open_builtins_at(path, problem)) {
      return *library;
    } else {
      notes.push_back(std::move(problem));
    }
  }
  notes.push_back(
      formatted("put {} of this relaxc beside librelaxc.so or the program, or link relaxc::builtins (docs/deploy.md)",
                kBuiltinsFile));
  throw CompileError({{.span = span,
                       .message = formatted("function '{}' is one of {}, and no such library of this relaxc was found",
                                            printable(name), kBuiltinsFile),
                       .notes = std::move(notes)}});
}

// What a call of a builtin gave, copied: a vector or text in it is memory that only the library can free.
struct BuiltinAnswer {
  Value result = {};
  BuiltinFailure failure = {};

  BuiltinTaker taker() {
    return {this,
            [](void* to, const Value& result) noexcept {
              auto& answer = *static_cast<BuiltinAnswer*>(to);
              answer.or_out_of_memory([&] { answer.result = result; });
            },
            [](void* to, BuiltinFailure::Kind kind, std::string_view message) noexcept {
              auto& answer = *static_cast<BuiltinAnswer*>(to);
              answer.or_out_of_memory([&] { answer.failure = {kind, std::string(message)}; });
            }};
  }

 private:
  template <class Copy>
  void or_out_of_memory(const Copy& copy) noexcept {
    try {
      copy();
    } catch (const std::bad_alloc&) {
      failure = {BuiltinFailure::Kind::kOutOfMemory, {}};
    }
  }
};

[[noreturn]] void throw_failure(const BuiltinFailure& failure) {
  switch (failure.kind) {
    case BuiltinFailure::Kind::kForm:
      throw FormError(failure.message);
    case BuiltinFailure::Kind::kOutOfMemory:
      throw OutOfMemory(failure.message);
    case BuiltinFailure::Kind::kNone:
    case BuiltinFailure::Kind::kOther:
      break;
  }
  throw RuntimeError(failure.message);
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

BuiltinFunction open_builtin(const std::string& name, const Span& span) {
  if (!is_outside(name)) return nullptr;
  const BuiltinLibrary& library = open_builtins(name, span);
  const Builtin* row = find_item(library.rows, name, &Builtin::name);
  if (!row) return nullptr;
  return [&library, row](BuiltinContext& context, std::span<const Value> arguments) {
    BuiltinAnswer answer;
    library.call(*row, context, arguments, answer.taker());
    if (answer.failure.kind != BuiltinFailure::Kind::kNone) throw_failure(answer.failure);
    return std::move(answer.result);
  };
}

}  // namespace relaxc::vm
