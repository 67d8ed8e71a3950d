#include "codegen/shipped.h"

#include <algorithm>

#include "vm/shipped_libraries.h"

namespace relaxc::codegen {

namespace {

struct FunctionsOfLibrary {
  std::string_view prefix;  // of their names
  const vm::ShippedLibrary& library;
};
constexpr FunctionsOfLibrary kFunctions[] = {{"relaxc.image.", vm::kImages}};

}  // namespace

vm::UserLibraries shipped_libraries(const vm::Executable& executable, const vm::UserLibraries& given) {
  vm::UserLibraries result;
  for (const FunctionsOfLibrary& row : kFunctions) {
    auto is_needed = [&](const std::string& name) {
      if (!name.starts_with(row.prefix)) return false;
      return std::ranges::none_of(given, [&](const auto& library) {
        return std::ranges::any_of(library->rows(), [&](const relaxc_kernel_row& own) { return own.name == name; });
      });
    };
    if (std::ranges::any_of(executable.builtins, is_needed)) result.push_back(vm::open_shipped_library(row.library));
  }
  return result;
}

}  // namespace relaxc::codegen
