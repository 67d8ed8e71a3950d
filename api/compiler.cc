// librelaxc_compiler.so: a request of api/compile.cc, done by the C++ API.
#include "api/compiler.h"

#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "api/failure.h"
#include "codegen/artifact_cache.h"
#include "codegen/compile.h"
#include "codegen/open_types.h"
#include "codegen/rule_files.h"
#include "ir/text/printer.h"
#include "passes/precision.h"
#include "passes/tables.h"
#include "vm/error.h"
#include "vm/output_file.h"

namespace relaxc::api {

namespace {

const char* text_of(const char* given, const char* otherwise) { return given ? given : otherwise; }

void log_to(const relaxc_compile_options& options, relaxc_log_level level, std::string line) {
  const std::string_view said = level == RELAXC_LOG_WARNING ? "warning: " : "note: ";  // by the level, too
  if (line.starts_with(said)) line.erase(0, said.size());
  while (line.ends_with('\n')) line.pop_back();
  if (options.log) options.log(options.user, level, line.c_str());
}

bool flag_of(int64_t given, const char* name) {
  if (given != 0 && given != 1) throw_usage_error("{} is {}, expected 0 or 1", name, given);
  return given != 0;
}

// Returns what a number says whose default is written as 0, and its 0 as a negative number.
template <class T>
T number_of(T given, T otherwise) {
  return given == 0 ? otherwise : std::max(given, T(0));
}

Precision precision_of(const char* name) {
  const std::optional<Precision> found = find_precision(name);
  if (!found) fail_usage({}, "there is no precision '{}'; expected one of {}", name, precision_list());
  return *found;
}

void set_types(const relaxc_compile_options& options, CompileSettings& settings) {
  std::map<std::string, Expr> dims;
  for (int32_t i = 0; i < options.num_types; ++i) {
    const bool is_new = settings.types.emplace(options.type_names[i], parse_type(options.types[i], dims)).second;
    if (!is_new) fail_usage({}, "input '{}' has two types in the options", options.type_names[i]);
  }
}

void set_dims(const relaxc_compile_options& options, CompileSettings& settings) {
  for (int32_t i = 0; i < options.num_dims; ++i) {
    if (!settings.dims.emplace(options.dim_names[i], options.dim_values[i]).second)
      fail_usage({}, "dim '{}' has two sizes in the options", options.dim_names[i]);
  }
  for (int32_t i = 0; i < options.num_ranges; ++i) {
    const DimRange range{options.range_least[i], options.range_most[i]};
    if (!settings.dim_ranges.emplace(options.range_names[i], range).second)
      fail_usage({}, "dim '{}' has two ranges in the options", options.range_names[i]);
  }
}

void set_bound_values(const relaxc_compile_options& options, CompileSettings& settings) {
  for (int32_t i = 0; i < options.num_bound; ++i) {
    const DLTensor& value = options.bound[i];
    const DType dtype = dtype_from_dlpack(value.dtype.code, value.dtype.bits, value.dtype.lanes);
    Tensor copy = Tensor::copy_of({value.shape, value.shape + value.ndim}, dtype, value.data);
    const bool is_new = settings.params.emplace(options.bound_names[i], std::move(copy)).second;
    if (!is_new) fail_usage({}, "param '{}' has two values in the options", options.bound_names[i]);
  }
}

PrintOptions print_options_of(const relaxc_compile_options& options) {
  if (options.inline_elements < -1)
    throw_usage_error("inline_elements is {}, expected a number from 1, 0 for the default, or -1 for none",
                      options.inline_elements);
  PrintOptions print;
  print.constants_file = text_of(options.constants, "");
  print.inline_elements = number_of(options.inline_elements, print.inline_elements);
  return print;
}

CompileSettings settings_of(const relaxc_compiler_request& request) {
  const relaxc_compile_options& options = request.options;
  CompileSettings settings;
  settings.target = text_of(options.target, "host");
  settings.passes = text_of(options.passes, "default");
  settings.function = text_of(options.function, "");
  set_dims(options, settings);
  set_types(options, settings);
  set_bound_values(options, settings);
  if (flag_of(options.clamp_indices, "clamp_indices")) settings.gather = OutOfRange::kClamp;
  settings.strict = flag_of(options.strict, "strict");
  settings.check_bounds = flag_of(options.check_bounds, "check_bounds");
  settings.fast_int8 = flag_of(options.fast_int8, "fast_int8");
  settings.linked.assign(options.linked, options.linked + options.num_linked);
  settings.host_symbols.assign(options.host_symbols, options.host_symbols + options.num_host_symbols);
  if (options.num_threads < 0 || options.num_threads > vm::kMostThreads)
    throw_usage_error("num_threads is {}, expected 1 to {}, or 0 for all cores", options.num_threads, vm::kMostThreads);
  settings.jobs = options.num_threads;
  if (options.opt_level < -1 || options.opt_level > 3)
    throw_usage_error("opt_level is {}, expected 1 to 3, 0 for the default, or -1 for level 0", options.opt_level);
  settings.opt_level = number_of(options.opt_level, settings.opt_level);
  settings.caches.by_name = flag_of(options.in_place, "in_place");
  if (!std::isfinite(options.winograd_error))
    throw_usage_error("winograd_error is {}, expected a finite number", options.winograd_error);
  settings.winograd_error = number_of(options.winograd_error, settings.winograd_error);
  settings.precision = precision_of(text_of(options.precision, "fp32"));
  if (request.bytes) settings.contents = std::span(static_cast<const std::byte*>(request.bytes), request.num_bytes);
  settings.warn = [&options](const Diagnostic& warning) { log_to(options, RELAXC_LOG_WARNING, to_string(warning)); };
  if (options.num_kernels > 0)  // it tells of their rules, and programs that are watched are not reused
    settings.report = [&options](const std::string& line) { log_to(options, RELAXC_LOG_NOTE, line); };
  if (options.progress || options.cancelled) {
    settings.progress = [&options](const Progress& now) {
      if (options.cancelled && *options.cancelled) throw Cancelled("the compilation was cancelled");
      if (!options.progress) return;
      const std::string at_work(now.at_work);
      const relaxc_progress_info info{
          sizeof(relaxc_progress_info),    name_of(now.stage), at_work.c_str(), static_cast<int64_t>(now.done),
          static_cast<int64_t>(now.total), now.seconds};
      options.progress(options.user, &info);
    };
  }
  RuleFiles rules(settings);
  for (int32_t i = 0; i < options.num_kernels; ++i) rules.read(options.kernels[i]);
  rules.finish();
  for (const std::string& note : rules.notes) log_to(options, RELAXC_LOG_NOTE, note);
  for (const Diagnostic& warning : rules.warnings.all()) log_to(options, RELAXC_LOG_WARNING, to_string(warning));
  return settings;
}

// LLVM takes over signals of the process when it first writes a file. This gives them back to the host at the end of
// the compilation, the last one of those that overlap.
class HostSignals {
 public:
  HostSignals() {
    std::lock_guard lock(mutex_);
    if (compilations_++ > 0) return;
    for (int signal = 1; signal < kSignals; ++signal) sigaction(signal, nullptr, &saved_[static_cast<size_t>(signal)]);
  }
  ~HostSignals() {
    std::lock_guard lock(mutex_);
    if (--compilations_ > 0) return;
    for (int signal = 1; signal < kSignals; ++signal) {
      struct sigaction now{};
      if (sigaction(signal, nullptr, &now) == 0 && is_of_llvm(now))
        sigaction(signal, &saved_[static_cast<size_t>(signal)], nullptr);
    }
  }
  HostSignals(const HostSignals&) = delete;
  HostSignals& operator=(const HostSignals&) = delete;

