// The files of the folder, for keys that are hashes (vm/content_hash.h):
//
//   KEY.so     the artifact; its metadata has the key, too. The key is a hash of the settings, of the compiler's build
//              and of the contents of all files that the model is read from
//   KEY.info   the model's path, the target, and what the compilation warned of; a use renews its time of modification
//   KEY.files  the names of a model's other files, by a hash of the settings and of the model's own content
//   KEY.kernel a lowered program, or object code (codegen/kernel_files.h)
//   KEY.hash   a large file's hash, by its path: it holds as long as size, times and inode of the file are the same
#include "codegen/artifact_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>

#include "codegen/build_id.h"
#include "codegen/cache_folder.h"
#include "codegen/kernel_files.h"
#include "codegen/options.h"
#include "codegen/target.h"
#include "codegen/text_file.h"
#include "ir/text/printer.h"
#include "passes/tables.h"
#include "support/guard.h"
#include "support/joined.h"
#include "support/library_file.h"
#include "support/lists.h"
#include "support/printable.h"
#include "vm/content_hash.h"
#include "vm/error.h"
#include "vm/output_file.h"

namespace relaxc {

namespace {

namespace fs = std::filesystem;
using vm::ContentHash;

constexpr const char* kKeyOfCache = "cache_key";  // of Executable::metadata

// Reads a file of a few lines; nullopt where there is none.
std::optional<std::vector<std::string>> read_lines(const std::string& path) {
  if (!codegen::is_cached_file(path)) return std::nullopt;
  const std::string text = read_text(path);
  return map_each(parts_of(text, '\n'), [](std::string_view line) { return std::string(line); });
}

// Returns the rest of the line that begins with the word.
std::string line_of(const std::vector<std::string>& lines, const std::string& word) {
  for (const std::string& line : lines) {
    if (line.starts_with(word + " ")) return line.substr(word.size() + 1);
  }
  return "";
}

// Hashes files. Those of more than a megabyte are not read again as long as nothing about them has changed.
class FileHashes {
 public:
  explicit FileHashes(std::string folder) : folder_(std::move(folder)) {}

  std::string of(const std::string& path) const {
    struct stat status{};
    constexpr int64_t kSmall = 1 << 20;
    if (stat(path.c_str(), &status) != 0 || status.st_size < kSmall) return vm::hash_of_file(path);
    const std::string note =
        fmt::format("{}/{}.hash", folder_, ContentHash().add(fs::absolute(path).string()).digest());
    const std::string identity = identity_of(status);
    const auto known = read_lines(note);
    if (known && known->size() >= 2 && known->at(0) == identity) return known->at(1);
    std::string hash = vm::hash_of_file(path);
    if (is_settled(status)) keep(note, fmt::format("{}\n{}\n", identity, hash));
    return hash;
  }

