// Runs independent pieces of work on several threads.
#pragma once
#include <cstddef>
#include <functional>

namespace relaxc {

// Calls work(i) once for each i in [0, count) on at most `jobs` threads; 0: one per core. Each thread makes one `work`,
// which may hold state that is expensive to make: there is a thread for each `share` of the indices. When all have
// ended, the exception of the lowest i, if any, is thrown, so that it does not depend on the number of threads.
using IndexedWork = std::function<void(size_t)>;
void for_each_parallel(size_t count, int jobs, const std::function<IndexedWork()>& make_work, size_t share = 1);

}  // namespace relaxc