 private:
  static bool is_of_llvm(const struct sigaction& action) {
    void* handler = reinterpret_cast<void*>(action.sa_handler);
    Dl_info found{};
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN || dladdr(handler, &found) == 0) return false;
    return std::string_view(found.dli_fname).find("LLVM") != std::string_view::npos;
  }
  static constexpr int kSignals = 32;
  static inline std::mutex mutex_;
  static inline int compilations_ = 0;
  static inline std::array<struct sigaction, kSignals> saved_{};
};

void work(const relaxc_compiler_request& request, const relaxc_compiler_reply& reply) {
  const CompileSettings settings = settings_of(request);
  if (request.artifact && request.may_be_cached) {
    ArtifactCache cache{.folder = request.options.cache ? request.options.cache : default_cache_folder()};
    for (int32_t i = 0; i < request.options.num_kernels; ++i) cache.rule_files.emplace_back(request.options.kernels[i]);
    cache.note = [&](const std::string& line) { log_to(request.options, RELAXC_LOG_NOTE, line); };
    cache.warn = [&](const std::string& line) { log_to(request.options, RELAXC_LOG_WARNING, line); };
    const std::string artifact = cache.folder.empty() ? "" : load_cached(request.path, settings, cache).artifact;
    if (!artifact.empty()) return reply.cached(reply.user, artifact.c_str());
  }
  if (request.artifact) return compile_file(request.path, settings).write(request.artifact);
  IRModule module = read_scheduled_module(request.path, settings);
  const std::string text = print_module(run_pipeline(std::move(module), settings), print_options_of(request.options));
  reply.text(reply.user, text.data(), text.size());
}

int32_t tell(const relaxc_compiler_reply& reply, const Failure& failure) {
  reply.failed(reply.user, failure.status, failure.message.c_str());
  for (const Diagnostic& diagnostic : failure.diagnostics) {
    const Span& span = diagnostic.span;
    relaxc_error_place place{};
    place.message = diagnostic.message.c_str();
    if (span) {
      place.file = span.origin->file.c_str();
      place.node = span.origin->node.c_str();
      place.op_type = span.origin->op_type.c_str();
      place.line = static_cast<int32_t>(span.line);
      place.column = static_cast<int32_t>(span.column);
    }
    reply.place(reply.user, &place);
  }
  return failure.status;
}

}  // namespace

}  // namespace relaxc::api

extern "C" RELAXC_API int32_t relaxc_compiler_entry(const relaxc_compiler_request* request,
                                                    const relaxc_compiler_reply* reply) {
  using namespace relaxc;
  try {
    api::HostSignals signals;
    api::work(*request, *reply);
    return RELAXC_OK;
  } catch (...) {
    return api::tell(*reply, api::caught_failure(RELAXC_INVALID));  // a RuntimeError is one of a file
  }
}
