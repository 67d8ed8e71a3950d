// Sessions of the C interface, and runs on the host's tensors.
#include <algorithm>

#include "api/handles.h"
#include "api/profile.h"
#include "support/joined.h"

namespace relaxc::api {

namespace {

class HostPool final : public vm::TaskPool {
 public:
  explicit HostPool(const relaxc_thread_pool& host) : host_(host) {}
  int num_workers() const override { return std::max(1, host_.num_workers(host_.user)); }
  void run(vm::PoolTask task, void* closure, int workers) override { host_.run(host_.user, task, closure, workers); }

 private:
  relaxc_thread_pool host_;
};

char* first_byte(const DLTensor& tensor) {
  return tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
}

// Visits the elements of a strided tensor in row-major order.
template <class Visit>
void for_each_element(const DLTensor& tensor, int64_t bytes, const Visit& visit) {
  std::vector<int64_t> at(static_cast<size_t>(tensor.ndim));
  char* place = first_byte(tensor);
  for (bool done = false; !done;) {
    visit(place);
    done = true;
    for (int32_t d = tensor.ndim; d-- > 0;) {
      int64_t& index = at[static_cast<size_t>(d)];
      place += tensor.strides[d] * bytes;
      if (++index < tensor.shape[d]) {
        done = false;
        break;
      }
      place -= tensor.strides[d] * bytes * index;
      index = 0;
    }
  }
}

void check_place(const DLTensor& tensor, const char* what) {
  if (tensor.device.device_type != kDLCPU)
    throw_usage_error("{} is on device type {}, expected {} (cpu)", what, static_cast<int>(tensor.device.device_type),
                      static_cast<int>(kDLCPU));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) throw_usage_error("{} has no shape", what);
}

Form form_of(const DLTensor& tensor, const char* what) {
  if (tensor.dtype.code == RELAXC_STRING_CODE)
    throw_usage_error("{} is of strings, which have no form in DLPack; use relaxc_any_strings and relaxc_run_values",
                      what);
  Form form{tensor.dtype, dtype_from_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)};
  form.shape = std::make_shared<const std::vector<int64_t>>(tensor.shape, tensor.shape + tensor.ndim);
  form.bytes = checked_tensor_bytes(*form.shape, form.dtype);
  return form;
}

}  // namespace

