// The last error of each thread.
#include "api/handles.h"

namespace relaxc::api {

static thread_local Failure last_error;

relaxc_status note_error() noexcept {
  last_error = caught_failure(RELAXC_RUN_FAILED);
  std::string& message = last_error.message;
  while (message.ends_with('\n')) message.pop_back();
  try {
    if (last_error.diagnostics.empty()) last_error.diagnostics.push_back({.message = message});
  } catch (const std::bad_alloc&) {  // relaxc_error_count() is 0
  }
  return last_error.status;
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
