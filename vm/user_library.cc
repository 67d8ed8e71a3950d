#include "vm/user_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/printable.h"
#include "vm/error.h"

namespace relaxc::vm {

std::shared_ptr<const UserLibrary> UserLibrary::open(const std::string& path) {
  std::shared_ptr<UserLibrary> library(new UserLibrary);
  library->path_ = path;
  library->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const Span span = span_of_file(path);
  if (!library->handle_) fail(span, "the library does not load: {}", printable(dlerror()));
  const auto* table = static_cast<const relaxc_kernel_table*>(dlsym(library->handle_, "relaxc_kernels"));
  if (!table)
    fail(span,
         "the library exports no table of kernels; define `const relaxc_kernel_table relaxc_kernels` in it "
         "(<relaxc/kernel_table.h>)");
  if (table->version != RELAXC_KERNEL_TABLE_VERSION)
    fail(span,
         "its table of kernels has version {}, this relaxc reads version {}; compile it with this relaxc's headers",
         table->version, RELAXC_KERNEL_TABLE_VERSION);
  if (table->num_rows < 0 || (table->num_rows > 0 && !table->rows)) fail(span, "its table of kernels has no rows");
  library->rows_ = {table->rows, static_cast<size_t>(table->num_rows)};
  for (size_t i = 0; i < library->rows_.size(); ++i) {
    const relaxc_kernel_row& row = library->rows_[i];
    if (!row.name) fail(span, "row {} of its table of kernels has no name", i);
    for (size_t other = 0; other < i; ++other) {
      if (std::string_view(library->rows_[other].name) == row.name)
        fail(span, "its table of kernels has two rows '{}'; give each a name of its own", printable(row.name));
    }
    if ((row.kernel == nullptr) == (row.packed == nullptr))
      fail(span, "row '{}' of its table of kernels has {}; set one of kernel and packed", printable(row.name),
           row.kernel ? "two functions" : "no function");
  }
  return library;
}

UserLibrary::~UserLibrary() {
  if (handle_) dlclose(handle_);
}

void* UserLibrary::find_symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

void check_names(const UserLibraries& libraries) {
  std::map<std::string_view, std::pair<const relaxc_kernel_row*, const UserLibrary*>> known;
  for (const auto& library : libraries) {
    for (const relaxc_kernel_row& row : library->rows()) {
      const auto [entry, is_new] = known.try_emplace(row.name, &row, library.get());
      const auto& [other, its_library] = entry->second;
      if (!is_new && (other->kernel != row.kernel || other->packed != row.packed))
        fail({}, "'{}' and '{}' both have a kernel '{}'; give one of them another name", printable(its_library->path()),
             printable(library->path()), printable(row.name));
    }
  }
}

void add_libraries(const UserLibraries& libraries, Registry& registry) {
  check_names(libraries);
  for (const auto& library : libraries) {
    for (const relaxc_kernel_row& row : library->rows()) {
      if (registry.has(row.name)) continue;
      if (row.kernel) registry.add_kernel(row.name, row.kernel);
      if (row.packed) registry.add_packed(row.name, row.packed);
    }
  }
}

UserLibraries open_needed_libraries(const std::string& names, const std::string& artifact) {
  UserLibraries result;
  for (std::string_view name : parts_of(names, '\n')) {
    std::filesystem::path path(name), folder = std::filesystem::absolute(artifact).parent_path();
    std::error_code ignored;
    const std::filesystem::path beside = folder / path.filename();
    const bool is_beside = std::filesystem::exists(beside, ignored), is_there = std::filesystem::exists(path, ignored);
    result.push_back(UserLibrary::open((is_beside ? beside : is_there ? path : path.filename()).string()));
  }
  return result;
}

}  // namespace relaxc::vm