bool is_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  bool is_empty = std::any_of(tensor.shape, tensor.shape + tensor.ndim, [](int64_t dim) { return dim == 0; });
  int64_t expected = 1;
  for (int32_t d = tensor.ndim; d-- > 0 && !is_empty;) {
    if (tensor.shape[d] == 1) continue;  // the stride is never used
    if (tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

Tensor tensor_of(const DLTensor& tensor, const char* what, Form& last, Session* session) {
  check_place(tensor, what);
  const std::span<const int64_t> dims(tensor.shape, static_cast<size_t>(tensor.ndim));
  const DLDataType stated = tensor.dtype;
  bool is_known = last.shape && last.stated.code == stated.code && last.stated.bits == stated.bits &&
                  last.stated.lanes == stated.lanes && std::ranges::equal(*last.shape, dims);
  if (!is_known) last = form_of(tensor, what);
  const DType dtype = last.dtype;
  if (tensor.data == nullptr && last.bytes > 0)
    throw_usage_error("{} has {} bytes and a null pointer", what, last.bytes);
  char* first = first_byte(tensor);
  const auto alignment = static_cast<uintptr_t>(std::min<int64_t>(dtype.bytes(), 8));  // as Tensor::view needs it
  const bool dense = is_dense(tensor), aligned = reinterpret_cast<uintptr_t>(first) % alignment == 0;
  if (dense && aligned) return Tensor::view(last.shape, dtype, first, nullptr);
  if (!dense && dtype.is_packed()) throw_usage_error("{} has strides and packed elements; make it dense first", what);
  Tensor copy = session ? session->new_tensor(*last.shape, dtype) : Tensor::empty(*last.shape, dtype);
  char* to = static_cast<char*>(copy.raw());
  if (dense) {
    std::memcpy(to, first, static_cast<size_t>(last.bytes));
    return copy;
  }
  for_each_element(tensor, dtype.bytes(), [&](const char* element) {
    std::memcpy(to, element, static_cast<size_t>(dtype.bytes()));
    to += dtype.bytes();
  });
  return copy;
}

void copy_to(const Tensor& from, const DLTensor& to) {
  if (is_dense(to)) return void(std::memcpy(first_byte(to), from.raw(), static_cast<size_t>(from.bytes())));
  const char* next = static_cast<const char*>(from.raw());
  const auto bytes = static_cast<size_t>(from.dtype().bytes());
  for_each_element(to, from.dtype().bytes(), [&](char* element) {
    std::memcpy(element, next, bytes);
    next += bytes;
  });
}

}  // namespace relaxc::api

using namespace relaxc::api;

struct relaxc_session {
  explicit relaxc_session(relaxc_program* of, relaxc::SessionOptions options)
      : session(of->program, std::move(options)) {}
  relaxc::Session session;
  std::optional<HostProfiler> profiler;
  std::optional<KernelRecords> records;
  std::vector<relaxc::Tensor> inputs, outputs;  // of a run, kept for their memory
  std::vector<Form> input_forms, output_forms;  // of the last run

  std::atomic<bool> runs = false;

  // A run. Neither a callback in it nor another thread may begin another; nothing of the session is read before.
  class Scope {
   public:
    explicit Scope(relaxc_session& session) : session_(session) {
      if (session.runs.exchange(true, std::memory_order_acquire))
        throw_usage_error("a run of the session is in progress");
      if (session.records) session.records->clear();
    }
    ~Scope() {
      session_.inputs.clear();
      session_.outputs.clear();
      session_.runs.store(false, std::memory_order_release);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    relaxc_session& session_;
  };
};

relaxc_status relaxc_session_new(relaxc_program* program, const relaxc_session_options* options,
                                 relaxc_session** session) {
  return call([&]() __attribute__((cold)) {  // as small code as it can be
    given(session, "session") = nullptr;
    const relaxc_session_options stated = options_of(options, "relaxc_session_options");
    if (stated.num_threads < 0 || stated.num_threads > relaxc::vm::kMostThreads)
      throw_usage_error("num_threads is {}, expected 1 to {}, or 0 for all cores", stated.num_threads,
                        relaxc::vm::kMostThreads);
    if (stated.memory_limit < 0) throw_usage_error("memory_limit is {}", stated.memory_limit);
    relaxc::SessionOptions own{.threads = stated.num_threads, .memory_limit = stated.memory_limit};
    if (stated.allocator) {
      if (!stated.allocator->allocate || !stated.allocator->free) throw_usage_error("an allocator has two functions");
      own.allocator = {stated.allocator->allocate, stated.allocator->free, stated.allocator->user};
    }
    if (stated.thread_pool) {
      if (!stated.thread_pool->num_workers || !stated.thread_pool->run)
        throw_usage_error("a thread pool has two functions");
      own.pool = std::make_shared<HostPool>(*stated.thread_pool);
    } else {
      own.pool = std::make_shared<relaxc::vm::ThreadPool>(stated.num_threads);
      const int threads = own.pool->num_workers();
      cpu_set_t cores;
      const bool is_for_cores = stated.num_threads == 0 && sched_getaffinity(0, sizeof cores, &cores) == 0;
      const int wanted = is_for_cores ? std::min(CPU_COUNT(&cores), relaxc::vm::kMostThreads) : stated.num_threads;
      if (stated.log && threads < wanted)
        stated.log(stated.user, RELAXC_LOG_WARNING,
                   relaxc::formatted("the system refuses {} threads, so that runs have {}", wanted, threads).c_str());
    }
    *session = new relaxc_session(&given(program, "program"), std::move(own));
  });
}

void relaxc_session_release(relaxc_session* session) { delete session; }
void relaxc_session_cancel(relaxc_session* session) {
  if (session) session->session.cancel();
}
void relaxc_session_trim(relaxc_session* session) {
  if (session) session->session.trim();
}

void relaxc_session_memory(const relaxc_session* session, relaxc_memory_stats* stats) {
  if (!stats) return;
  *stats = {};
  if (!session) return;
  const relaxc::vm::MemoryPool::Stats now = session->session.memory_stats();
  *stats = {now.live_bytes, now.idle_bytes, now.peak_bytes, now.allocations};
}

void relaxc_session_profile(relaxc_session* session, relaxc_profiler profiler, void* user) {
  if (!session) return;
  session->session.set_profiler(nullptr);
  session->profiler.reset();
  session->records.reset();
  if (!profiler) return;
  session->profiler.emplace(profiler, user);
  session->session.set_profiler(&*session->profiler);
}

relaxc_status relaxc_session_keep_records(relaxc_session* session, int32_t keep) {
  return call([&] {
    given(session, "session");
    check_flag(keep, "keep");
    relaxc_session_profile(session, nullptr, nullptr);
    if (keep) session->session.set_profiler(&session->records.emplace());
  });
}
relaxc_status relaxc_session_records(relaxc_session* session, const relaxc_kernel_record** records, int32_t* count) {
  return call([&] {
    given(count, "count") = 0;
    given(records, "records") = nullptr;
    if (!given(session, "session").records)
      throw_usage_error("the session keeps no records: call relaxc_session_keep_records before the run");
    const std::vector<relaxc_kernel_record>& kept = session->records->records();
    *records = kept.data();
    *count = static_cast<int32_t>(kept.size());
  });
}

namespace {

const char* text_of(const char* function) { return function ? function : ""; }

// Returns "input 0 (counted from 0) 'x'".
std::string place_of(const char* what, size_t number, const std::vector<relaxc::vm::ValueInfo>& infos) {
  const std::string name = number < infos.size() ? relaxc::formatted(" '{}'", infos[number].name) : "";
  return relaxc::formatted("{} {} (counted from 0){}", what, number, name);
}

void take(relaxc::Session& session, const DLTensor* tensors, int32_t count, const char* what,
          const std::vector<relaxc::vm::ValueInfo>& infos, std::vector<Form>& last,
          std::vector<relaxc::Tensor>& taken) {
  check_count(count, tensors, what);
  const auto size = static_cast<size_t>(count);
  if (last.size() < size) last.resize(size);
  size_t i = 0;
  try {
    for (; i < size; ++i) taken.push_back(tensor_of(tensors[i], "it", last[i], &session));
  } catch (const relaxc::OutOfMemory& error) {  // a name for each tensor would cost every run
    throw relaxc::OutOfMemory(relaxc::formatted("{}: {}", place_of(what, i, infos), error.what()));
  } catch (const UsageError& error) {
    throw_usage_error("{}: {}", place_of(what, i, infos), error.what());
  } catch (const relaxc::RuntimeError& error) {
    relaxc::throw_runtime_error("{}: {}", place_of(what, i, infos), error.what());
  }
}

// Returns the function that is to run. Reads no tensor before the counts are right.
const relaxc::vm::Function& function_for(const relaxc_session& session, const char* name, int32_t num_inputs,
                                         int32_t num_outputs) {
  const relaxc::vm::Function& function = function_of(session.session.program(), name);
  if (std::ssize(function.inputs) != num_inputs)
    throw_usage_error("function '{}' takes {} inputs, got {}", function.name, function.inputs.size(), num_inputs);
  auto is_tensor = [](const relaxc::vm::ValueInfo& info) { return info.kind == relaxc::vm::ValueKind::kTensor; };
  if (std::ranges::all_of(function.outputs, is_tensor) && std::ssize(function.outputs) != num_outputs)
    throw_usage_error("function '{}' has {} results, got places for {}", function.name, function.outputs.size(),
                      num_outputs);
  return function;
}

// Reads no shape of another rank than the declared one.
void check_ranks(const DLTensor* inputs, const std::vector<relaxc::vm::ValueInfo>& infos) {
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].kind == relaxc::vm::ValueKind::kTensor && infos[i].dims &&
        std::ssize(*infos[i].dims) != inputs[i].ndim)
      relaxc::throw_runtime_error("input '{}': rank is {}, expected {}", infos[i].name, inputs[i].ndim,
                                  infos[i].dims->size());
  }
}

