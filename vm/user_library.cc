#include "vm/user_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include "support/diagnostic.h"
#include "support/joined.h"
#include "support/printable.h"
#include "vm/error.h"
#include "vm/missing.h"
#include "vm/open_library.h"

namespace relaxc::vm {

std::shared_ptr<const UserLibrary> UserLibrary::open(const std::string& path, Table table) {
  std::shared_ptr<UserLibrary> library(new UserLibrary);
  std::string reason;
  library->handle_ = open_library(path, RTLD_NOW | RTLD_LOCAL, reason, &library->file_);
  if (!library->handle_) fail(span_of_file(path), "the library does not load: {}", printable(reason));
  library->read_table(table);
  return library;
}

void UserLibrary::read_table(Table expected) {
  const Span span = span_of_file(path());
  const auto* table = static_cast<const relaxc_kernel_table*>(dlsym(handle_, "relaxc_kernels"));
  if (!table && expected == Table::kOptional) return;
  if (!table)
    fail(span,
         "the library exports no table of kernels; define `const relaxc_kernel_table relaxc_kernels` in it "
         "(<relaxc/kernel_table.h>)");
  if (table->version != RELAXC_KERNEL_TABLE_VERSION)
    fail(span,
         "its table of kernels has version {}, this relaxc reads version {}; compile it with this relaxc's headers",
         table->version, RELAXC_KERNEL_TABLE_VERSION);
  if (table->num_rows < 0 || (table->num_rows > 0 && !table->rows)) fail(span, "its table of kernels has no rows");
  rows_ = {table->rows, static_cast<size_t>(table->num_rows)};
  for (size_t i = 0; i < rows_.size(); ++i) {
    const relaxc_kernel_row& row = rows_[i];
    if (!row.name) fail(span, "row {} of its table of kernels has no name", i);
    for (size_t other = 0; other < i; ++other) {
      if (std::string_view(rows_[other].name) == row.name)
        fail(span, "its table of kernels has two rows '{}'; give each a name of its own", printable(row.name));
    }
    if ((row.kernel == nullptr) == (row.packed == nullptr))
      fail(span, "row '{}' of its table of kernels has {}; set one of kernel and packed", printable(row.name),
           row.kernel ? "two functions" : "no function");
  }
}

UserLibrary::~UserLibrary() {
  if (handle_) dlclose(handle_);
}

void* UserLibrary::find_symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

// Throws where a row of the one library has a name of the other with another function.
static void compare_names(const UserLibrary& one, const UserLibrary& other) {
  for (const relaxc_kernel_row& row : one.rows()) {
    for (const relaxc_kernel_row& second : other.rows()) {
      if (std::string_view(row.name) == second.name && (row.kernel != second.kernel || row.packed != second.packed))
        fail({}, "'{}' and '{}' both have a kernel '{}'; give one of them another name", printable(one.path()),
             printable(other.path()), printable(row.name));
    }
  }
}

void check_names(const UserLibraries& libraries) {
  for (size_t i = 1; i < libraries.size(); ++i) {
    for (size_t earlier = 0; earlier < i; ++earlier) compare_names(*libraries[earlier], *libraries[i]);
  }
}

// Adds a function whose results may outlive the program: they keep the library, which has the code that frees them.
static void add_packed(const relaxc_kernel_row& row, const std::shared_ptr<const UserLibrary>& library,
                       Registry& registry) {
  struct Kept {
    std::shared_ptr<const UserLibrary> library;
    Tensor tensor;  // goes first
  };
  registry.add_packed(row.name, row.packed);
  auto call = [call = *registry.find_function(row.name), library](BuiltinContext& context,
                                                                  std::span<const Value> arguments) -> Value {
    Value result = call(context, arguments);
    const Tensor* tensor = result.get_if<Tensor>();
    if (!tensor) return result;
    auto owner = std::make_shared<const Kept>(Kept{library, *tensor});
    return Tensor::view(tensor->shape(), tensor->dtype(), owner->tensor.raw(), owner);
  };
  registry.add_function(row.name, call);
}

void add_libraries(const UserLibraries& libraries, Registry& registry) {
  check_names(libraries);
  for (const auto& library : libraries) {
    for (const relaxc_kernel_row& row : library->rows()) {
      if (registry.has(row.name)) continue;
      if (row.kernel) registry.add_kernel(row.name, row.kernel);
      if (row.packed) add_packed(row, library, registry);
    }
  }
}

static std::shared_ptr<const UserLibrary> open_needed(const std::string& path, const std::string& artifact,
                                                      const Span& span) {
  auto behind_slash = [](const std::string& text) { return text.rfind('/') + 1; };  // 0 where there is none
  const std::string name = path.substr(behind_slash(path)), folder = artifact.substr(0, behind_slash(artifact));
  for (const std::string& place : {(folder.empty() ? "./" : folder) + name, path}) {
    if (access(place.c_str(), F_OK) == 0) return UserLibrary::open(place, UserLibrary::Table::kOptional);
  }
  try {
    return UserLibrary::open(name, UserLibrary::Table::kOptional);
  } catch (const CompileError&) {
    fail(span,
         "library '{}', whose functions the model calls, is not found; it is looked for beside the artifact, then as "
         "'{}', where it was when the model was compiled, then in LD_LIBRARY_PATH and the system's folders; put it "
         "into one of these places, or compile the model with its object files (--link)",
         printable(name), printable(path));
  }
}

void open_needed_libraries(const std::string& names, const std::string& artifact, const Span& span,
                           UserLibraries& libraries) {
  for (std::string_view name : parts_of(names, '\n'))
    libraries.push_back(open_needed(std::string(name), artifact, span));
}

void connect_functions(const std::string& names, const KernelLibrary& code, const UserLibraries& libraries,
                       const Span& span, Diagnostics& diagnostics) {
  for (std::string_view each : parts_of(names, '\n')) {
    const std::string name(each);
    void** slot = code.find_slot(name);
    if (!slot) continue;  // nothing calls it after all
    void* function = nullptr;
    for (const auto& library : libraries) function = function ? function : library->find_symbol(name);
    if (!function) function = dlsym(RTLD_DEFAULT, name.c_str());
    if (!function) {
      report_missing_function(diagnostics, span, name);
      continue;
    }
    // Programs of one artifact share its code, which other threads may be running.
    void* known = __atomic_exchange_n(slot, function, __ATOMIC_RELAXED);
    if (known && known != function)
      diagnostics.error(span, "the artifact is loaded already, with '{}' of another library", printable(name));
  }
}

}  // namespace relaxc::vm
