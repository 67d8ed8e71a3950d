// Samples of many requests become batches: one run of the program answers all samples that wait, which costs less than
// a run for each, since weights are read once for all of them.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <relaxc/runtime.h>

namespace serve {

struct BatchSettings {
  int64_t largest_batch = 32;
  std::chrono::microseconds longest_wait{500};  // of the first sample of a batch for others
  size_t longest_queue = 1024;
  int threads = 0;  // of the session; 0: all cores
};

// How many samples were accepted, how many of them have an answer, and how many runs that took; of these, how many
// failed, and the error of the last one where it did.
struct BatchCounts {
  int64_t accepted = 0, answered = 0, batches = 0, failed = 0;
  std::string error = {};
};

// Runs a program of one float32 input and one float32 output whose first dim is the batch: symbolic, and the same. Its
// rows have to be independent of each other; two random ones are tried. All functions may be called by any thread.
class Batcher {
 public:
  // Throws a RuntimeError when the program is another one.
  Batcher(relaxc::Program program, BatchSettings settings);
  ~Batcher() { finish(); }

  int64_t sample_size() const { return input_.row_size; }  // floats
  // Accepts a sample of that size. Its answer comes later, or the RuntimeError of the run. Returns nothing when the
  // queue is full, or after finish().
  std::optional<std::future<std::vector<float>>> submit(std::vector<float> sample);
  // Answers what has been accepted, and ends.
  void finish();
  // Is told of the error of a run, unless the run before failed with the same one. To be set before the first sample.
  std::function<void(const std::string& error)> on_error;
  BatchCounts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    std::vector<float> sample;
    std::promise<std::vector<float>> answer;
    Clock::time_point arrival;
  };
  // The shape of a batch: {n, row...}, and the number of elements of a row.
  struct Rows {
    explicit Rows(const relaxc::vm::ValueInfo& value);
    std::vector<int64_t> shape;
    int64_t row_size = 1;
  };

  void work();
  void count(size_t answered, std::string error);
  std::vector<Request> next_batch();
  relaxc::Tensor stacked(std::span<const Request> batch);
  relaxc::Tensor run(std::span<const Request> batch);
  void check_rows();

  relaxc::Session session_;
  const BatchSettings settings_;
  Rows input_, output_;
  relaxc::Tensor memory_;  // of the largest batch
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
  bool is_finishing_ = false;
  BatchCounts counts_;
  std::thread worker_;
};

}  // namespace serve
