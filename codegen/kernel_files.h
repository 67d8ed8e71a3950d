// Lowered tensor programs and object code in the folder of the artifact cache, so that a model that was changed
// compiles only the programs that are new. The keys count for this build of the compiler only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "support/result_store.h"

namespace relaxc::codegen {

// Returns a store of at most so many bytes; those whose last use is the oldest go first. It makes the folder when it
// has something to keep, and stays empty where that fails or other users may write there.
std::shared_ptr<ResultStore> kernel_files(const std::string& folder, uint64_t most_bytes);

inline constexpr const char* kKernelSuffix = ".kernel";

}  // namespace relaxc::codegen