 private:
  static std::string identity_of(const struct stat& file) {
    return fmt::format("{} {} {} {}.{} {}.{}", file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                       file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
  }
  // A file that was written a moment ago may be written again without another time: clocks of file systems tick slowly.
  static bool is_settled(const struct stat& file) {
    constexpr int64_t kSeconds = 2;
    return time(nullptr) - std::max(file.st_mtim.tv_sec, file.st_ctim.tv_sec) >= kSeconds;
  }
  static void keep(const std::string& path, const std::string& text) {
    try {
      vm::write_file(path, text);
    } catch (const RuntimeError&) {  // the folder does not exist yet, or the disk is full: it is read again
    }
  }
  std::string folder_;
};

// Returns why the result of a compilation under these settings is not kept; "" where it may be.
std::string why_not_kept(const CompileSettings& settings, const ArtifactCache& cache) {
  const RunnerOptions defaults;
  const RunnerOptions& runner = settings.runner;
  const bool shows = !runner.print_after.empty() || !runner.dump_dir.empty() || runner.time_passes;
  const bool differs = !runner.stop_after.empty() || runner.bisect_limit != defaults.bisect_limit ||
                       runner.verify_each != defaults.verify_each;
  const bool has_rules = settings.kernels || !settings.schedules.empty();
  const bool listens = settings.decided || settings.scheduled || settings.claimed || settings.unconverted;
  const bool knows_rules = !has_rules || !cache.rule_files.empty();
  if (cache.folder.empty()) return "no cache is used";
  if (settings.interpret) return "the interpreter runs the kernels";
  if (shows || differs || listens) return "the compilation is to be seen or stopped on its way";
  if (!knows_rules) return "the files of kernels and schedules are not known";
  if (settings.contents) return "the model is not in a file";
  return tables_of(settings).identity() ? "" : "the host program adds operators or passes";
}

// Returns the hash of all that the result depends on, beside the model's files. why_not_kept() looks at settings that
// listen, and rules are in files.
std::string key_of_settings(const std::string& path, const CompileSettings& settings, const ArtifactCache& cache) {
  ContentHash hash;
  hash.add(codegen::compiler_build()).add(print_target(codegen::parse_target(settings.target)));
  hash.add(split_text_path(path).module);
  for (const CompileOption& row : compile_options()) {
    if (row.name != std::string_view("target")) hash.add(row.text(settings));
  }
  for (const auto& [name, size] : settings.dims) hash.add(fmt::format("{} {}", size, name));
  for (const auto& [name, range] : settings.dim_ranges)
    hash.add(fmt::format("{} {} {}", range.least, range.most, name));
  hash.add(fmt::format("{} {} caches", settings.caches.by_name, settings.caches.may_be_missing));
  for (const auto& [past, present] : settings.caches.named)
    hash.add(fmt::format("{} {}", past.size(), past)).add(present);
  auto add_types = [&](const std::map<std::string, Type>& types) {
    hash.add(fmt::format("{} types", types.size()));
    for (const auto& [name, type] : types) hash.add(name).add(print_type(type));
  };
  add_types(settings.types);
  if (is_text_file(split_text_path(path).file)) add_types(settings.input_types);
  for (const auto& [name, tensor] : settings.params) {
    const auto* bytes = static_cast<const std::byte*>(tensor.raw());
    hash.add(name).add(to_string(tensor.dtype())).add(joined(tensor.shape(), ","));
    hash.add(std::span(bytes, static_cast<size_t>(tensor.bytes())));
  }
  hash.add(*tables_of(settings).identity());
  auto add_files = [&](const std::vector<std::string>& files) {
    hash.add(fmt::format("{} files", files.size()));
    for (const std::string& file : files) hash.add(file).add(vm::hash_of_file(file));
  };
  add_files(cache.rule_files);
  add_files(settings.linked);
  hash.add(joined(settings.host_symbols, ","));
  add_files(map_each(settings.libraries, [](const auto& library) { return library->path(); }));
  return hash.digest();
}

// Returns the files beside a text that it reads constants from; nullopt where that is not plain to see.
std::optional<std::vector<std::string>> files_beside_text(const std::string& text, const std::string& path) {
  constexpr std::string_view kCall = "load_safetensors";
  std::vector<std::string> files;
  for (size_t at = text.find(kCall); at != std::string::npos; at = text.find(kCall, at)) {
    at = text.find_first_not_of(" \t", at + kCall.size());
    if (at == std::string::npos || text[at] != '(') return std::nullopt;
    at = text.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos) return std::nullopt;
    const char quote = text[at];
    const size_t end = text.find(quote, at + 1);
    const bool is_plain = (quote == '"' || quote == '\'') && end != std::string::npos;
    const std::string name = is_plain ? text.substr(at + 1, end - at - 1) : "";
    if (!is_plain || name.find('\\') != std::string::npos) return std::nullopt;
    files.push_back((fs::path(path).parent_path() / name).string());
  }
  return files;
}

// The notes and warnings of a compilation, to be said again where its artifact is used: lines of a file, which begin
// with a word that tells what they are.
class Said {
 public:
  void note(const std::string& text) { add(kNote, text); }
  void warn(const std::string& text) { add(kWarning, text); }
  const std::string& lines() const { return lines_; }

  // Says what is among the lines of a file.
  static void repeat(const std::vector<std::string>& lines, const ArtifactCache& cache) {
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool is_warning = lines[i].starts_with(kWarning);
      if (!is_warning && !lines[i].starts_with(kNote)) continue;
      std::string text = lines[i].substr(std::strlen(is_warning ? kWarning : kNote));
      for (; i + 1 < lines.size() && lines[i + 1].starts_with(kMore); ++i)
        text += "\n" + lines[i + 1].substr(std::strlen(kMore));
      if (const auto& say = is_warning ? cache.warn : cache.note) say(text);
    }
  }