// Reports a cache that the run would extend in a copy, not in the memory of the host.
template <class IsCopy>
void check_caches_are_lent(const relaxc_session& session, const relaxc::vm::Function& function, const IsCopy& is_copy) {
  for (const relaxc::vm::CacheInfo& cache : session.session.program().caches(function.name)) {
    if (is_copy(static_cast<size_t>(cache.input)))
      throw_usage_error(
          "input '{}' is extended in place, and its tensor has strides or is not aligned: give one whose elements are "
          "dense "
          "in row-major order, at a multiple of their size",
          function.inputs[static_cast<size_t>(cache.input)].name);
  }
}

// Takes the inputs of a run that are all tensors.
void take_inputs(relaxc_session& session, const relaxc::vm::Function& function, const DLTensor* inputs,
                 int32_t num_inputs) {
  check_ranks(inputs, function.inputs);
  take(session.session, inputs, num_inputs, "input", function.inputs, session.input_forms, session.inputs);
  check_caches_are_lent(session, function, [&](size_t i) { return session.inputs[i].owner() != nullptr; });
}

// Reports an output whose elements would be written over one another.
[[gnu::cold]] void check_apart(const DLTensor& output, int32_t number) {
  for (int32_t d = 0; d < output.ndim; ++d) {
    if (output.strides && output.strides[d] == 0 && output.shape[d] > 1)
      throw_usage_error("output {}: the stride of dim {} is 0, so that elements share memory", number, d);
  }
}

