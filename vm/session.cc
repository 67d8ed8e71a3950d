// What every run does, but for the bytecode (vm/interpreter.cc).
#include <algorithm>
#include <cstring>

#include "support/guard.h"
#include "support/lists.h"
#include "vm/error.h"
#include "vm/interpreter.h"
#include "vm/program.h"

namespace relaxc {

struct Session::Lists {
  std::vector<vm::Value> inputs;
  std::vector<Tensor> results, saved;
  std::vector<const Tensor*> bound;

  // Lets go of the tensors of a run.
  void clear() {
    inputs.clear();
    results.clear();
    saved.clear();
    bound.clear();
  }
  struct Scope {
    Lists& lists;
    ~Scope() { lists.clear(); }
  };
};

[[gnu::cold]] Session::Session(Program program, SessionOptions options) : program_(std::move(program)) {
  if (options.threads < 0 || options.threads > vm::kMostThreads)
    throw_usage_error("threads of a session are {}, expected 1 to {}, or 0 for all cores", options.threads,
                      vm::kMostThreads);
  auto check_limit = [](std::string_view name, int64_t limit) {
    if (limit < 0) throw_usage_error("{} of a session is {}, expected at least 1, or 0 for the default", name, limit);
  };
  check_limit("memory_limit", options.memory_limit);
  check_limit("step_limit", options.step_limit);
  if (!options.pool) options.pool = std::make_shared<vm::ThreadPool>(options.threads);
  interpreter_ = std::make_unique<vm::Interpreter>(program_.image_, std::move(options));
  lists_ = std::make_unique<Lists>();
}
[[gnu::cold]] Session::~Session() = default;
[[gnu::cold]] Session::Session(Session&&) noexcept = default;
[[gnu::cold]] Session& Session::operator=(Session&&) noexcept = default;

namespace {

void check_kind(const Tensor& tensor, const vm::ValueInfo& info, std::string_view remedy) {
  if (info.kind != vm::ValueKind::kTensor && info.kind != vm::ValueKind::kNone)
    throw_runtime_error("input '{}': is {}, expected a value of kind {}{}", info.name, describe(tensor),
                        vm::to_string(info.kind), remedy);
}

void check_input(const Tensor& tensor, const vm::ValueInfo& info) {
  check_kind(tensor, info, "");
  if (info.dtype && tensor.dtype() != *info.dtype)
    throw_runtime_error("input '{}': dtype is {}, expected {}", info.name, to_string(tensor.dtype()),
                        to_string(*info.dtype));
  if (info.dims && tensor.ndim() != static_cast<int>(info.dims->size()))
    throw_runtime_error("input '{}': has {} dims ({}), expected {} ({})", info.name, tensor.ndim(), describe(tensor),
                        info.dims->size(), to_string(info));
}

void flatten(const vm::Value& value, std::vector<Tensor>& results) {
  if (const auto* tuple = value.get_if<vm::Tuple>()) {
    for (const vm::Value& field : tuple->fields()) flatten(field, results);
    return;
  }
  if (value.kind() != vm::ValueKind::kTensor)
    throw_usage_error("result {} is {}, expected a tensor; use run_values (in C relaxc_run_values)", results.size(),
                      describe(value));
  results.push_back(value.tensor());
}

bool overlap(const Tensor& a, const Tensor& b) {
  const char* a_begin = static_cast<const char*>(a.raw());
  const char* b_begin = static_cast<const char*>(b.raw());
  return a.bytes() > 0 && b.bytes() > 0 && std::less<>()(a_begin, b_begin + b.bytes()) &&
         std::less<>()(b_begin, a_begin + a.bytes());
}

// Reports memory that a run would write to while another input has it, too.
void check_caches(const vm::Image& image, const vm::Function& function, std::span<const vm::Value> inputs) {
  const auto place = static_cast<size_t>(&function - image.executable.functions.data());
  for (const vm::CacheInfo& cache : image.caches[place]) {
    const Tensor* memory = inputs[cache.input].get_if<Tensor>();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor* other = inputs[i].get_if<Tensor>();
      if (i == cache.input || !memory || !other || !overlap(*memory, *other)) continue;
      throw_runtime_error("input '{}' is extended in place, and input '{}' has a part of its memory",
                          function.inputs[cache.input].name, function.inputs[i].name);
    }
  }
}

// Runs the function after the checks of its inputs that the bytecode leaves to the caller.
vm::Value run_checked(vm::Interpreter& interpreter, const vm::Image& image, const vm::Function& function,
                      std::span<const vm::Value> inputs, std::span<const Tensor* const> outputs) {
  if (inputs.size() != function.inputs.size())
    throw_usage_error("function '{}' takes {} inputs, got {}", function.name, function.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const Tensor* tensor = inputs[i].get_if<Tensor>()) check_input(*tensor, function.inputs[i]);
  }
  check_caches(image, function, inputs);
  return guarded([&] { return formatted("a run of '{}'", function.name); },
                 [&] { return interpreter.run(function, inputs, outputs); });
}

