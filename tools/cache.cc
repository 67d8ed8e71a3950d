// relaxc cache, and the flags of commands that use the cache of artifacts.
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "codegen/target.h"
#include "support/library_file.h"
#include "tools/tool.h"
#include "vm/cpu.h"

namespace relaxc::tools {

namespace {

std::string size_text(uint64_t bytes) {
  constexpr double kMegabyte = 1e6;
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / kMegabyte);
}

template <class TimePoint>
std::string age_text(TimePoint time) {
  using namespace std::chrono;
  const auto minutes_ago = duration_cast<minutes>(TimePoint::clock::now() - time).count();
  constexpr int64_t kHour = 60, kDay = 24 * kHour;
  if (minutes_ago < kHour) return fmt::format("{} min", minutes_ago);
  if (minutes_ago < kDay) return fmt::format("{} h", minutes_ago / kHour);
  return fmt::format("{} d", minutes_ago / kDay);
}

int list(const CacheOptions& options) {
  const std::vector<CachedArtifact> artifacts = cached_artifacts(options.folder);
  uint64_t bytes = 0;
  for (const CachedArtifact& artifact : artifacts) {
    bytes += artifact.bytes;
    print_message("{:>10} {:>8}  {}  {}\n", size_text(artifact.bytes), age_text(artifact.last_use),
                  artifact.model.empty() ? artifact.path : artifact.model, artifact.target);
  }
  const ArtifactCache limits;
  print_message("{}: {}, {} of {}\n", options.folder, counted(artifacts.size(), "artifact"), size_text(bytes),
                size_text(limits.most_bytes));
  const CachedKernels kernels = cached_kernels(options.folder);
  print_message("beside them {} of at most {} files of kernels, {} of {}\n", kernels.files, limits.most_kernels,
                size_text(kernels.bytes), size_text(limits.most_kernel_bytes));
  for (const std::string& problem : options.problems()) print_message("problem: {}\n", problem);
  return kRight;
}

int clear(const CacheOptions& options) {
  const size_t count = cached_artifacts(options.folder).size();
  print_message("{}: {} of {} removed\n", options.folder, counted(count, "artifact"),
                size_text(clear_cache(options.folder)));
  return kRight;
}

void check(const CacheOptions& options) {
  const char* stated = std::getenv("RELAXC_CACHE");
  if (options.folder.empty() && stated != nullptr && *stated == '\0')
    throw CLI::ValidationError("the cache is off, as RELAXC_CACHE is empty; name its folder, --cache DIR");
  if (options.folder.empty())
    throw CLI::ValidationError("there is no cache: neither RELAXC_CACHE nor HOME is set; name its folder, --cache DIR");
}

}  // namespace

std::optional<uint64_t> CacheOptions::free_bytes() const {
  struct statvfs space{};
  if (statvfs(folder.c_str(), &space) != 0) return std::nullopt;
  return space.f_bavail * space.f_frsize;
}

std::vector<std::string> CacheOptions::problems() const {
  std::vector<std::string> result;
  if (const std::string why = why_nothing_is_cached(folder); !why.empty())
    result.push_back(fmt::format(
        "compiled models are not kept: {}; --cache DIR or RELAXC_CACHE names a folder that you can write to", why));
  constexpr uint64_t kLeastFree = 256 << 20;
  if (const auto free = free_bytes(); free && *free < kLeastFree)
    result.push_back(fmt::format("the cache's file system has {} left: relaxc cache clear, or RELAXC_CACHE in another",
                                 size_text(*free)));
  return result;
}

void CacheOptions::add_to(CLI::App& app) {
  app.add_option("--cache", folder, "the folder of compiled models (relaxc help cache)")->type_name("DIR");
  app.add_flag("--no-cache", off, "compile, whether or not it was compiled before");
}

ArtifactCache CacheOptions::get(const CompilerOptions& compiler, const std::string& model) const {
  ArtifactCache cache{.folder = off ? "" : folder};
  for (const std::string& file : compiler.rule_files(model)) {
    if (!std::filesystem::is_directory(file)) {
      cache.rule_files.push_back(file);
      continue;
    }
    for (const char* name : {kTuningRecords, kWorkloads}) cache.rule_files.push_back(file + "/" + name);
  }
  cache.note = cache.warn = [](const std::string& line) { print_note("{}\n", line); };
  cache.detail = [](const std::string& line) { print_detail("{}\n", line); };
  return cache;
}

CachedProgram CacheOptions::load(const std::string& model, const CompileSettings& settings,
                                 const CompilerOptions& compiler) const {
  if (!settings.interpret && !is_library_file(model)) {  // before all is compiled for nothing
    const std::string architecture = codegen::architecture(codegen::parse_target(settings.target));
    if (architecture != vm::host_architecture())
      throw CLI::ValidationError(
          fmt::format("--target {}: code for {} does not run on this machine, which is {}; relaxc compile makes an "
                      "artifact for the other one",
                      settings.target, architecture, vm::host_architecture()));
  }
  CachedProgram loaded = load_cached(model, settings, get(compiler, model));
  if (!loaded.why_compiled.empty()) print_detail("{} was compiled, because {}\n", model, loaded.why_compiled);
  if (loaded.was_cached) {
    std::error_code ignored;
    print_detail("{} is in the cache: {} ({}, compiled {} ago)\n", model, loaded.artifact,
                 size_text(std::filesystem::file_size(loaded.artifact, ignored)),
                 age_text(std::filesystem::last_write_time(loaded.artifact, ignored)));
  }
  return loaded;
}

void CacheOptions::note_artifacts(const std::vector<std::string>& files) const {
  const bool are_artifacts =
      std::ranges::all_of(files, [](const std::string& file) { return file.empty() || is_library_file(file); });
  if (are_artifacts && (off || folder != default_cache_folder()))
    print_note("note: '{}' is compiled already: {} changes nothing\n", files[0], off ? "--no-cache" : "--cache");
}

void add_cache(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CacheOptions>();
  CLI::App* command = app.add_subcommand("cache", "list or remove compiled models that are kept");
  auto add_folder = [options](CLI::App& to) {
    to.add_option("--cache", options->folder, "the folder (RELAXC_CACHE, else relaxc/artifacts in the user's caches)")
        ->type_name("DIR");
  };
  add_folder(*command);
  CLI::App* remove = command->add_subcommand("clear", "remove all of them");
  add_folder(*remove);
  command->require_subcommand(0, 1);
  command->footer("Example: relaxc cache clear");
  remove->footer("Example: relaxc cache clear --cache DIR");
  command->callback([options, remove, &exit_code] {
    check(*options);
    exit_code = remove->parsed() ? clear(*options) : list(*options);
  });
}

}  // namespace relaxc::tools
