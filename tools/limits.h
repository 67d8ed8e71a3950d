// What this machine can do at most, measured: the scale on which profiles show kernels.
#pragma once
#include <memory>

#include "vm/thread_pool.h"

namespace relaxc::tools {

// Of all threads of the pool together; float32 operations, of which a multiply-add is two.
struct MachineLimits {
  double operations_per_s = 0;
  double cache_bytes_per_s = 0;   // read from the L2 caches
  double memory_bytes_per_s = 0;  // read from memory
  int64_t cache_bytes = 0;        // of the L2 caches of these threads
};

// Measures for about half a second. Other work on the machine makes it slower, so the largest figures that were ever
// measured count: they are kept in the user's cache folder ($XDG_CACHE_HOME, or ~/.cache), in
// relaxc/limits-PROCESSOR-THREADS.txt. A folder that cannot be written is no error.
MachineLimits machine_limits(const std::shared_ptr<vm::TaskPool>& pool);

}  // namespace relaxc::tools
