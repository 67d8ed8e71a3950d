#include <dlfcn.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "passes/tables.h"
#include "support/diagnostic.h"
#include "support/file_kind.h"
#include "vm/error.h"
#include "vm/file_memory.h"
#include "vm/open_library.h"

namespace relaxc {

namespace {

// Returns the hash of the shared object, of which another kind of file is refused.
std::string hash_of_library(const std::string& path) {
  auto file = with_compile_errors({}, [&] { return vm::MappedFile::open(path); });
  const std::span<const std::byte> bytes = file->bytes();
  const auto content = recognized_content({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (content && content->kind != ContentKind::kLibrary)
    fail({}, "'{}' is not a plug-in: expected a shared object, and it is {}", path, content->what);
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string version_text(const PluginVersion& version) {
  return fmt::format("interface {}, C++ ABI {}, layout {:016x}", version.interface, version.compiler, version.layout);
}

void check_version(const std::string& path, void* library) {
  const auto* made_for = static_cast<const PluginVersion*>(dlsym(library, "relaxc_plugin_version"));
  if (!made_for)
    fail({}, "'{}' is not a plug-in: it has no 'relaxc_plugin_version'; define its entry by RELAXC_PLUGIN(tables)",
         path);
  std::string theirs = version_text(*made_for), ours = version_text(kPluginVersion);
  if (theirs != ours)
    fail({}, "plug-in '{}' was built for another relaxc ({}; this one has {}); build it again with this one's headers",
         path, theirs, ours);
}

}  // namespace

void Tables::load_plugin(const std::string& path) {
  if (std::ranges::count(plugins_, path)) fail({}, "plug-in '{}' is given twice", path);
  std::string hash = hash_of_library(path);
  // Rows point to its code, and so do results in caches of the process: it stays loaded.
  std::string reason;
  std::shared_ptr<const vm::MappedFile> file;
  void* library = vm::open_library(std::filesystem::absolute(path).native(), RTLD_NOW | RTLD_LOCAL, reason, &file);
  if (!library) fail({}, "plug-in '{}' cannot be loaded: {}", path, reason);
  check_version(path, library);
  auto entry = reinterpret_cast<void (*)(Tables&)>(dlsym(library, "relaxc_plugin"));
  if (!entry) fail({}, "plug-in '{}' has no entry 'relaxc_plugin'; define it by RELAXC_PLUGIN(tables)", path);
  plugin_ = path;
  plugins_.push_back(path);
  identity_ += fmt::format("{} {}\n", path, hash);
  auto fail_in_entry = [&](const char* what) { fail({}, "plug-in '{}' failed to add its rows: {}", path, what); };
  try {
    entry(*this);
  } catch (const CompileError& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) diagnostic.notes.push_back(fmt::format("in plug-in '{}'", path));
    throw CompileError(std::move(diagnostics));
  } catch (const std::exception& error) {
    fail_in_entry(error.what());
  } catch (...) {
    fail_in_entry("it threw an exception that is not a std::exception");
  }
  plugin_.clear();
}

std::string Tables::plugin() const {
  if (plugin_.empty()) fail({}, "no plug-in is being loaded");
  return std::filesystem::absolute(plugin_).string();
}

std::shared_ptr<Tables> load_plugins(const std::vector<std::string>& paths) {
  if (paths.empty()) return nullptr;
  auto tables = std::make_shared<Tables>();
  for (const std::string& path : paths) tables->load_plugin(path);
  return tables;
}

}  // namespace relaxc