// Returns whether the memory of the result may be the host's.
bool is_lent(const relaxc_session& session, const relaxc::Tensor& result) {
  return std::ranges::any_of(session.inputs, [&](const relaxc::Tensor& input) {
    const auto* begin = static_cast<const char*>(input.raw());
    const auto* at = static_cast<const char*>(result.raw());
    return !input.owner() && std::less_equal<>()(begin, at) && std::less_equal<>()(at, begin + input.bytes());
  });
}

}  // namespace

relaxc_status relaxc_run_into(relaxc_session* session, const char* function, const DLTensor* inputs, int32_t num_inputs,
                              const DLTensor* outputs, int32_t num_outputs) {
  return call([&] {
    relaxc_session::Scope scope(given(session, "session"));
    check_count(num_inputs, inputs, "inputs");
    const relaxc::vm::Function& called = function_for(*session, function, num_inputs, num_outputs);
    take_inputs(*session, called, inputs, num_inputs);
    take(session->session, outputs, num_outputs, "output", called.outputs, session->output_forms, session->outputs);
    for (int32_t i = 0; i < num_outputs; ++i) {
      if (session->outputs[static_cast<size_t>(i)].owner()) check_apart(outputs[i], i);
    }
    session->session.run_into(session->inputs, session->outputs, text_of(function));
    for (int32_t i = 0; i < num_outputs; ++i) {
      const relaxc::Tensor& result = session->outputs[static_cast<size_t>(i)];
      if (result.owner() && result.bytes() > 0) copy_to(result, outputs[i]);  // not in the host's memory
    }
  });
}

relaxc_status relaxc_run(relaxc_session* session, const char* function, const DLTensor* inputs, int32_t num_inputs,
                         DLManagedTensor** outputs, int32_t num_outputs) {
  return call([&] {
    relaxc_session::Scope scope(given(session, "session"));
    check_count(num_outputs, outputs, "outputs");
    std::fill_n(outputs, num_outputs, nullptr);
    check_count(num_inputs, inputs, "inputs");
    take_inputs(*session, function_for(*session, function, num_inputs, num_outputs), inputs, num_inputs);
    std::vector<relaxc::Tensor> results = session->session.run(session->inputs, text_of(function));
    if (std::ssize(results) != num_outputs)
      throw_usage_error("the function has {} results, got places for {}", results.size(), num_outputs);
    for (relaxc::Tensor& result : results) {
      if (result.dtype().is_string()) throw_usage_error("a result is of strings; use relaxc_run_values");
      if (is_lent(*session, result)) result = session->session.copy_of(result);
    }
    for (int32_t i = 0; i < num_outputs; ++i) outputs[i] = results[static_cast<size_t>(i)].to_dlpack();
  });
}

relaxc_status relaxc_run_values(relaxc_session* session, const char* function, const relaxc_any* const* inputs,
                                int32_t num_inputs, relaxc_any** outputs, int32_t num_outputs) {
  return call([&] {
    relaxc_session::Scope scope(given(session, "session"));
    check_count(num_inputs, inputs, "inputs");
    check_count(num_outputs, outputs, "outputs");
    std::fill_n(outputs, num_outputs, nullptr);
    const relaxc::vm::Function& to_run = function_for(*session, function, num_inputs, num_outputs);
    std::vector<relaxc::vm::Value> values;
    for (int32_t i = 0; i < num_inputs; ++i) values.push_back(given(inputs[i], "an input").value);
    check_caches_are_lent(*session, to_run, [&](size_t i) { return inputs[i]->is_copy_of_lent; });
    const relaxc::vm::Value result = session->session.run_values(values, text_of(function));
    std::vector<std::unique_ptr<relaxc_any>> owned;
    auto add_parts = [&](auto& self, const relaxc::vm::Value& value) -> void {  // NOLINT: kMaxTupleDepth
      const auto* tuple = value.get_if<relaxc::vm::Tuple>();
      if (!tuple) return void(owned.push_back(std::make_unique<relaxc_any>(value)));
      for (const relaxc::vm::Value& field : tuple->fields()) self(self, field);
    };
    add_parts(add_parts, result);
    if (std::ssize(owned) != num_outputs)
      throw_usage_error("the function has {} results, got places for {}", owned.size(), num_outputs);
    for (int32_t i = 0; i < num_outputs; ++i) outputs[i] = owned[static_cast<size_t>(i)].release();
  });
}