 private:
  static constexpr const char *kNote = "said ", *kWarning = "warned ", *kMore = "more ";
  void add(const char* kind, const std::string& text) {
    std::lock_guard lock(mutex_);
    for (std::string_view line : parts_of(text, '\n')) {
      lines_ += fmt::format("{}{}\n", kind, line);
      kind = kMore;
    }
  }
  std::mutex mutex_;
  std::string lines_;
};

// Returns whether this is a name of a file that the cache writes.
bool has_name_of_cache(const fs::path& path) {
  const std::string suffix = path.extension().string();
  const bool is_known = suffix == ".so" || suffix == ".info" || suffix == ".files" || suffix == ".hash" ||
                        suffix == codegen::kKernelSuffix;
  return is_known && codegen::is_cache_key(path.stem().string());
}

// Returns the settings with callbacks that note what is said, too.
CompileSettings listening(const CompileSettings& settings, const std::shared_ptr<Said>& said) {
  CompileSettings result = settings;
  result.warn = [said, warn = settings.warn](const Diagnostic& warning) {
    said->warn(to_string(warning));
    if (warn) warn(warning);
  };
  if (settings.report) {
    result.report = [said, report = settings.report](const std::string& line) {
      said->note(line);
      report(line);
    };
  }
  return result;
}

// Says once that the cache cannot be written, which may show at its first file or at its last one.
class WriteWarning {
 public:
  explicit WriteWarning(const ArtifactCache& cache) : warn_(cache.warn), folder_(cache.folder) {}
  void say(const std::string& why) {
    std::call_once(said_, [&] {
      if (!warn_) return;
      // Room helps only in a folder that can be a cache.
      const bool is_cache = fs::exists(folder_) && why_nothing_is_cached(folder_).empty();
      const char* room = is_cache ? "make room there (relaxc cache clear), or " : "";
      warn_(fmt::format(
          "warning: nothing more is kept in the cache '{}': {}; {}name another folder (--cache DIR, RELAXC_CACHE)",
          folder_, why, room));
    });
  }

 private:
  const std::function<void(const std::string&)> warn_;
  const std::string folder_;
  std::once_flag said_;
};

// One model in the cache.
class Entry {
 public:
  Entry(const std::string& path, const CompileSettings& settings, const ArtifactCache& cache,
        std::shared_ptr<WriteWarning> warning)
      : path_(path),
        file_(split_text_path(path).file),
        cache_(cache),
        warning_(std::move(warning)),
        hashes_(cache.folder) {
    settings_key_ = key_of_settings(path, settings, cache);
    model_key_ = ContentHash().add(settings_key_).add(hashes_.of(file_)).digest();
    if (const auto others = read_lines(at(model_key_, "files"))) key_ = key_with(*others);
  }

  std::string artifact() const { return at(key_, "so"); }

  // Returns why load() returned nothing.
  std::string why_missing() const {
    if (!why_unused_.empty()) return why_unused_;
    if (!key_.empty()) return "the artifact was removed, or files beside the model have changed";
    const std::string model = printable(fs::absolute(path_).string(), std::string::npos);
    for (const CachedArtifact& other : cached_artifacts(cache_.folder)) {
      if (other.model == model)
        return fmt::format(
            "the cache has {}, which is of other contents of the model, other settings or another build of relaxc",
            other.path);
    }
    return "the model was not compiled before";
  }

  // Returns the program where it is there, after telling what its compilation said.
  std::optional<Program> load(const LoadOptions& options) {
    if (key_.empty() || !codegen::is_cached_file(artifact()) || !is_private()) return std::nullopt;
    try {
      Program program = Program::load(artifact(), options);
      program.check_weights();
      const std::string* key = find_value(program.executable().metadata, std::string(kKeyOfCache));
      const auto info = read_lines(at(key_, "info"));
      if (!key || *key != key_ || !info) fail({}, "'{}' is not what the cache wrote there", artifact());
      utimensat(AT_FDCWD, at(key_, "info").c_str(), nullptr, 0);  // not the artifact's, which would count as a change
      Said::repeat(*info, cache_);
      return program;
    } catch (const CompileError& error) {
      note_unused(error.diagnostics().front().message);
    } catch (const RuntimeError& error) {
      note_unused(error.what());
    }
    return std::nullopt;
  }

  // Keeps the artifact and returns the program in it; nullopt where that fails. The command goes on
  // without the cache, and note_failure() says why once the module has been found to be right.
  std::optional<Program> store(CompiledModule& module, const Said& said, const LoadOptions& options) {
    try {
      const auto others = other_files(module);
      if (!others) return std::nullopt;
      // The model may have been replaced while it was compiled.
      if (ContentHash().add(settings_key_).add(hashes_.of(file_)).digest() != model_key_) return std::nullopt;
      codegen::make_private_folder(cache_.folder);
      codegen::check_private_folder(cache_.folder);
      key_ = key_with(*others);
      if (key_.empty()) return std::nullopt;
      for (const std::string& path : {at(key_, "info"), artifact(), at(model_key_, "files")}) codegen::make_way(path);
      module.set_metadata(kKeyOfCache, key_);
      std::string info = fmt::format("model {}\ntarget {}\n",
                                     printable(fs::absolute(path_).string(), std::string::npos), module.target().cpu);
      info += said.lines();
      vm::write_file(at(key_, "info"), info);
      module.write(artifact());
      vm::write_file(at(model_key_, "files"), joined(*others, "\n"));
      Program program = Program::load(artifact(), options);
      trim();
      return program;
    } catch (const CompileError& error) {
      failure_ = fmt::format("note: the artifact is not kept in the cache: {}", error.diagnostics().front().message);
    } catch (const RuntimeError& error) {
      warning_->say(error.what());
    }
    return std::nullopt;
  }
  void note_failure() const {
    if (!failure_.empty()) note(failure_);
  }

