#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "support/block_signals.h"

namespace relaxc {

void for_each_parallel(size_t count, int jobs, const std::function<IndexedWork()>& make_work, size_t share) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t failed = count;
  std::exception_ptr error;
  auto run = [&] {
    IndexedWork work;
    for (size_t i = next++; i < count; i = next++) {
      try {
        if (!work) work = make_work();
        work(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < failed) error = std::current_exception();
        failed = std::min(failed, i);
      }
    }
  };
  std::vector<std::thread> threads;
  size_t wanted = std::min((count + share - 1) / share,
                           static_cast<size_t>(jobs > 0 ? jobs : std::max(1u, std::thread::hardware_concurrency())));
  {
    const BlockSignals blocked;
    for (size_t thread = 1; thread < wanted; ++thread) threads.emplace_back(run);
  }
  run();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace relaxc
