#include "tools/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "support/joined.h"
#include "support/printable.h"
#include "tir/schedule/trace.h"
#include "tools/timing.h"
#include "vm/formula.h"

namespace relaxc::tools {

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A kernel of fewer seconds spends them on being called and on waking threads.
constexpr double kFewSeconds = 4e-6;
// From this share of the limit on, the limit is what bounds a kernel; from that share of idle time on, the threads.
constexpr double kNearLimit = 0.6, kMuchIdle = 0.3;

// Returns "float32[1, 3, 224, 224], float32[64] -> float32[1, 64, 112, 112]", without which is which for a kernel of
// the host.
std::string types_of(std::span<const Tensor* const> tensors) {
  auto type = [](const Tensor* tensor) {
    return fmt::format("{}[{}]", to_string(tensor->dtype()), joined(tensor->shape()));
  };
  return fmt::format("{} -> {}", joined(tensors.first(tensors.size() - 1), type), type(tensors.back()));
}

// Returns the numbers that a kernel multiplies, if it is a product: narrow ones only where both operands are, the
// weight and what it is multiplied with, which may be bytes widened to int16. A narrow weight alone is made float32
// first. Kernels without a product have a
// few operations per element, and memory bounds them at any rate of products.
ProductKind product_of(const vm::KernelEvent& event) {
  const auto inputs = event.tensors.first(event.tensors.size() - 1);
  auto has_two = [&](auto is_such) {
    return std::ranges::count_if(inputs, [&](const Tensor* input) { return is_such(input->dtype()); }) >= 2;
  };
  if (has_two([](DType dtype) { return dtype.is_integral() && (dtype.bits == 8 || dtype == DType::int_(16)); }))
    return ProductKind::kInt8;
  if (has_two([](DType dtype) { return dtype == DType::bfloat16(); })) return ProductKind::kBFloat16;
  return ProductKind::kFloat32;
}

// Returns the bytes of the elements that the kernel touches, of each tensor.
std::vector<double> bytes_of_tensors(const vm::KernelEvent& event) {
  std::vector<double> result;
  for (size_t i = 0; i < event.tensors.size(); ++i) {
    const Tensor& tensor = *event.tensors[i];
    auto bytes = static_cast<double>(tensor.bytes());
    std::optional<double> accesses;
    if (i < event.info->accesses.size()) accesses = vm::evaluate_formula(event.info->accesses[i], event.tensors);
    if (accesses) bytes = std::min(bytes, *accesses * std::max(1.0, tensor.dtype().bits / 8.0));
    result.push_back(bytes);
  }
  return result;
}

}  // namespace

struct WatchedPool::Task {
  vm::PoolTask task;
  void* closure;
  WatchedPool* pool;
};

WatchedPool::WatchedPool(std::shared_ptr<vm::TaskPool> pool)
    : pool_(std::move(pool)), done_(static_cast<size_t>(pool_->num_workers())) {}

void WatchedPool::run(vm::PoolTask task, void* closure, int workers) {
  Task watched{task, closure, this};
  auto run = [](void* self, int worker) {
    auto& [task, closure, pool] = *static_cast<Task*>(self);
    const int64_t start = now_ns();
    task(closure, worker);
    pool->done_[static_cast<size_t>(worker)].push_back({worker, start, now_ns()});
  };
  pool_->run(run, &watched, workers);
}

std::vector<WatchedPool::Work> WatchedPool::take() {
  std::vector<Work> all;
  for (std::vector<Work>& done : done_) {
    all.insert(all.end(), done.begin(), done.end());
    done.clear();
  }
  return all;
}

Profile::Profile(MachineLimits limits, std::shared_ptr<WatchedPool> pool) : limits_(limits), pool_(std::move(pool)) {
  pool_->take();
}