// Runs the function, or the one that takes inputs of other sizes in its place.
vm::Value run_fitting(vm::Interpreter& interpreter, const vm::Image& image, const vm::Function& function,
                      std::span<const vm::Value> inputs, std::span<const Tensor* const> outputs) {
  interpreter.begin();
  const vm::Function* otherwise = image.otherwise[static_cast<size_t>(&function - image.executable.functions.data())];
  if (!otherwise) return run_checked(interpreter, image, function, inputs, outputs);
  try {
    return run_checked(interpreter, image, function, inputs, outputs);
  } catch (const ShapeError&) {  // what the program assumes of dims does not hold
  }
  return run_checked(interpreter, image, *otherwise, inputs, outputs);
}

}  // namespace

// Returns the results, which are in the session's lists, where those of `bound` have memory.
std::span<const Tensor> Session::run_tensors(std::span<const Tensor> inputs, std::string_view function) {
  const vm::Function& called = program_.function(function);
  const std::vector<vm::ValueInfo>& infos = called.inputs;
  for (size_t i = 0; i < std::min(inputs.size(), infos.size()); ++i)
    check_kind(inputs[i], infos[i], "; use run_values (in C relaxc_run_values)");
  lists_->inputs.assign(inputs.begin(), inputs.end());
  flatten(run_fitting(*interpreter_, *program_.image_, called, lists_->inputs, lists_->bound), lists_->results);
  return lists_->results;
}

std::vector<Tensor> Session::run(std::span<const Tensor> inputs, std::string_view function) {
  Lists::Scope scope{*lists_};
  run_tensors(inputs, function);
  std::vector<Tensor> results = std::move(lists_->results);
  // A caller may write to a result; constants are mapped read-only and shared, and a loop's last row may be a result.
  for (size_t i = 0; i < results.size(); ++i) {
    auto is_shared = [&](const Tensor& other) { return overlap(other, results[i]); };
    if (std::ranges::any_of(program_.executable().constants, is_shared) ||
        std::ranges::any_of(std::span(results).first(i), is_shared))
      results[i] = copy_of(results[i]);
  }
  return results;
}

void Session::run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::string_view function) {
  Lists::Scope scope{*lists_};
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (overlap(outputs[i], outputs[j])) throw_usage_error("output tensors {} and {} overlap in memory", j, i);
    }
    bool overlaps_input = std::ranges::any_of(inputs, [&](const Tensor& input) { return overlap(input, outputs[i]); });
    lists_->bound.push_back(overlaps_input ? nullptr : &outputs[i]);
  }
  std::span<const Tensor> results = run_tensors(inputs, function);
  if (results.size() != outputs.size())
    throw_usage_error("function '{}' has {} results, got {} output tensors", program_.function(function).name,
                      results.size(), outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].dtype().is_string())
      throw_usage_error("output {} is of strings, which have no fixed size; use run_values (in C relaxc_run_values)",
                        i);
    if (results[i].dtype() != outputs[i].dtype() || results[i].shape() != outputs[i].shape())
      throw_runtime_error("output {}: the tensor is {}, the result {}", i, describe(outputs[i]), describe(results[i]));
  }
  // A result may be in an input that an output overlaps, so results that are not yet in their outputs are first saved.
  std::vector<Tensor>& saved = lists_->saved;
  saved.assign(results.begin(), results.end());
  for (size_t i = 0; i < results.size(); ++i) {
    auto endangers = [&](const Tensor& output) {
      bool in_place = &output == &outputs[i] && output.raw() == results[i].raw();
      return !in_place && overlap(output, results[i]);
    };
    if (std::ranges::any_of(outputs, endangers)) saved[i] = copy_of(results[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (saved[i].raw() == outputs[i].raw() || saved[i].bytes() == 0) continue;
    std::memcpy(outputs[i].raw(), saved[i].raw(), static_cast<size_t>(saved[i].bytes()));
  }
}

vm::Value Session::run_values(std::span<const vm::Value> inputs, std::string_view function) {
  return run_fitting(*interpreter_, *program_.image_, program_.function(function), inputs, {});
}

void Session::cancel() { interpreter_->cancel(); }
void Session::set_profiler(vm::Profiler* profiler) { interpreter_->set_profiler(profiler); }
Tensor Session::new_tensor(std::vector<int64_t> shape, DType dtype) {
  const std::shared_ptr<void> memory = interpreter_->memory().allocate(checked_tensor_bytes(shape, dtype));
  return Tensor::view(std::move(shape), dtype, memory.get(), memory);
}
Tensor Session::copy_of(const Tensor& tensor) {
  Tensor copy = new_tensor(tensor.shape(), tensor.dtype());
  std::memcpy(copy.raw(), tensor.raw(), static_cast<size_t>(tensor.bytes()));
  return copy;
}
vm::MemoryPool::Stats Session::memory_stats() const { return interpreter_->memory().stats(); }
void Session::trim() { interpreter_->memory().trim(); }

}  // namespace relaxc