 private:
  // Returns whether nobody else may write to the folder, of which a warning tells.
  bool is_private() {
    try {
      codegen::check_private_folder(cache_.folder);
      return true;
    } catch (const RuntimeError& error) {
      why_unused_ = error.what();
      warning_->say(error.what());
      return false;
    }
  }
  std::string at(const std::string& key, const char* suffix) const {
    return fmt::format("{}/{}.{}", cache_.folder, key, suffix);
  }
  void note(const std::string& line) const {
    if (cache_.note) cache_.note(line);
  }
  void note_unused(const std::string& why) {
    why_unused_ = why;
    note(fmt::format("note: an artifact in the cache is not used, and the model is compiled again: {}", why));
  }

  // Returns the key for these other files of the model; "" where one of them cannot be read.
  std::string key_with(const std::vector<std::string>& others) const {
    ContentHash hash;
    hash.add(model_key_);
    try {
      for (const std::string& file : others) {
        if (!file.empty()) hash.add(hashes_.of((folder() / file).string()));
      }
    } catch (const RuntimeError&) {
      return "";
    }
    return hash.digest();
  }
  fs::path folder() const { return fs::path(file_).parent_path(); }

  // Returns the other files that the model was read from, below its folder; nullopt where they are not known.
  std::optional<std::vector<std::string>> other_files(const CompiledModule& module) const {
    std::vector<std::string> files;
    if (is_text_file(file_)) {
      const auto beside = files_beside_text(read_text(file_), file_);
      if (!beside) return std::nullopt;
      files = *beside;
    } else {
      for (const auto& source : module.sources()) files.push_back(source->path());
    }
    std::vector<std::string> result;
    for (const std::string& file : files) {
      if (file == file_) continue;
      result.push_back(fs::path(file).lexically_relative(folder().empty() ? "." : folder()).string());
      if (result.back().empty() || result.back().find('\n') != std::string::npos) return std::nullopt;
    }
    return result;
  }

  // Removes artifacts, the one whose last use is the oldest first, until the others are small enough. The newest stays.
  void trim() const {
    constexpr uint64_t kMostNotes = 4096, kAnyBytes = std::numeric_limits<uint64_t>::max();
    for (const char* notes : {".files", ".hash"}) codegen::trim_folder(cache_.folder, notes, kAnyBytes, kMostNotes);
    uint64_t bytes = 0;
    for (const CachedArtifact& artifact : cached_artifacts(cache_.folder)) {
      bytes += artifact.bytes;
      if (bytes <= cache_.most_bytes || artifact.path == this->artifact()) continue;
      std::error_code ignored;
      fs::remove(artifact.path, ignored);
      fs::remove(fs::path(artifact.path).replace_extension(".info"), ignored);
    }
  }

  const std::string& path_;
  const std::string file_;
  const ArtifactCache& cache_;
  const std::shared_ptr<WriteWarning> warning_;
  const FileHashes hashes_;
  std::string settings_key_, model_key_, key_, why_unused_, failure_;
};

// Returns the size of the weights, which are the most of an artifact.
uint64_t bytes_of_weights(const CompiledModule& module) {
  uint64_t bytes = 0;
  for (const Tensor& constant : module.executable().constants) bytes += static_cast<uint64_t>(constant.bytes());
  return bytes;
}

std::shared_ptr<ResultStore> kernels_of(const ArtifactCache& cache, const std::shared_ptr<WriteWarning>& warning) {
  if (cache.folder.empty()) return nullptr;
  codegen::KernelFilesOptions options{cache.folder, cache.most_kernel_bytes, cache.most_kernels};
  if (cache.detail) {
    options.at_end = [detail = cache.detail, folder = cache.folder](size_t found, size_t kept) {
      detail(fmt::format("{} lowered programs and kernels were found in {}, {} are new", found, folder, kept));
    };
  }
  options.on_failure = [warning](const std::string& why) { warning->say(why); };
  return codegen::kernel_files(std::move(options));
}

}  // namespace