void Profile::on_kernel(const vm::KernelEvent& event) {
  auto [entry, is_new] = row_of_.try_emplace({std::string(event.kernel), std::string(event.label)}, rows_.size());
  if (is_new)
    rows_.push_back(
        {entry->first.first, entry->first.second, types_of(event.tensors), event.info->rule, product_of(event)});
  KernelProfile& row = rows_[entry->second];
  const std::vector<double> bytes_of = bytes_of_tensors(event);
  const double seconds = static_cast<double>(event.duration_ns) / 1e9;
  const double bytes = std::accumulate(bytes_of.begin(), bytes_of.end(), 0.0);
  const std::optional<double> known = vm::evaluate_formula(event.info->operations, event.tensors);
  const double operations = known.value_or(0);
  // A tensor may lie in a cache that holds all that was touched since the last time.
  double transfer = 0;
  for (size_t i = 0; i < bytes_of.size(); ++i) {
    const auto last = touched_until_.find(event.tensors[i]->raw());
    const double between = last == touched_until_.end() ? 0 : touched_ - last->second;
    const size_t level = limits_.level_of(std::max(bytes, between));
    row.transfer_seconds[level] += bytes_of[i] / limits_.levels[level].bytes_per_s;
    transfer += bytes_of[i] / limits_.levels[level].bytes_per_s;
  }
  touched_ += bytes;
  for (const Tensor* tensor : event.tensors) touched_until_[tensor->raw()] = touched_;
  const double compute = operations / limits_.rate_of(row.product);
  ++row.calls;
  row.seconds += seconds;
  row.call_seconds.push_back(seconds);
  row.operations += operations;
  row.knows_operations = row.knows_operations && known;
  row.bytes += bytes;
  row.limit_seconds += std::max(compute, transfer);
  row.compute_seconds += compute;
  Event call{entry->second, event.start_ns, event.start_ns + event.duration_ns, pool_->take()};
  if (!call.work.empty()) {
    double busy = 0;
    for (const WatchedPool::Work& work : call.work) busy += static_cast<double>(work.end_ns - work.start_ns) / 1e9;
    row.idle_seconds += std::max(0.0, seconds * pool_->num_workers() - busy);
  }
  events_.push_back(std::move(call));
}

double KernelProfile::median_seconds(int64_t runs) const {
  // The runs make the same calls in the same order; where loops end otherwise, each call counts by itself.
  const size_t count =
      call_seconds.size() % static_cast<size_t>(runs) == 0 ? static_cast<size_t>(runs) : call_seconds.size();
  const size_t calls_of_run = call_seconds.size() / count;
  std::vector<double> means;
  for (size_t first = 0; first < call_seconds.size(); first += calls_of_run) {
    const auto begin = call_seconds.begin() + static_cast<ptrdiff_t>(first);
    means.push_back(std::accumulate(begin, begin + static_cast<ptrdiff_t>(calls_of_run), 0.0) /
                    static_cast<double>(calls_of_run));
  }
  std::ranges::sort(means);
  return (means[(means.size() - 1) / 2] + means[means.size() / 2]) / 2;
}

std::vector<Profile::Row> Profile::sorted(int64_t runs) const {
  std::vector<Row> rows;
  for (const KernelProfile& row : rows_) rows.push_back({&row, row.median_seconds(runs)});
  std::ranges::stable_sort(rows, std::greater(),
                           [](const Row& row) { return row.seconds * static_cast<double>(row.of->calls); });
  return rows;
}

// Returns what keeps a kernel from being faster.
std::string Profile::bound(const Row& row) const {
  const KernelProfile& kernel = *row.of;
  const auto slowest = std::ranges::max_element(kernel.transfer_seconds);
  const char* resource = kernel.compute_seconds >= *slowest
                             ? "compute"
                             : limits_.levels[static_cast<size_t>(slowest - kernel.transfer_seconds.begin())].name;
  if (kernel.limit_seconds >= kNearLimit * row.seconds * static_cast<double>(kernel.calls)) return resource;
  if (row.seconds < kFewSeconds) return "overhead";
  if (kernel.idle_seconds > kMuchIdle * kernel.seconds * pool_->num_workers()) return "imbalance";
  return resource;
}

