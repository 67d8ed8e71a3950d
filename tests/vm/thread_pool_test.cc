#include "vm/thread_pool.h"

#include <signal.h>

#include <cstring>
#include <numeric>

#include "tests/catch.h"

using namespace relaxc::vm;

namespace {

struct Counts {
  relaxc_kernel_context* context = nullptr;
  std::vector<std::atomic<int>> counts;
  int64_t fail_at = -1;
  bool nested = false;
  std::atomic<int> scratch_errors{0};
  explicit Counts(size_t n) : counts(n) {}
};

int32_t count_body(void* closure, int64_t begin, int64_t end) {
  auto* counts = static_cast<Counts*>(closure);
  int64_t bytes = 100 + (begin % 7) * 30000;
  auto* scratch = static_cast<char*>(counts->context->scratch(counts->context, bytes));
  if (scratch == nullptr || reinterpret_cast<uintptr_t>(scratch) % 64 != 0) return 99;
  std::memset(scratch, static_cast<int>(begin & 127), static_cast<size_t>(bytes));
  if (counts->nested) {
    auto inner = [](void* opaque, int64_t, int64_t) -> int32_t { return static_cast<Counts*>(opaque)->nested ? 0 : 1; };
    int32_t status = counts->context->parallel_for(counts->context, 10, inner, closure);
    if (status != 0) return status;
  }
  for (int64_t i = begin; i < end; ++i) {
    counts->counts[static_cast<size_t>(i)].fetch_add(1);
    if (i == counts->fail_at) return 42;
  }
  if (scratch[bytes - 1] != static_cast<char>(begin & 127)) ++counts->scratch_errors;
  return 0;
}

// Runs the loop from inside a kernel.
int32_t run_loop(KernelRuntime& runtime, Counts& counts) {
  counts.context = runtime.context();
  struct Arguments {
    Counts* counts;
  } arguments{&counts};
  void* data[] = {&arguments};
  relaxc_kernel kernel = [](const relaxc_kernel_args* args) -> int32_t {
    Counts* counts = static_cast<Arguments*>(args->data[0])->counts;
    return args->context->parallel_for(args->context, static_cast<int64_t>(counts->counts.size()), count_body, counts);
  };
  return runtime.call(kernel, data, nullptr);
}

// A host's pool that runs everything on the caller, in odd order.
struct SerialPool final : TaskPool {
  int num_workers() const override { return 3; }
  void run(PoolTask task, void* closure, int workers) override {
    for (int worker = workers; worker-- > 0;) task(closure, worker);
  }
};

}  // namespace

TEST_CASE("each index runs exactly once", "[vm]") {
  for (int threads : {1, 2, 3, 8}) {
    auto pool = std::make_shared<ThreadPool>(threads);
    CHECK(pool->num_workers() == threads);
    KernelRuntime runtime(pool);
    for (bool nested : {false, true}) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        if (repeat % 2) pool->enter();
        for (size_t n : {0, 1, 2, 3, 7, 8, 9, 31, 100, 1000}) {
          Counts counts(n);
          counts.nested = nested;
          REQUIRE(run_loop(runtime, counts) == 0);
          for (auto& count : counts.counts) REQUIRE(count == 1);
          REQUIRE(counts.scratch_errors == 0);
        }
        if (repeat % 2) pool->leave();
      }
    }
  }
}

TEST_CASE("a failing body's status comes back", "[vm]") {
  for (int threads : {1, 4}) {
    KernelRuntime runtime(std::make_shared<ThreadPool>(threads));
    for (int64_t at : {0, 50, 99}) {
      Counts counts(100);
      counts.fail_at = at;
      CHECK(run_loop(runtime, counts) == 42);
    }
    Counts counts(100);
    CHECK(run_loop(runtime, counts) == 0);
  }
}

TEST_CASE("workers have a name, and run no handlers of the host but those of faults", "[vm]") {
  struct Seen {
    std::atomic<int> wrong{0}, workers{0};
  } seen;
  ThreadPool pool(3);
  auto look = [](void* closure, int worker) {
    auto& seen = *static_cast<Seen*>(closure);
    if (worker == 0) {  // the caller, which waits for the others
      while (seen.workers < 2) std::this_thread::yield();
      return;
    }
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGUSR1})
      seen.wrong += sigismember(&blocked, signal) != 1;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGPROF}) seen.wrong += sigismember(&blocked, signal) != 0;
    seen.wrong += std::strcmp(name, "relaxc") != 0;
    ++seen.workers;
  };
  pool.run(look, &seen, 3);
  CHECK(seen.wrong == 0);
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  CHECK(sigismember(&now, SIGTERM) == 0);
}

TEST_CASE("a host may bring its pool, callers may share one", "[vm]") {
  KernelRuntime serial(std::make_shared<SerialPool>());
  Counts counts(100);
  CHECK(run_loop(serial, counts) == 0);
  for (auto& count : counts.counts) CHECK(count == 1);

  auto pool = std::make_shared<ThreadPool>(3);
  std::atomic<int> errors{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      KernelRuntime runtime(pool);
      for (int i = 0; i < 200; ++i) {
        Counts mine(50);
        if (run_loop(runtime, mine) != 0) ++errors;
        for (auto& count : mine.counts) errors += count != 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(errors == 0);
}