CachedProgram load_cached(const std::string& path, const CompileSettings& settings, const ArtifactCache& cache,
                          LoadOptions options) {
  if (is_library_file(path)) return {load_program(path, settings, std::move(options))};
  if (const std::string why = why_not_kept(settings, cache); !why.empty())
    return {load_program(path, settings, std::move(options)), false, "", why};
  const auto warning = std::make_shared<WriteWarning>(cache);
  std::optional<Entry> entry;
  try {
    entry.emplace(path, settings, cache, warning);
  } catch (const RuntimeError& error) {  // a file cannot be read, and the compilation says so
    return {load_program(path, settings, std::move(options)), false, "", error.what()};
  }
  if (std::optional<Program> program = entry->load(options)) return {std::move(*program), true, entry->artifact()};
  const std::string why = entry->why_missing();
  auto said = std::make_shared<Said>();
  CompileSettings heard = listening(settings, said);
  if (!heard.store) heard.store = kernels_of(cache, warning);
  CompiledModule module = compile_file(path, heard);
  if (bytes_of_weights(module) < cache.most_bytes) {
    if (std::optional<Program> program = entry->store(module, *said, options))
      return {std::move(*program), false, entry->artifact(), why};
  }
  Program program = module.load(std::move(options));
  entry->note_failure();
  return {std::move(program), false, "", why};
}

std::shared_ptr<ResultStore> kernels_in(const ArtifactCache& cache) {
  return kernels_of(cache, std::make_shared<WriteWarning>(cache));
}

CachedKernels cached_kernels(const std::string& folder) {
  CachedKernels result;
  for (const codegen::CachedFile& file : codegen::cached_files(folder, codegen::kKernelSuffix))
    ++result.files, result.bytes += file.bytes;
  return result;
}

std::string default_cache_folder() {
  if (const char* stated = std::getenv("RELAXC_CACHE")) return stated;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/relaxc/artifacts";  // others are to be ignored
  return home && *home == '/' ? std::string(home) + "/.cache/relaxc/artifacts" : "";
}

std::string why_nothing_is_cached(const std::string& folder) {
  if (folder.empty()) return "no folder is named";
  std::error_code ignored;
  fs::path existing = fs::absolute(folder, ignored);
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) existing = existing.parent_path();
  if (!fs::is_directory(existing, ignored)) return fmt::format("'{}' is not a folder", existing.string());
  if (access(existing.c_str(), W_OK | X_OK) != 0)
    return fmt::format("'{}' cannot be written to: {}", existing.string(), std::strerror(errno));
  if (!fs::exists(folder, ignored)) return {};
  try {
    codegen::check_private_folder(folder);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return {};
}

std::vector<CachedArtifact> cached_artifacts(const std::string& folder) {
  std::vector<CachedArtifact> result;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    struct stat status{};
    const bool is_artifact = has_name_of_cache(file.path()) && file.path().extension() == ".so";
    if (!is_artifact || stat(file.path().c_str(), &status) != 0) continue;
    CachedArtifact artifact{.path = file.path().string(), .bytes = static_cast<uint64_t>(status.st_size)};
    const std::string note = fs::path(file.path()).replace_extension(".info").string();
    const auto info = read_lines(note);
    if (info && stat(note.c_str(), &status) != 0) continue;
    if (info) artifact.model = line_of(*info, "model"), artifact.target = line_of(*info, "target");
    artifact.last_use = std::chrono::system_clock::from_time_t(status.st_mtim.tv_sec) +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(
                            std::chrono::nanoseconds(status.st_mtim.tv_nsec));
    result.push_back(std::move(artifact));
  }
  std::ranges::sort(result, std::greater(), [](const CachedArtifact& a) { return std::pair(a.last_use, a.path); });
  return result;
}

uint64_t clear_cache(const std::string& folder) {
  auto bytes_of = [](const std::vector<CachedArtifact>& artifacts) {
    return std::accumulate(artifacts.begin(), artifacts.end(), uint64_t{0},
                           [](uint64_t sum, const CachedArtifact& artifact) { return sum + artifact.bytes; });
  };
  const uint64_t before = bytes_of(cached_artifacts(folder));
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    if (has_name_of_cache(file.path())) files.push_back(file.path());
  }
  for (const fs::path& file : files) {
    if (!fs::remove(file, error) && fs::exists(file))
      throw_runtime_error("cannot remove '{}': {}", file.string(), error.message());
  }
  return before - bytes_of(cached_artifacts(folder));
}

}  // namespace relaxc