double Profile::limit_ms(int64_t runs) const {
  double seconds = 0;
  for (const KernelProfile& row : rows_) seconds += row.limit_seconds;
  return seconds * 1000 / static_cast<double>(runs);
}

std::string Profile::text(int64_t runs) const {
  const std::vector<Row> rows = sorted(runs);
  double total = 0;
  for (const Row& row : rows) total += row.seconds * static_cast<double>(row.of->calls);
  std::string text = fmt::format("{:>8} {:>10} {:>7} {:>8} {:>8} {:>8}  {:<9}  {}\n", "calls", "median us", "share",
                                 "GFLOP/s", "GB/s", "of limit", "bound by", "kernel");
  for (const Row& row : rows) {
    const KernelProfile& kernel = *row.of;
    const double seconds = row.seconds * static_cast<double>(kernel.calls);
    text += fmt::format("{:>8} {:>10.2f} {:>6.1f}% {:>8} {:>8.1f} {:>7.1f}%  {:<9}  {}{}\n", kernel.calls,
                        row.seconds * 1e6, 100 * seconds / total,
                        kernel.knows_operations ? fmt::format("{:.1f}", kernel.operations / seconds / 1e9) : "?",
                        kernel.bytes / seconds / 1e9, 100 * kernel.limit_seconds / seconds, bound(row), kernel.kernel,
                        kernel.nodes.empty() ? "" : " / " + printable(kernel.nodes, std::string::npos));
    const bool is_narrow = kernel.product != ProductKind::kFloat32;
    text += fmt::format("{:>21}{}{}{}{}\n", "", kernel.tensors, kernel.rule.empty() ? "" : "; ", kernel.rule,
                        is_narrow ? fmt::format("; products of {}", name_of(kernel.product)) : "");
  }
  const double run_ms = total * 1000 / static_cast<double>(runs);
  auto rate = [&](ProductKind kind) {
    return fmt::format("{:.1f} GFLOP/s of {}", limits_.rate_of(kind) / 1e9, name_of(kind));
  };
  auto bandwidth = [](const MemoryLevel& level) {
    return fmt::format("{:.1f} GB/s from {}", level.bytes_per_s / 1e9, level.name);
  };
  return text + fmt::format("{} {} {} of a run, the machine's limit is {} ({:.0f}%): {}, {}\n",
                            counted(rows_.size(), "kernel"), rows_.size() == 1 ? "takes" : "take", as_ms(run_ms),
                            as_ms(limit_ms(runs)), run_ms > 0 ? 100 * limit_ms(runs) / run_ms : 100,
                            joined(kProductKinds, rate), joined(limits_.levels, bandwidth));
}

std::string Profile::json_of(const Row& row, int64_t runs) const {
  const KernelProfile& kernel = *row.of;
  const double calls = static_cast<double>(kernel.calls);
  return fmt::format(
      "{{\"kernel\": {}, \"nodes\": {}, \"tensors\": {}, \"rule\": {}, \"products\": \"{}\", \"calls_per_run\": "
      "{:.6g}, \"median_us\": {:.3f}, \"mean_us\": {:.3f}, \"least_us\": {:.3f}, "
      "\"operations\": {}, \"bytes\": {:.0f}, \"limit_us\": {:.3f}, \"idle_us\": {:.3f}, \"bound\": \"{}\"}}",
      json_string(kernel.kernel), json_string(kernel.nodes), json_string(kernel.tensors), json_string(kernel.rule),
      name_of(kernel.product), calls / static_cast<double>(runs), row.seconds * 1e6, kernel.seconds * 1e6 / calls,
      kernel.least_seconds() * 1e6, kernel.knows_operations ? fmt::format("{:.0f}", kernel.operations / calls) : "null",
      kernel.bytes / calls, kernel.limit_seconds * 1e6 / calls, kernel.idle_seconds * 1e6 / calls, bound(row));
}

