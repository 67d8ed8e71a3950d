// <relaxc/artifact_cache.h>: compiled models in a folder, so that the same model is compiled once:
//
//   relaxc::ArtifactCache cache{.folder = relaxc::default_cache_folder()};
//   relaxc::Session session(relaxc::load_cached("model.onnx", settings, cache).program);
//
// Equal are models whose files have the same content, external data included, under the same settings, for the same
// target with its features and figures, and by the same build of the compiler and of LLVM.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compile.h"

namespace relaxc {

struct ArtifactCache {
  std::string folder = {};                         // "": nothing is kept
  uint64_t most_bytes = uint64_t{4} << 30;         // of all artifacts; those whose last use is the oldest go first
  uint64_t most_kernel_bytes = uint64_t{1} << 30;  // of all programs and object code beside them, in the same way
  uint64_t most_kernels = 16384;                   // files of these
  // The files from which schedules and kernels of the settings were read: their content counts. Where there are such
  // rules and this is empty, nothing is kept.
  std::vector<std::string> rule_files = {};
  // Is called with lines for a person: what the compilation of a cached artifact said, and why one is not used or kept.
  std::function<void(const std::string&)> note = nullptr;
  // Is called with warnings as to_string(Diagnostic) gives them: those of that compilation, and that the folder cannot
  // be written to.
  std::function<void(const std::string&)> warn = nullptr;
  // Is called with lines about what is as usual: how many programs and kernels were found.
  std::function<void(const std::string&)> detail = nullptr;
};

struct CachedProgram {
  Program program;
  bool was_cached = false;
  std::string artifact = {};      // in the folder; "" where none was kept
  std::string why_compiled = {};  // "the model was not compiled before, ..."; "" where it was cached or is an artifact
};

// Returns what compile_file(path, settings).load(options) returns. It only compiles where a setting asks for something
// to be seen, such as dumps, decisions or the interpreter, and where rows of a host program are among the tables, of
// which nothing can be known. Safe for several processes, as artifacts appear whole, by rename. The folder must belong
// to the user, and nobody else may write there.
CachedProgram load_cached(const std::string& path, const CompileSettings& settings, const ArtifactCache& cache,
                          LoadOptions options = {});

// Throws a CompileError where the settings ask for what only a compilation can do, of an artifact, which is compiled
// already.
void check_settings_of_artifact(const std::string& path, const CompileSettings& settings);

// Returns the store of lowered programs and object code in the cache's folder, as load_cached() uses it. With it in
// PassSettings::store, a changed model compiles only the programs that are new. Null where there is no folder.
std::shared_ptr<ResultStore> kernels_in(const ArtifactCache& cache);

// Returns $RELAXC_CACHE where it is set ("": no cache), else relaxc/artifacts in $XDG_CACHE_HOME or ~/.cache.
std::string default_cache_folder();

// Returns why load_cached() keeps nothing in the folder, as a sentence; "" where it does, or would make the folder.
std::string why_nothing_is_cached(const std::string& folder);

struct CachedArtifact {
  std::string path = {}, model = {}, target = {};
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point last_use = {};
};
// Returns the artifacts in the folder, the one that was used last first.
std::vector<CachedArtifact> cached_artifacts(const std::string& folder);
// Returns how many files of lowered programs and object code the folder has, and their bytes.
struct CachedKernels {
  uint64_t files = 0, bytes = 0;
};
CachedKernels cached_kernels(const std::string& folder);
// Removes all that load_cached() keeps in the folder, and nothing else. Returns the bytes of the artifacts. Throws
// RuntimeError for a file that cannot be removed.
uint64_t clear_cache(const std::string& folder);

}  // namespace relaxc
