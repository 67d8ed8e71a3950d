// Lowered tensor programs and object code in the folder of the artifact cache, so that a model that was changed
// compiles only the programs that are new. The keys count for this build of the compiler only.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "support/result_store.h"

namespace relaxc::codegen {

// A store of at most so many bytes and files; those whose last use is the oldest go first, when the store is destroyed.
struct KernelFilesOptions {
  std::string folder;
  uint64_t most_bytes, most_files;
  // Is called at the end, unless nothing was asked for, with how many results were found and kept.
  std::function<void(size_t found, size_t kept)> at_end = nullptr;
  // Is called, once, with the reason why a result cannot be kept.
  std::function<void(const std::string& why)> on_failure = nullptr;
};
// The store makes the folder when it has something to keep, and stays empty where that fails or other users may write
// there.
std::shared_ptr<ResultStore> kernel_files(KernelFilesOptions options);

inline constexpr const char* kKernelSuffix = ".kernel";

}  // namespace relaxc::codegen