std::string Profile::json(int64_t runs) const {
  auto kernel = [&](const Row& row) { return json_of(row, runs); };
  auto level = [](const MemoryLevel& level) {
    std::string bytes = std::isinf(level.bytes) ? "null" : fmt::format("{:.0f}", level.bytes);
    return fmt::format("{{\"name\": \"{}\", \"most_bytes\": {}, \"gb_per_s\": {:.1f}}}", level.name, bytes,
                       level.bytes_per_s / 1e9);
  };
  auto peak = [&](ProductKind kind) {
    return fmt::format("\"{}\": {:.1f}", name_of(kind), limits_.rate_of(kind) / 1e9);
  };
  return fmt::format(
      "{{\"limit_ms\": {:.6g}, \"peak_gflops\": {:.1f}, \"product_gflops\": {{{}}}, \"memory\": [{}], \"kernels\": "
      "[{}]}}",
      limit_ms(runs), limits_.rate_of(ProductKind::kFloat32) / 1e9, joined(kProductKinds, peak),
      joined(limits_.levels, level), joined(sorted(runs), kernel));
}

std::vector<MeasuredCall> Profile::fastest_run(int64_t runs) const {
  const auto count = static_cast<size_t>(std::ssize(events_) / runs);  // the runs of one program on the same inputs
  std::span<const Event> fastest;
  auto duration = [](std::span<const Event> run) { return run.back().end_ns - run.front().start_ns; };
  for (size_t first = 0; count > 0 && first + count <= events_.size(); first += count) {
    const std::span<const Event> run = std::span(events_).subspan(first, count);
    if (fastest.empty() || duration(run) < duration(fastest)) fastest = run;
  }
  std::vector<MeasuredCall> calls;
  for (const Event& event : fastest) {
    const KernelProfile& row = rows_[event.row];
    auto microseconds = [&](int64_t ns) { return static_cast<double>(ns - fastest.front().start_ns) / 1e3; };
    calls.push_back({row.kernel, row.nodes, microseconds(event.start_ns), microseconds(event.end_ns)});
  }
  return calls;
}

std::string Profile::trace() const {
  const int64_t origin = events_.empty() ? 0 : events_.front().start_ns;
  // Thread 0 is the caller's, with whole kernels; thread 1 + w is worker w.
  auto slice = [&](const std::string& name, int thread, int64_t start_ns, int64_t end_ns, const std::string& args) {
    return fmt::format("{{\"name\": {}, \"ph\": \"X\", \"pid\": 1, \"tid\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}{}}}",
                       json_string(name), thread, static_cast<double>(start_ns - origin) / 1e3,
                       static_cast<double>(end_ns - start_ns) / 1e3, args);
  };
  auto thread_name = [](int thread, const std::string& name) {
    return fmt::format(
        "{{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": {}, \"args\": {{\"name\": {}}}}}", thread,
        json_string(name));
  };
  std::vector<std::string> lines = {thread_name(0, "kernels")};
  // The only thread of a pool works without it: its row is that of the kernels.
  for (int w = 0; w < pool_->num_workers() && pool_->num_workers() > 1; ++w)
    lines.push_back(thread_name(w + 1, fmt::format("thread {}", w)));
  for (const Event& event : events_) {
    const KernelProfile& row = rows_[event.row];
    lines.push_back(slice(row.kernel, 0, event.start_ns, event.end_ns,
                          fmt::format(", \"args\": {{\"nodes\": {}, \"tensors\": {}, \"rule\": {}}}",
                                      json_string(row.nodes), json_string(row.tensors), json_string(row.rule))));
    for (const WatchedPool::Work& work : event.work)
      lines.push_back(slice(row.kernel, work.worker + 1, work.start_ns, work.end_ns, ""));
  }
  return fmt::format("{{\"traceEvents\": [\n{}\n]}}\n", joined(lines, ",\n"));
}

}  // namespace relaxc::tools
