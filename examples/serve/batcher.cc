#include "batcher.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include <fmt/format.h>

namespace serve {

using relaxc::Tensor;

namespace {

// Returns the program if its inputs and outputs are those that a Batcher can stack and split.
relaxc::Program checked(relaxc::Program program) {
  const auto &inputs = program.inputs(), &outputs = program.outputs();
  auto is_batch = [](const relaxc::vm::ValueInfo& value) {
    return value.kind == relaxc::vm::ValueKind::kTensor && value.dtype == relaxc::kFloat32 && value.dims &&
           !value.dims->empty() && value.dims->front().value < 0 &&
           std::all_of(value.dims->begin() + 1, value.dims->end(), [](const auto& dim) { return dim.value >= 0; });
  };
  if (inputs.size() != 1 || outputs.size() != 1 || !is_batch(inputs[0]) || !is_batch(outputs[0]))
    throw relaxc::RuntimeError("expected one float32 input and one float32 output whose first dim alone is symbolic");
  if (inputs[0].dims->front().text != outputs[0].dims->front().text) {
    throw relaxc::RuntimeError(fmt::format("expected an output with a row for each row of the input, found {} -> {}",
                                           to_string(inputs[0]), to_string(outputs[0])));
  }
  return program;
}

// Returns the settings for the batches that the program takes (`relaxc compile --dim-range`).
BatchSettings within_range(BatchSettings settings, const relaxc::Program& program) {
  const auto& batch = program.inputs()[0].dims->front();
  if (batch.least > 1)
    throw relaxc::RuntimeError(
        fmt::format("the program takes batches from {}, and a single request is a batch of 1", batch.least));
  settings.largest_batch = static_cast<int>(std::min<int64_t>(settings.largest_batch, batch.most));
  return settings;
}

}  // namespace

Batcher::Rows::Rows(const relaxc::vm::ValueInfo& value) {
  for (const auto& dim : *value.dims) shape.push_back(dim.value);
  for (size_t i = 1; i < shape.size(); ++i) row_size *= shape[i];
}

Batcher::Batcher(relaxc::Program program, BatchSettings settings)
    : session_(checked(std::move(program)), {.threads = settings.threads}),
      settings_(within_range(settings, session_.program())),
      input_(session_.program().inputs()[0]),
      output_(session_.program().outputs()[0]),
      memory_(Tensor::empty({settings.largest_batch, input_.row_size}, relaxc::kFloat32)) {
  if (settings_.largest_batch > 1) check_rows();
  worker_ = std::thread([this] { work(); });
}

// Throws where a row of the output depends on the other rows of the input, as far as two random rows tell.
void Batcher::check_rows() {
  std::minstd_rand random;
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<Request> both(2);
  std::vector<float> alone, together;
  auto add_rows = [&](const Tensor& result, std::vector<float>& to) {
    to.insert(to.end(), result.data<float>(), result.data<float>() + result.size());
  };
  try {
    for (Request& request : both) {
      for (int64_t i = 0; i < input_.row_size; ++i) request.sample.push_back(number(random));
      add_rows(run(std::span(&request, 1)), alone);
    }
    add_rows(run(both), together);
  } catch (const relaxc::RuntimeError&) {
    return;  // the program does not take any numbers
  }
  auto is_near = [](float a, float b) { return !(std::abs(a - b) > 1e-3F + 1e-2F * std::abs(b)); };
  if (!std::ranges::equal(together, alone, is_near))
    throw relaxc::RuntimeError(
        "a row of the output depends on the other rows of the batch, and a batch has rows of several requests; "
        "--batch 1 runs each request alone");
}

std::optional<std::future<std::vector<float>>> Batcher::submit(std::vector<float> sample) {
  std::lock_guard lock(mutex_);
  if (is_finishing_ || queue_.size() >= settings_.longest_queue) return std::nullopt;
  ++counts_.accepted;
  queue_.push_back({std::move(sample), {}, Clock::now()});
  changed_.notify_one();
  return queue_.back().answer.get_future();
}

void Batcher::finish() {
  {
    std::lock_guard lock(mutex_);
    is_finishing_ = true;
  }
  changed_.notify_one();
  if (worker_.joinable()) worker_.join();
}

BatchCounts Batcher::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

// Waits for a sample, then for others until the batch is full or the first one has waited long enough. Returns an empty
// batch at the end.
std::vector<Batcher::Request> Batcher::next_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_finishing_ || !queue_.empty(); });
  if (queue_.empty()) return {};
  const size_t most = settings_.largest_batch;
  changed_.wait_until(lock, queue_.front().arrival + settings_.longest_wait,
                      [&] { return is_finishing_ || queue_.size() >= most; });
  auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), most));
  std::vector<Request> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

// Returns the samples as one tensor, in memory that every batch uses.
Tensor Batcher::stacked(std::span<const Request> batch) {
  float* row = memory_.data<float>();
  for (const Request& request : batch) row = std::copy(request.sample.begin(), request.sample.end(), row);
  std::vector<int64_t> shape = input_.shape;
  shape[0] = static_cast<int64_t>(batch.size());
  return Tensor::view(std::move(shape), relaxc::kFloat32, memory_.raw(), memory_.owner());
}

// Returns the rows of the output.
Tensor Batcher::run(std::span<const Request> batch) {
  Tensor results = session_.run({stacked(batch)})[0];
  std::vector<int64_t> expected = output_.shape;
  expected[0] = static_cast<int64_t>(batch.size());
  if (results.shape() != expected)
    throw relaxc::RuntimeError(fmt::format("the output has the shape [{}], expected [{}]",
                                           fmt::join(results.shape(), ", "), fmt::join(expected, ", ")));
  return results;
}

void Batcher::count(size_t answered, std::string error) {
  std::unique_lock lock(mutex_);
  counts_.answered += static_cast<int64_t>(answered);
  ++counts_.batches;
  if (!error.empty()) ++counts_.failed;
  const bool is_new = !error.empty() && error != counts_.error;
  counts_.error = error;
  lock.unlock();
  if (is_new && on_error) on_error(error);
}

void Batcher::work() {
  for (std::vector<Request> batch; !(batch = next_batch()).empty();) {
    std::string failure;
    try {
      const Tensor results = run(batch);
      const float* row = results.data<float>();
      for (Request& request : batch) {
        request.answer.set_value({row, row + output_.row_size});
        row += output_.row_size;
      }
    } catch (const std::exception& error) {  // each caller gets it
      failure = error.what();
      for (Request& request : batch) request.answer.set_exception(std::current_exception());
    }
    count(batch.size(), std::move(failure));
  }
}

}  // namespace serve
