// Eight threads with a session each run one program a thousand times, with batches of every size up to 32: results are
// those of one thread, and memory stays as it is once each thread has seen the largest batch. Usage: many_threads
// ARTIFACT
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "vm/program.h"

namespace {

using namespace relaxc;

constexpr int kThreads = 8, kRuns = 1000, kMostImages = 32, kPixels = 64;

Tensor images(int count) {
  Tensor batch = Tensor::empty({count, 1, 8, 8}, kFloat32);
  for (int i = 0; i < count * kPixels; ++i) batch.data<float>()[i] = static_cast<float>(i * 7 % 17);
  return batch;
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data<float>(), b.data<float>(), static_cast<size_t>(a.size()) * sizeof(float)) == 0;
}

// Returns the memory of the process, in bytes.
long resident() {
  long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class Round {
 public:
  Round(const Program& program, const std::vector<Tensor>& expected) : program_(program), expected_(expected) {}

  // Returns how many results were wrong.
  int run() {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { run_one(t); });
    for (std::thread& thread : threads) thread.join();
    return wrong_;
  }

 private:
  void run_one(int thread) {
    Session session(program_);
    for (int i = 0; i < kRuns; ++i) {
      const int count = (i * 13 + thread * 5) % kMostImages + 1;
      if (!is_same(session.run({images(count)})[0], expected_[static_cast<size_t>(count)])) ++wrong_;
    }
  }

  const Program& program_;
  const std::vector<Tensor>& expected_;
  std::atomic<int> wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: many_threads ARTIFACT\n"), 2;
  const Program program = Program::load(argv[1]);
  std::vector<Tensor> expected = {images(1)};
  Session session(program);
  for (int count = 1; count <= kMostImages; ++count) expected.push_back(session.run({images(count)})[0]);
  int wrong = Round(program, expected).run();
  const long before = resident();
  for (int round = 0; round < 2; ++round) wrong += Round(program, expected).run();
  const long grown = (resident() - before) / 1024;
  std::printf("%d of %d results are wrong, memory has grown by %ld KiB\n", wrong, 3 * kThreads * kRuns, grown);
#ifdef __SANITIZE_ADDRESS__
  constexpr long kMostGrowth = 512 * 1024;  // KiB: freed memory stays for a while, so that uses of it are found
#else
  constexpr long kMostGrowth = 4096;  // KiB: what an allocator keeps for threads varies
#endif
  return wrong > 0 || grown > kMostGrowth;
}
