#include "codegen/shipped.h"

#include <algorithm>
#include <filesystem>

#include "support/diagnostic.h"

namespace relaxc::codegen {

namespace {

namespace fs = std::filesystem;

struct ShippedLibrary {
  std::string_view functions;  // the prefix of their names
  const char *file, *what, *packages;
};
constexpr ShippedLibrary kShipped[] = {
    {"relaxc.image.", "librelaxc_images.so", "decoding images (ONNX's ImageDecoder)",
     "libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev"},
};

// Returns the path of the file: beside the program, where the build or the installation has it, or found by its name.
std::string path_of(const char* file) {
  std::error_code ignored;
  std::vector<fs::path> folders = {fs::read_symlink("/proc/self/exe", ignored).parent_path()};
  folders.insert(folders.end(), std::begin(kLibraryFolders), std::end(kLibraryFolders));
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / file, ignored)) return (folder / file).string();
  }
  return file;
}

}  // namespace

vm::UserLibraries shipped_libraries(const vm::Executable& executable, const vm::UserLibraries& given) {
  vm::UserLibraries result;
  for (const ShippedLibrary& row : kShipped) {
    auto is_needed = [&](const std::string& name) {
      if (!name.starts_with(row.functions)) return false;
      return std::ranges::none_of(given, [&](const auto& library) {
        return std::ranges::any_of(library->rows(), [&](const relaxc_kernel_row& own) { return own.name == name; });
      });
    };
    if (std::ranges::none_of(executable.builtins, is_needed)) continue;
    try {
      result.push_back(vm::UserLibrary::open(path_of(row.file)));
    } catch (const CompileError& error) {
      fail({},
           "{} needs {}, which was not built or does not load ({}); install {} and build relaxc again (./dev build)",
           row.what, row.file, error.diagnostics().front().message, row.packages);
    }
  }
  return result;
}

}  // namespace relaxc::codegen
