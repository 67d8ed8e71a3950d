// The last error of each thread.
#include "api/handles.h"
#include "support/check.h"

namespace relaxc::api {

namespace {

struct LastError {
  std::string message;
  std::vector<Diagnostic> diagnostics;
};
thread_local LastError last_error;

std::string without_last_newline(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

relaxc_status note_error(relaxc_status status, const std::string& message, std::vector<Diagnostic> diagnostics) {
  last_error = {without_last_newline(message), std::move(diagnostics)};
  if (last_error.diagnostics.empty()) last_error.diagnostics.push_back({.message = last_error.message});
  return status;
}

}  // namespace

relaxc_status note_error() noexcept {
  try {
    try {
      throw;
    } catch (const ToldError& error) {
      return note_error(error.status, error.message, error.diagnostics);
    } catch (const CompileError& error) {
      const bool unsupported = error.kind() == ErrorKind::kUnsupported;
      return note_error(unsupported ? RELAXC_UNSUPPORTED : RELAXC_INVALID, error.what(), error.diagnostics());
    } catch (const Cancelled& error) {
      return note_error(RELAXC_CANCELLED, error.what(), {});
    } catch (const OutOfMemory& error) {
      return note_error(RELAXC_OUT_OF_MEMORY, error.what(), {});
    } catch (const RuntimeError& error) {
      return note_error(RELAXC_RUN_FAILED, error.what(), {});
    } catch (const UsageError& error) {
      return note_error(RELAXC_USAGE, error.what(), {});
    } catch (const std::bad_alloc&) {
      return note_error(RELAXC_OUT_OF_MEMORY, "out of memory", {});
    } catch (const std::exception& error) {
      return note_error(RELAXC_INTERNAL, error.what(), {});
    }
  } catch (const std::bad_alloc&) {  // memory is too short for the message
    last_error.message.clear();
    last_error.diagnostics.clear();
    return RELAXC_OUT_OF_MEMORY;
  } catch (...) {
    return note_error(RELAXC_INTERNAL, "a callback of the host threw an exception, which it must not", {});
  }
}

}  // namespace relaxc::api

using relaxc::api::last_error;

const char* relaxc_error_message(void) { return last_error.message.c_str(); }
int32_t relaxc_error_count(void) { return static_cast<int32_t>(last_error.diagnostics.size()); }

int32_t relaxc_error_at(int32_t index, relaxc_error_place* place) {
  if (place == nullptr || index < 0 || index >= relaxc_error_count()) return 0;
  const relaxc::Diagnostic& diagnostic = last_error.diagnostics[static_cast<size_t>(index)];
  const relaxc::Span& span = diagnostic.span;
  auto text = [](const std::string& of) { return of.empty() ? nullptr : of.c_str(); };
  *place = {diagnostic.message.c_str(),
            span ? text(span.origin->file) : nullptr,
            span ? text(span.origin->node) : nullptr,
            span ? text(span.origin->op_type) : nullptr,
            static_cast<int32_t>(span.line),
            static_cast<int32_t>(span.column)};
  return 1;
}
